import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Status } from "../../runtime/host/status.ts";
import { Hopeless, until } from "../tools/until.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
/** The Node flags in the first line of the command's file. */
export const usersFlags = readFileSync(bin, "utf8").split("\n", 1)[0]?.match(/--\S+/g) ?? [];
/** The variables that the image sets for glibc. */
export const usersVariables = Object.fromEntries(
  Array.from(
    readFileSync(join(import.meta.dirname, "../../deploy/Dockerfile"), "utf8").matchAll(/(MALLOC_\w+)=(\w+)/g),
    ([, name = "", value]) => [name, value],
  ),
);

/**
 * Polling interval of readiness, in milliseconds. An answer costs a runtime with thousands of sources some milliseconds.
 */
const readyPollMs = 50;

/** The watch of one trigger of the measured function. */
export interface Watched {
  readonly apiVersion: string;
  readonly kind: string;
  /** The label that its namespaces must have. Default: all namespaces. */
  readonly namespaceLabels?: Readonly<Record<string, string>>;
}

export interface MeasuredOptions {
  /** An empty folder for its function, data and log. */
  readonly folder: string;
  readonly kubeconfig: string;
  /** The triggers of the function, one per watch. Its handler does nothing. */
  readonly watches: readonly Watched[];
  /** Number of such functions. Default: 1. */
  readonly functions?: number;
  readonly initialEvents: "Skip" | "Deliver";
  /** Additional Node flags, for example to measure the heap. */
  readonly nodeFlags?: readonly string[];
  /** The command's file. Default: the checkout's. */
  readonly program?: string;
  /** Additional variables for the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** `watchfire start` as users run it, with access to its process. */
export class MeasuredRuntime {
  readonly pid: number;
  private readonly child: ChildProcess;
  private readonly address: string;
  private readonly logFile: string;

  private constructor(child: ChildProcess, address: string, logFile: string) {
    this.logFile = logFile;
    this.child = child;
    this.pid = child.pid ?? 0;
    this.address = address;
  }

  /** Writes its functions. `start` calls it if they do not exist. */
  static async write(options: MeasuredOptions): Promise<void> {
    const { folder, functions = 1 } = options;
    for (let index = 0; index < functions; index++)
      await writeNoop(join(folder, "functions"), `noop-${index}`, options);
  }

  /** Starts the runtime. It is not ready yet when this resolves. */
  static async start(options: MeasuredOptions): Promise<MeasuredRuntime> {
    const { folder, kubeconfig, nodeFlags = [], program = bin, env } = options;
    if (!existsSync(join(folder, "functions"))) await MeasuredRuntime.write(options);
    const address = `127.0.0.1:${await freePort()}`;
    const folders = ["--functions", join(folder, "functions"), "--data", join(folder, "data")];
    const args = [program, "start", ...folders, "--kubeconfig", kubeconfig, "--listen", address];
    const child = spawn(process.execPath, [...usersFlags, ...nodeFlags, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...usersVariables, ...env },
    });
    const logFile = join(folder, "runtime.log");
    const log = createWriteStream(logFile);
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    return new MeasuredRuntime(child, address, logFile);
  }

  /**
   * @param limitMs after which it rejects.
   * @param pollMs how often it is asked, which costs it some.
   */
  async ready(limitMs: number, pollMs = readyPollMs): Promise<void> {
    const isReady = async () => {
      if (this.exit !== null) throw new Hopeless(`the runtime ended: ${this.exit}`);
      return (await fetch(`http://${this.address}/readyz`)).status === 200;
    };
    await until("the runtime is ready", limitMs, isReady, pollMs);
    // A function that cannot run does not delay readiness.
    const { functions } = JSON.parse(await this.read("/status")) as Status;
    const idle = functions.find(({ ready }) => !ready);
    if (idle) throw new Error(`${idle.name} does not run: ${idle.message}\n${this.warnings()}`);
  }

  async read(path: "/livez" | "/readyz" | "/status" | "/metrics"): Promise<string> {
    return (await fetch(`http://${this.address}${path}`)).text();
  }

  /** The lines of its log above the level `info`. */
  private warnings(): string {
    const lines = readFileSync(this.logFile, "utf8").split("\n");
    return lines.filter((line) => line !== "" && !line.includes('"level":"info"')).join("\n");
  }

  /** The status or signal of its exit; null while it runs. */
  get exit(): number | string | null {
    return this.child.exitCode ?? this.child.signalCode;
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    if (this.exit !== null) return;
    const exit = new Promise<void>((resolve) => this.child.once("exit", () => resolve()));
    this.child.kill(signal);
    await exit;
  }
}

async function writeNoop(functions: string, name: string, { watches, initialEvents }: MeasuredOptions): Promise<void> {
  const folder = join(functions, name);
  await mkdir(folder, { recursive: true });
  const triggers = watches.map(({ namespaceLabels, ...watch }, index) => ({
    name: `trigger-${index}`,
    watch: { ...watch, namespaceSelector: namespaceLabels && { matchLabels: namespaceLabels }, initialEvents },
  }));
  const manifest = {
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name },
    spec: { handler: "./handler.ts", triggers, delivery: { concurrency: 256 } },
  };
  await writeFile(join(folder, "function.yaml"), JSON.stringify(manifest));
  await writeFile(join(folder, "handler.ts"), "export default () => {};\n");
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
