import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Status } from "../../runtime/host/status.ts";
import { Hopeless, until } from "./until.ts";
import { freePort } from "./watchfire-process.ts";

/** Polling interval of a starting replica, in milliseconds. */
const pollMs = 50;

/** The program of this checkout. */
const ownProgram = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

const builds = new Map<string, Promise<string>>();
const buildFolders: string[] = [];
process.on("exit", () => {
  for (const folder of buildFolders) rmSync(folder, { recursive: true, force: true });
});

/** The output of `watchfire build` for a functions folder, the only form that a pod loads. Built once per process. */
function built(program: string, functions: string): Promise<string> {
  const key = `${program} ${functions}`;
  const build = builds.get(key) ?? buildOf(program, functions);
  builds.set(key, build);
  return build;
}

async function buildOf(bin: string, functions: string): Promise<string> {
  const out = join(mkdtempSync(join(tmpdir(), "watchfire-built-")), "build");
  buildFolders.push(dirname(out));
  await promisify(execFile)(process.execPath, [bin, "build", "--functions", functions, "--out", out]);
  return out;
}

export interface ReplicaOptions {
  readonly kubeconfig: string;
  /** Namespace of the Lease and the Secrets. */
  readonly namespace: string;
  readonly functions: string;
  /** The data folder. */
  readonly data: string;
  readonly pod: string;
  readonly uid: string;
  readonly store: "sqlite" | "kubernetes" | "nats";
  /** Options of a fleet's replica, which replace the election. */
  readonly fleet?: { readonly nats: string; readonly slots: number };
  /** For a single runtime: the NATS that stores the checkpoints, or stored them before. */
  readonly nats?: string;
  /** True to maintain a Function object for each function. Default false. */
  readonly functionStatus?: boolean;
  /** True to serve the console. Default false. */
  readonly console?: boolean;
  /** True to run deployed functions as well. Default false. */
  readonly deployed?: boolean;
  readonly logFile: string;
  /** `watchfire.js` of another checkout. Default: that of this one. */
  readonly program?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * `watchfire start --leader-elect`, or with `--slots`, in a separate process, as in a pod. It ends with this process.
 */
export class Replica {
  readonly options: ReplicaOptions;
  readonly name: string;
  private readonly child: ChildProcess;
  readonly url: string;

  private constructor(options: ReplicaOptions, child: ChildProcess, url: string) {
    this.options = options;
    this.name = `${options.pod}_${options.uid}`;
    this.child = child;
    this.url = url;
  }

  /** Resolves when its endpoints are up. */
  static async start(options: ReplicaOptions): Promise<Replica> {
    const { kubeconfig, namespace, functions, data, pod, uid, store, logFile, fleet, nats, functionStatus, deployed } =
      options;
    const { program = ownProgram, env } = options;
    const address = `127.0.0.1:${await freePort()}`;
    const shared = fleet
      ? ["--nats", fleet.nats, "--slots", String(fleet.slots)]
      : ["--leader-elect", ...(nats === undefined ? [] : ["--nats", nats])];
    const args = ["start", ...shared, "--store", store, "--functions", await built(program, functions), "--data", data];
    if (functionStatus) args.push("--function-status");
    if (options.console) args.push("--console");
    if (deployed) args.push("--deployed");
    const log = openSync(logFile, "a");
    const child = spawn(process.execPath, [program, ...args, "--kubeconfig", kubeconfig, "--listen", address], {
      stdio: ["ignore", log, log, "pipe"],
      // The descriptor closes when this process ends, which ends the replica.
      env: {
        ...process.env,
        POD_NAMESPACE: namespace,
        POD_NAME: pod,
        POD_UID: uid,
        WATCHFIRE_LAUNCHER_FD: "3",
        ...env,
      },
    });
    closeSync(log);
    const replica = new Replica(options, child, `http://${address}`);
    await until(
      `${replica.name} answers`,
      120_000,
      async () => {
        if (child.exitCode !== null) throw new Hopeless(`${replica.name} ended: ${await readFile(logFile, "utf8")}`);
        return (await replica.read("/livez")).ok;
      },
      pollMs,
    );
    return replica;
  }

  read(path: "/livez" | "/readyz" | "/metrics"): Promise<Response> {
    return fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(2_000) });
  }

  async status(): Promise<Status> {
    const answer = await fetch(`${this.url}/status`, { signal: AbortSignal.timeout(2_000) });
    return answer.json() as Promise<Status>;
  }

  async isActive(): Promise<boolean> {
    return (await this.status()).role === "active";
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Its exit status; null while it runs or if a signal ended it. */
  get exitStatus(): number | null {
    return this.child.exitCode;
  }

  signal(name: "SIGSTOP" | "SIGCONT" | "SIGTERM"): void {
    this.child.kill(name);
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended();
  }

  /** The log so far, including that of earlier replicas in the same file. */
  log(): Promise<string> {
    return readFile(this.options.logFile, "utf8");
  }
}
