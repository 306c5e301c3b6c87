import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { executorProgram, executorSurroundings } from "./executor-program.ts";
import { MemoryWatch } from "./resident-memory.ts";
import { cap, keyFile, kill, maxWardenFrame, start, wardenFrame } from "./warden-frames.ts";
import { encodeFrame, type Frame, FrameReader } from "./wire.ts";

/** Milliseconds between two tries to reach the parent, and between two words about an executor's memory. */
const reconnectMs = 250;
const seenMs = 1000;

interface Kept {
  readonly child: ChildProcess;
  readonly memory: MemoryWatch;
}

/**
 * Starts executors in this container for the parent at the other end of a socket, watches their memory, and kills them when
 * told to. Runs no code of any function itself. Connects again, for ever, when the parent goes; no executor outlives it.
 */
export class ExecutorWarden {
  private readonly path: string;
  private readonly kept = new Map<number, Kept>();
  private readonly caps = new Map<number, number>();
  private wire: Socket | undefined;
  private closed = false;

  constructor(path: string) {
    this.path = path;
  }

  /** Resolves once `signal` has aborted and all executors are told to end. */
  async serve(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.close());
    while (!this.closed) {
      await this.attend();
      if (!this.closed) await new Promise((resolve) => setTimeout(resolve, reconnectMs));
    }
  }

  /** One connection, to its end. */
  private attend(): Promise<void> {
    return new Promise((resolve) => {
      const wire = connect(this.path);
      this.wire = wire;
      const reader = new FrameReader(maxWardenFrame);
      wire.on("connect", () => {
        try {
          this.tell(wardenFrame.greet, { key: readFileSync(keyFile(this.path), "utf8") });
        } catch {
          wire.destroy(); // the key is laid a moment after the parent sees the last warden go
        }
      });
      wire.on("data", (chunk: Buffer) => {
        for (const frame of reader.push(chunk)) this.obey(frame);
      });
      wire.on("error", () => wire.destroy());
      wire.on("close", () => {
        this.wire = undefined;
        for (const { child } of this.kept.values()) child.kill("SIGKILL");
        resolve();
      });
    });
  }

  private obey({ type, header }: Frame): void {
    const value: unknown = JSON.parse(header);
    if (type === wardenFrame.start) this.start(start.parse(value));
    else if (type === wardenFrame.cap) {
      const { id, bytes } = cap.parse(value);
      this.caps.set(id, bytes);
      const kept = this.kept.get(id);
      if (kept) kept.memory.cap = bytes;
    } else if (type === wardenFrame.kill) this.kept.get(kill.parse(value).id)?.child.kill("SIGKILL");
  }

  /** The executor gets a connection of its own as its one descriptor; this process lets go of it unread. */
  private start({ id, token }: { id: number; token: string }): void {
    const stream = connect(this.path);
    stream.pause();
    stream.on("error", (error) =>
      this.tell(wardenFrame.exited, { id, peak: 0, reason: "exited", detail: error.message }),
    );
    stream.on("connect", () => {
      stream.write(Buffer.concat(encodeFrame(wardenFrame.join, { token })), () => {
        const child = spawn(process.execPath, executorProgram(), {
          ...executorSurroundings,
          stdio: ["ignore", "ignore", "ignore", stream],
        });
        stream.destroy();
        this.keep(id, child);
      });
    });
  }

  private keep(id: number, child: ChildProcess): void {
    let reason: "memory" | "exited" = "exited";
    let why: string | undefined;
    const memory = new MemoryWatch(child.pid, this.caps.get(id) ?? Number.POSITIVE_INFINITY, (detail) => {
      reason = "memory";
      why = detail;
      child.kill("SIGKILL");
    });
    this.kept.set(id, { child, memory });
    const report = setInterval(() => this.tell(wardenFrame.seen, { id, peak: memory.peak }), seenMs);
    const gone = (detail: string) => {
      clearInterval(report);
      memory.stop();
      if (!this.kept.delete(id)) return;
      this.caps.delete(id);
      this.tell(wardenFrame.exited, { id, peak: memory.peak, reason, detail: why ?? detail });
    };
    child.on("error", (error) => gone(error.message.slice(0, 400)));
    child.on("exit", (code, signal) => gone(signal ?? `status ${code}`));
  }

  private tell(type: number, header: unknown): void {
    this.wire?.write(Buffer.concat(encodeFrame(type, header)));
  }

  private close(): void {
    this.closed = true;
    this.wire?.destroy();
  }
}
