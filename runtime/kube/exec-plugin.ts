import { type ExecFileException, execFile } from "node:child_process";
import { z } from "zod";
import type { Clock } from "../clock.ts";
import { WatchfireError } from "../errors.ts";

/** A plugin that asks a person, or a dead network, must not hold every watch for ever. */
const runLimitMs = 30_000;
/** Credentials are renewed this long before they end, so that no request travels with ones that lapse on the way. */
const leewayMs = 60_000;
/** An ExecCredential holds a token and a certificate: far below this, in bytes. */
const outputLimit = 1024 * 1024;

/** The `exec` section of a kubeconfig's user. */
export const execSchema = z.looseObject({
  apiVersion: z.string().default("client.authentication.k8s.io/v1"),
  command: z.string(),
  args: z
    .array(z.string())
    .nullish()
    .transform((args) => args ?? []),
  env: z
    .array(z.object({ name: z.string(), value: z.string() }))
    .nullish()
    .transform((env) => env ?? []),
  installHint: z.string().optional(),
  provideClusterInfo: z.boolean().optional(),
});

/** The `exec` section of a kubeconfig's user, checked. */
export type ExecSpec = z.infer<typeof execSchema>;

/** What the plugin is told of the cluster, where its section asks for it. */
export interface ExecCluster {
  readonly server: string;
  readonly "certificate-authority-data"?: string;
  readonly "tls-server-name"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "proxy-url"?: string;
}

const credentialSchema = z.looseObject({
  kind: z.literal("ExecCredential"),
  status: z.looseObject({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
});

/** What a plugin gave. */
export type ExecCredential = z.infer<typeof credentialSchema>["status"];

/**
 * Credentials from a client-go exec plugin, one process at a time however many requests wait. It is killed after 30 s.
 * It runs again 60 s before its credentials end, or after the server refused them. While a renewal fails, credentials
 * that have not ended stay in use.
 */
export class ExecPlugin {
  private readonly spec: ExecSpec;
  private readonly cluster: ExecCluster;
  private readonly environment: Readonly<Record<string, string | undefined>>;
  private readonly clock: Clock;
  private current: ExecCredential | undefined;
  private refused = false;
  private running: Promise<ExecCredential> | undefined;

  constructor(
    spec: ExecSpec,
    cluster: ExecCluster,
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

  private remainingMs(credential: ExecCredential): number {
    if (credential.expirationTimestamp === undefined) return Number.POSITIVE_INFINITY;
    const ends = Date.parse(credential.expirationTimestamp);
    return Number.isNaN(ends) ? Number.POSITIVE_INFINITY : ends - this.clock.now();
  }

  private run(): Promise<ExecCredential> {
    const { apiVersion, command, args, env, provideClusterInfo } = this.spec;
    const info = {
      apiVersion,
      kind: "ExecCredential",
      spec: { interactive: false, ...(provideClusterInfo ? { cluster: this.cluster } : {}) },
    };
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
    return new Promise((resolve, reject) => {
      const child = execFile(command, args, options, (error, stdout, stderr) => {
        timer.cancel();
        // The error's own message repeats the arguments, which may hold a secret.
        if (error) return reject(this.fault(`failed (${ending(error)}): ${stderr.trim().slice(0, 256)}`));
        try {
          resolve(credentialSchema.parse(JSON.parse(stdout)).status);
        } catch {
          // The output may hold a token, so neither it nor the parser's message is shown.
          reject(this.fault("did not print an ExecCredential"));
        }
      });
      // A plugin that asks on its standard input gets an end of file, not an answer.
      child.stdin?.end();
    });
  }

  private fault(what: string): WatchfireError {
    return new WatchfireError("WF_KUBE_EXEC_PLUGIN", {
      what: `the exec plugin ${this.spec.command} ${what}`,
      ...(this.spec.installHint ? { hint: this.spec.installHint } : {}),
    });
  }
}

function ending(error: ExecFileException): string {
  if (error.code === "ABORT_ERR") return `killed after ${runLimitMs / 1000} s`;
  return typeof error.code === "number" ? `exit status ${error.code}` : (error.code ?? "signal");
}
