import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Clock, Timer } from "../clock.ts";
import { requiredFlags } from "./executor/requirements.ts";
import { type DownFrame, readUpFrame, type UpFrame } from "./frames.host.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "./wire.ts";

/** Why an executor is gone. */
export type DeathReason = "memory" | "silent" | "breach" | "stuck" | "exited" | "closed" | "refused";

/** The parent's ear of one executor. */
export interface ExecutorListener {
  frame(frame: UpFrame): void;
  died(reason: DeathReason, detail: string): void;
}

/** Milliseconds between two heartbeats, and of silence after which an executor is taken for dead. */
const heartbeatMs = 200;
const silenceMs = 3000;
/** Milliseconds between two looks at an executor's memory. */
const memoryPollMs = 20;
/** Bytes of a page in /proc; 4 KiB on every platform that isolated-vm has binaries for with a /proc. */
const pageBytes = 4096;

const main = fileURLToPath(new URL("./executor/main.ts", import.meta.url));

/** Node's own permission model as a further wall: the executor may read its code and nothing else, and start nothing. */
function permissionFlags(): string[] {
  const require = createRequire(import.meta.url);
  const isolatedVm = dirname(realpathSync(require.resolve("isolated-vm/package.json")));
  const loader = dirname(
    realpathSync(createRequire(`${isolatedVm}/package.json`).resolve("node-gyp-build/package.json")),
  );
  const own = resolve(dirname(main), "..");
  return [
    "--permission",
    "--allow-addons",
    // The loader of native code looks at the last one to tell musl from glibc.
    ...[own, resolve(own, "../package.json"), isolatedVm, loader, "/etc/alpine-release"].map(
      (path) => `--allow-fs-read=${path}`,
    ),
  ];
}

/** One child process that holds isolates, and the watch over it. It is taken to be hostile. */
export class ExecutorProcess {
  private readonly clock: Clock;
  private readonly listener: ExecutorListener;
  private readonly child: ChildProcess;
  private readonly stream: Duplex;
  private memoryTimer: Timer | undefined;
  private silenceTimer: Timer | undefined;
  private death: { reason: DeathReason; detail: string } | undefined;
  private buried = false;
  private lastHeard = 0;
  /** Resident memory in bytes at which it is killed. */
  memoryCap: number;
  /** The highest resident memory seen, in bytes. */
  peakMemory = 0;

  constructor(options: { guest: string; memoryCap: number; clock: Clock; listener: ExecutorListener }) {
    this.clock = options.clock;
    this.listener = options.listener;
    this.memoryCap = options.memoryCap;
    this.child = spawn(
      process.execPath,
      [...requiredFlags, ...permissionFlags(), "--disable-warning=ExperimentalWarning", main],
      {
        cwd: "/",
        env: { TZ: "UTC" },
        stdio: ["ignore", "ignore", "ignore", "pipe"],
      },
    );
    this.stream = this.child.stdio[3] as Duplex;
    this.child.on("error", (error) => this.bury("exited", error.message));
    this.child.on("exit", (code, signal) => this.exited(code, signal));
    const reader = new FrameReader(maxFrameUp);
    this.stream.on("data", (chunk: Buffer) => this.receive(reader, chunk));
    this.stream.on("error", () => this.kill("exited", "the stream broke"));
    this.send({ type: frameType.hello, header: { heartbeatMs }, segments: [Buffer.from(options.guest)] });
    this.heard();
    this.pollMemory();
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get isDead(): boolean {
    return this.death !== undefined || this.buried;
  }

  send({ type, header, segments = [] }: DownFrame): void {
    if (this.isDead) return;
    // One write of one buffer: copying some KiB costs less than as many entries in the stream's queue.
    this.stream.write(Buffer.concat(encodeFrame(type, header, segments)));
  }

  /** Ends it at once. The listener hears of it when it is gone. */
  kill(reason: DeathReason, detail: string): void {
    if (this.isDead) return;
    this.death = { reason, detail };
    this.child.kill("SIGKILL");
  }

  private receive(reader: FrameReader, chunk: Buffer): void {
    if (this.isDead) return;
    try {
      for (const frame of reader.push(chunk)) {
        const checked = readUpFrame(frame);
        if (!checked) {
          this.kill("breach", `a frame of type ${frame.type} is not as it should be`);
          return;
        }
        this.heard();
        if (checked.type === frameType.refused) {
          this.kill("refused", checked.reason);
          return;
        }
        this.listener.frame(checked);
        if (this.isDead) return;
      }
    } catch (error) {
      this.kill("breach", error instanceof Error ? error.message : "a frame cannot be read");
    }
  }

  private heard(): void {
    this.lastHeard = this.clock.monotonic();
    this.silenceTimer ??= this.clock.after(silenceMs, () => this.listen(), { unref: true });
  }

  private listen(): void {
    this.silenceTimer = undefined;
    if (this.isDead) return;
    const left = this.lastHeard + silenceMs - this.clock.monotonic();
    if (left <= 0) this.kill("silent", `no heartbeat for ${silenceMs} ms`);
    else this.silenceTimer = this.clock.after(left, () => this.listen(), { unref: true });
  }

  private pollMemory(): void {
    if (this.isDead) return;
    const bytes = residentBytes(this.child.pid);
    if (bytes > this.peakMemory) this.peakMemory = bytes;
    if (bytes > this.memoryCap) {
      this.kill(
        "memory",
        `${Math.round(bytes / 2 ** 20)} MiB resident, cap ${Math.round(this.memoryCap / 2 ** 20)} MiB`,
      );
      return;
    }
    this.memoryTimer = this.clock.after(memoryPollMs, () => this.pollMemory(), { unref: true });
  }

  private exited(code: number | null, signal: string | null): void {
    const { reason, detail } = this.death ?? { reason: "exited", detail: signal ?? `status ${code}` };
    // What it wrote before its end is still in the pipe: who was inside what is told there.
    if (this.stream.readableEnded || this.stream.destroyed) this.bury(reason, detail);
    else {
      this.stream.once("close", () => this.bury(reason, detail));
      this.stream.once("end", () => this.bury(reason, detail));
    }
  }

  private bury(reason: DeathReason, detail: string): void {
    if (this.buried) return;
    this.buried = true;
    this.memoryTimer?.cancel();
    this.silenceTimer?.cancel();
    this.stream.destroy();
    this.listener.died(reason, detail);
  }
}

/** Resident memory of a process; 0 where the platform has no /proc, and the container's limit has to do. */
function residentBytes(pid: number | undefined): number {
  try {
    const pages = readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1];
    return Number(pages) * pageBytes;
  } catch {
    return 0;
  }
}
