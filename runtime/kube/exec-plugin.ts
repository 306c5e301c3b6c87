import { type ExecFileException, execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, open, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { readFirstDocument } from "../document/document.ts";
import { goYaml } from "./go-yaml.ts";
import type { ExecSpec } from "./kubeconfig-file.ts";
import { pairFault } from "./tls-files.ts";

/**
 * Time limit of a plugin run, in milliseconds: a plugin that waits for input, or for a dead network, must not block every watch
 * forever.
 */
const runLimitMs = 30_000;
/**
 * How long before their expiry credentials are renewed, in milliseconds, so that no request travels with credentials that expire
 * on the way.
 */
const leewayMs = 60_000;
/** Limit of a plugin's output, in bytes. An ExecCredential holds a token and a certificate, which are far smaller. */
const outputLimit = 1024 * 1024;

/** Description of the cluster passed to the plugin, if its section asks for it. */
export interface ExecCluster {
  readonly server: string;
  readonly "certificate-authority-data"?: string;
  readonly "tls-server-name"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "proxy-url"?: string;
  readonly "disable-compression"?: boolean;
  /** The plugin's configuration in the cluster's section: the extension `client.authentication.k8s.io/exec`, or null. */
  readonly config: unknown;
}

/** Bytes examined to recognise a binary program: on every system it has a zero byte among these. */
const headBytes = 256;

/** Timestamp as in Go's `time.RFC3339`, which also accepts a fraction of a second. */
const timestamp = z.iso.datetime({ offset: true });
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? "");

const answerSchema = z.looseObject({
  apiVersion: z.string(),
  // client-go takes an absent kind for this one.
  kind: z.union([z.literal("ExecCredential"), z.literal("")]).nullish(),
  spec: z.looseObject({ interactive: z.boolean().nullish() }).nullish(),
  status: z
    .looseObject({
      token: text,
      clientCertificateData: text,
      clientKeyData: text,
      expirationTimestamp: timestamp.nullish(),
    })
    .nullish(),
});

/** Credentials from a plugin: a token, a client certificate, or both. */
interface ExecCredential {
  /** Empty if absent. */
  readonly token: string;
  /** PEM. */
  readonly client?: { readonly cert: string; readonly key: string };
  /** Expiry in milliseconds since 1970; absent: valid until the server refuses them. */
  readonly ends?: number;
}

/**
 * Credentials from a client-go exec plugin. One process runs at a time, however many requests wait, and is killed after 30 s. It
 * runs again 60 s before its credentials expire, or after the server refused them. While a renewal fails, credentials that have
 * not expired stay in use.
 */
export class ExecPlugin {
  private readonly spec: ExecSpec;
  private readonly cluster: ExecCluster | undefined;
  private readonly environment: Readonly<Record<string, string | undefined>>;
  private readonly clock: Clock;
  private current: ExecCredential | undefined;
  private refused = false;
  private running: Promise<ExecCredential> | undefined;

  /** @param cluster description of the cluster for the plugin; `undefined` if its section does not ask for it */
  constructor(
    spec: ExecSpec,
    cluster: ExecCluster | undefined,
    environment: Readonly<Record<string, string | undefined>>,
    clock: Clock,
  ) {
    this.spec = spec;
    this.cluster = cluster;
    this.environment = environment;
    this.clock = clock;
  }

  async credential(): Promise<ExecCredential> {
    if (this.current && !this.refused && this.remainingMs(this.current) > leewayMs) return this.current;
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    try {
      this.current = await this.running;
      this.refused = false;
      return this.current;
    } catch (error) {
      if (this.current && this.remainingMs(this.current) > 0) return this.current;
      throw error;
    }
  }

  /** Makes the next call run the plugin, however fresh its credentials are. */
  forget(): void {
    this.refused = true;
  }

  private remainingMs({ ends }: ExecCredential): number {
    return ends === undefined ? Number.POSITIVE_INFINITY : ends - this.clock.now();
  }

