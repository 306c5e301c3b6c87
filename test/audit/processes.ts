import { type ChildProcess, fork } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { Client } from "../cluster/client.ts";
import { accessOf } from "../cluster/kubeconfig.ts";
import { LeashedProcess } from "../cluster/leashed-process.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

const here = import.meta.dirname;
const bin = join(here, "../../runtime/bin/watchfire.js");

/** A process ended that should not have: waiting on is of no use. */
class Ended extends Error {}

/** Waits until `condition` gives something other than undefined or false; fails after `limitMs`, naming `what`. */
export async function until<T>(
  what: string,
  limitMs: number,
  condition: () => Promise<T | undefined | false>,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (let cause: unknown; ; ) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      if (error instanceof Ended) throw error;
      cause = error;
    }
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`, { cause });
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** How often a condition is looked at, in milliseconds. */
const pollMs = 10;

/** The embedded cluster as a process of its own, and an administrator's client of it. */
export async function startCluster(
  folder: string,
): Promise<{ kubeconfig: string; client: Client; stop(): Promise<void> }> {
  const kubeconfig = join(folder, "kubeconfig");
  const args = ["cluster", "--port", "0", "--state", join(folder, "cluster-state"), "--kubeconfig", kubeconfig];
  const process_ = new LeashedProcess(process.execPath, [bin, ...args], join(folder, "cluster.log"));
  const client = await until("the cluster answers", 20_000, async () => {
    const candidate = new Client(await accessOf(kubeconfig));
    return (await candidate.reply("GET", "/readyz")).status === 200 && candidate;
  });
  return {
    kubeconfig,
    client,
    async stop() {
      await client.close();
      await process_.kill();
    },
  };
}

/** The runtime with the recording function; killed and started again on the same folder as often as wanted. */
export class Runtime {
  private readonly folder: string;
  private readonly kubeconfig: string;
  private process: LeashedProcess | undefined;

  constructor(folder: string, kubeconfig: string) {
    this.folder = folder;
    this.kubeconfig = kubeconfig;
  }

  /** Resolves when it says that it is ready: its first list, or what it missed, is taken in. */
  async start(): Promise<void> {
    const port = await freePort();
    const folders = ["--functions", join(here, "functions"), "--data", join(this.folder, "data")];
    const args = ["start", ...folders, "--kubeconfig", this.kubeconfig, "--listen", `127.0.0.1:${port}`];
    const started = new LeashedProcess(process.execPath, [bin, ...args], join(this.folder, "runtime.log"));
    this.process = started;
    await until("the runtime is ready", 30_000, async () => {
      if (started.exitStatus !== null) throw new Ended(`the runtime ended with status ${started.exitStatus}`);
      return (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200;
    });
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.process?.kill();
  }
}

/** The process that writes; it does as many operations as it is allowed. */
export class Writer {
  private readonly child: ChildProcess;
  private done = 0;
  private allowed = 0;

  constructor(kubeconfig: string, objects: number, seed: number) {
    this.child = fork(join(here, "writer.ts"), [kubeconfig, String(objects), String(seed)]);
    this.child.on("message", (message: FromWriter) => {
      this.done = message.done;
    });
  }

  /** Lets it do so many operations more. */
  allow(operations: number): void {
    this.allowed += operations;
    this.child.send({ allow: this.allowed } satisfies ToWriter);
  }

  /** Resolves when at most so many of the allowed operations are left. */
  async left(operations: number): Promise<void> {
    await until("the writer writes", 120_000, async () => {
      if (this.child.exitCode !== null) throw new Ended("the writer ended");
      return this.allowed - this.done <= operations;
    });
  }

  stop(): void {
    this.child.kill("SIGKILL");
  }
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
