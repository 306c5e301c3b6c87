import { createServer } from "node:net";
import { join } from "node:path";
import { LeashedProcess } from "../../runtime/dev/real/leashed-process.ts";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { Hopeless, until } from "./until.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** `watchfire cluster` in a separate process, with its files in a folder. */
export class ClusterProcess {
  readonly kubeconfig: string;
  /** An administrator's client. */
  readonly client: Client;
  private readonly process: LeashedProcess;

  private constructor(kubeconfig: string, client: Client, process: LeashedProcess) {
    this.kubeconfig = kubeconfig;
    this.client = client;
    this.process = process;
  }

  static async start(folder: string): Promise<ClusterProcess> {
    const kubeconfig = join(folder, "kubeconfig");
    const args = ["cluster", "--port", "0", "--state", join(folder, "cluster-state"), "--kubeconfig", kubeconfig];
    const started = new LeashedProcess(process.execPath, [bin, ...args], join(folder, "cluster.log"));
    const client = await until("the cluster answers", 20_000, async () => {
      if (started.exitStatus !== null) throw new Hopeless(`the cluster ended with status ${started.exitStatus}`);
      const candidate = new Client(await accessOf(kubeconfig));
      return (await candidate.reply("GET", "/readyz")).status === 200 && candidate;
    });
    return new ClusterProcess(kubeconfig, client, started);
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.process.kill();
  }
}

/**
 * `watchfire start` in a separate process, which can be killed and restarted on the same folder any number of times.
 */
export class RuntimeProcess {
  readonly logFile: string;
  private readonly folder: string;
  private readonly kubeconfig: string;
  private readonly functions: string;
  private readonly more: readonly string[];
  private process: LeashedProcess | undefined;
  private address = "";

  /** @param more of the command line. */
  constructor(folder: string, kubeconfig: string, functions: string, more: readonly string[] = []) {
    this.more = more;
    this.logFile = join(folder, "runtime.log");
    this.folder = folder;
    this.kubeconfig = kubeconfig;
    this.functions = functions;
  }

  /** Resolves when it reports readiness: its first list, or what it missed, is received. */
  async start(): Promise<void> {
    this.address = `127.0.0.1:${await freePort()}`;
    const folders = ["--functions", this.functions, "--data", join(this.folder, "data")];
    const args = ["start", ...folders, "--kubeconfig", this.kubeconfig, "--listen", this.address, ...this.more];
    const started = new LeashedProcess(process.execPath, [bin, ...args], this.logFile);
    this.process = started;
    await until("the runtime is ready", 60_000, async () => {
      if (started.exitStatus !== null) throw new Hopeless(`the runtime ended with status ${started.exitStatus}`);
      return (await this.read("/readyz")).status === 200;
    });
  }

  /** Reads one of its endpoints. */
  read(path: "/livez" | "/readyz" | "/status" | "/metrics"): Promise<Response> {
    return fetch(`http://${this.address}${path}`);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.process?.kill();
  }
}

export function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