  private async run(): Promise<ExecCredential> {
    const { apiVersion, args, env } = this.spec;
    const info = {
      kind: "ExecCredential",
      apiVersion,
      spec: { ...(this.cluster && { cluster: this.cluster }), interactive: false },
    };
    const program = await this.program();
    const limit = new AbortController();
    const timer = this.clock.after(runLimitMs, () => limit.abort());
    const options = {
      env: {
        ...this.environment,
        ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
        KUBERNETES_EXEC_INFO: JSON.stringify(info),
      },
      signal: limit.signal,
      killSignal: "SIGKILL",
      maxBuffer: outputLimit,
      encoding: "utf8",
    } as const;
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile(program, args, options, (error, stdout, stderr) => {
        timer.cancel();
        // The error's own message repeats the arguments, which may contain a secret.
        if (error) reject(this.fault(`failed (${ending(error)}): ${stderr.trim().slice(0, 256)}`));
        else resolve(stdout);
      });
      // A plugin that reads its standard input gets an end of file.
      child.stdin?.end();
    });
    return this.credentialOf(output);
  }

  /** A name without a slash is searched on the runtime's PATH, even if the section sets another PATH for the plugin. */
  private async program(): Promise<string> {
    const { command, installHint } = this.spec;
    const path = command.includes("/") ? "" : (this.environment.PATH ?? "");
    const program = await findProgram(command, path);
    if (program !== undefined) return program;
    // The hint is foreign text and is shown on a terminal, so it is cleaned.
    throw this.fault("does not exist, or is not a program", clean(installHint) || undefined);
  }

  /** The output may contain a token, so neither it nor a parser's message is shown. */
  private credentialOf(output: string): ExecCredential {
    const answer = answerSchema.safeParse(parsed(output));
    if (!answer.success) throw this.fault("did not print an ExecCredential");
    const { apiVersion, status } = answer.data;
    if (apiVersion !== this.spec.apiVersion) {
      throw this.fault(`is configured for ${this.spec.apiVersion} and printed another apiVersion`);
    }
    const { token = "", clientCertificateData: cert = "", clientKeyData: key = "", expirationTimestamp } = status ?? {};
    if (!token && !cert && !key) throw this.fault("printed no credentials");
    if (!cert !== !key) throw this.fault("printed only one of a client certificate and its key");
    const reason = cert && pairFault(cert, key);
    if (reason) throw this.fault(`printed a client certificate and key that cannot be used: ${reason}`);
    return {
      token,
      ...(cert && { client: { cert, key } }),
      ...(expirationTimestamp && { ends: Date.parse(expirationTimestamp) }),
    };
  }

  private fault(what: string, hint?: string): WatchfireError {
    return new WatchfireError("WF_KUBE_EXEC_PLUGIN", {
      what: `the exec plugin ${this.spec.command} ${what}`,
      ...(hint !== undefined && { hint }),
    });
  }
}

/** Parses a plugin's output as JSON, or as YAML, which Kubernetes' own decoder accepts too. */
function parsed(output: string): unknown {
  try {
    if (/^[ \t\r\n]*\{/.test(output)) return JSON.parse(output);
    const document = readFirstDocument(output, "stdout", goYaml);
    return document?.faults.length === 0 ? document.value : undefined;
  } catch {
    return undefined;
  }
}

/** Finds the program: the command itself if it is a path, otherwise the first match in the folders of `path`. */
async function findProgram(command: string, path: string): Promise<string | undefined> {
  if (command.includes("/")) return (await isProgram(command)) ? command : undefined;
  for (const folder of path.split(delimiter)) {
    const file = join(folder || ".", command);
    // Go does not run a program of the current folder that was found through PATH (`exec.ErrDot`).
    if (await isProgram(file)) return isAbsolute(file) ? file : undefined;
  }
  return undefined;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    if ((await stat(file)).isDirectory()) return false;
  } catch {
    return false;
  }
  const head = await headOf(file).catch(() => undefined);
  // A shell's `exec` treats any other text as a script; Go's does not, so kubectl refuses it.
  return head === undefined || head.toString("latin1", 0, 2) === "#!" || head.includes(0);
}

async function headOf(file: string): Promise<Buffer> {
  const handle = await open(file);
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(headBytes)).finally(() => handle.close());
  return buffer.subarray(0, bytesRead);
}

function ending(error: ExecFileException): string {
  if (error.code === "ABORT_ERR") return `killed after ${runLimitMs / 1000} s`;
  return typeof error.code === "number" ? `exit status ${error.code}` : (error.code ?? "signal");
}
