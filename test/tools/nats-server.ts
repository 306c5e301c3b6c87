import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { natsProgram } from "./assets.ts";
import { Hopeless, until } from "./until.ts";

/** A separate nats-server with its own files. It never outlives this process. */
export class NatsServer {
  readonly url: string;
  readonly folder: string;
  private readonly port: number;
  private readonly args: readonly string[];
  private child: ChildProcess | undefined;

  private constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.folder = folder;
    this.args = args;
  }

  /** One that does not run yet. @param args more of its command line */
  static async make(args: readonly string[] = []): Promise<NatsServer> {
    return new NatsServer(await freePort(), mkdtempSync(join(tmpdir(), "watchfire-nats-")), args);
  }

  /** Three servers that form a cluster once they run. Each has a copy of every stream. */
  static async makeCluster(): Promise<NatsServer[]> {
    const routes = await Promise.all([freePort(), freePort(), freePort()]);
    const all = routes.map((port) => `nats://127.0.0.1:${port}`).join(",");
    const argsOf = (port: number, index: number) => [
      ...["--name", `n${index}`, "--cluster_name", "tests"],
      ...["--cluster", `nats://127.0.0.1:${port}`, "--routes", all],
    ];
    return Promise.all(routes.map((port, index) => NatsServer.make(argsOf(port, index))));
  }

  /** Pid of the process that is the server's parent. The server must run. */
  get pid(): number {
    const { pid } = this.child ?? {};
    if (pid === undefined) throw new Error("the server does not run");
    return pid;
  }

  get data(): string {
    return join(this.folder, "data");
  }

  /** Resolves when it answers. @param jetstream whether JetStream is enabled */
  async start({ jetstream = true } = {}): Promise<void> {
    const stored = jetstream ? ["-js", "-sd", this.data] : [];
    const args = ["-a", "127.0.0.1", "-p", String(this.port), ...stored, ...this.args];
    // If this process ends in any way, the pipe closes and the server is killed.
    const leash =
      'exec 3<&0; "$@" </dev/null 3<&- & pid=$!; { cat <&3 >/dev/null; kill -KILL $pid; } 2>/dev/null & wait $pid';
    const child = spawn("sh", ["-c", leash, "sh", natsProgram ?? "", ...args], { stdio: ["pipe", "ignore", "pipe"] });
    this.child = child;
    let said = "";
    child.stderr?.on("data", (data) => {
      said += data;
    });
    child.stdin?.on("error", () => {});
    await until("nats-server is ready", 20_000, async () => {
      if (child.exitCode !== null) throw new Hopeless(said);
      return said.includes("Server is ready");
    });
  }

  /** Sends it a signal. It must run. */
  signal(signal: NodeJS.Signals): void {
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, "utf8").split(" ").map(Number);
    const server = children.find((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("nats-server"));
    if (server === undefined) throw new Error("the server does not run");
    process.kill(server, signal);
  }

  /** Kills it at once. */
  async kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child || child.exitCode !== null) return;
    const over = once(child, "exit");
    child.stdin?.destroy();
    await over;
  }

  /** Ends it and removes its files. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Copies its files. It must not run. */
  copy(): string {
    const copy = join(this.folder, `copy-${crypto.randomUUID()}`);
    cpSync(this.data, copy, { recursive: true });
    return copy;
  }

  /** Removes its files. It must not run. */
  empty(): void {
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Replaces its files by a copy. It must not run. */
  restore(copy: string): void {
    rmSync(this.data, { recursive: true, force: true });
    cpSync(copy, this.data, { recursive: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address ? address.port : 0;
}
