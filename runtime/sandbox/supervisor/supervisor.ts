import type { ChildProcess } from "node:child_process";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { type Clock, pause, type Timer } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { MemoryWatch } from "../../v8/resident-memory.ts";
import { executorProgram, ownConfinement, spawnExecutor } from "../executor-program.ts";
import type { ExecutorRights } from "../rights.ts";
import { StartupError } from "../startup-error.ts";
import { encodeFrame, type Frame, FrameReader } from "../wire.ts";
import { memoryKills, memoryLimit } from "./container-memory.ts";
import { cap, keyFile, kill, maxSupervisorFrame, start, supervisorFrame } from "./frames.ts";

/**
 * Milliseconds that the parent gets to let its handlers finish and to close the connection, when this process is asked to stop.
 * It is a pod's default grace period, and more than the parent's drain takes.
 */
const farewellMs = 30_000;
/** Milliseconds between two attempts to connect to the parent, and between two reports of an executor's memory. */
const reconnectMs = 250;
const seenMs = 1000;

interface WatchedChild {
  readonly child: ChildProcess;
  readonly memory: MemoryWatch;
}

/**
 * Starts executors in this container for the parent at the other end of a socket, watches their memory, and kills them on
 * request. Runs no function's code itself. It retries until it is connected and serves one parent. When that connection closes after it
 * has started an executor, it ends, since a guest may have escaped by then. As process 1 of its container it takes all other processes with it.
 */
export class Supervisor {
  private readonly path: string;
  private readonly clock: Clock;
  private readonly kept = new Map<number, WatchedChild>();
  private readonly caps = new Map<number, number>();
  private wire: Socket | undefined;
  private isAttached = false;
  /** Whether it has started an executor, so that a guest's code may exist in this container. */
  private hasServed = false;
  private farewell: Timer | undefined;
  private readonly memoryKills: () => number;
  private readonly memoryKillsBefore: number;
  private readonly spent = new AbortController();

  /** `kills` returns how many processes of this container the kernel has killed for lack of memory. */
  constructor(path: string, clock: Clock, kills: () => number = memoryKills) {
    this.path = path;
    this.clock = clock;
    this.memoryKills = kills;
    this.memoryKillsBefore = kills();
  }

  /**
   * Serves until the parent has closed the connection and all executors have been killed. After `signal` has aborted, the parent
   * gets `farewellMs` for that and may still start executors, because handlers that have begun must be able to finish.
   * @throws WatchfireError WF_SANDBOX_CONTAINER_MEMORY if the kernel killed an executor because the container reached its memory
   * limit. With cgroups version 2 the kernel kills the whole container at once. With version 1 the rest would continue, and the
   * pod would not show that it happened.
   */
  async serve(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.stop(), { once: true });
    const over = AbortSignal.any([signal, this.spent.signal]);
    while (!over.aborted) {
      await this.attend();
      if (this.hasServed) break;
      await pause(this.clock, reconnectMs, over).catch(() => undefined);
    }
    this.farewell?.cancel();
    if (this.spent.signal.aborted) {
      throw new WatchfireError("WF_SANDBOX_CONTAINER_MEMORY", { what: "the kernel killed an executor" });
    }
  }

  /** Handles one connection until it closes. */
  private attend(): Promise<void> {
    return new Promise((resolve) => {
      const wire = connect(this.path);
      this.wire = wire;
      const reader = new FrameReader(maxSupervisorFrame);
      wire.on("connect", () => {
        this.isAttached = true;
        try {
          const key = readFileSync(keyFile(this.path), "utf8");
          this.send(supervisorFrame.greet, {
            key,
            rights: rightsIn(dirname(this.path)),
            memory: memoryLimit(),
            cores: availableParallelism(),
          });
        } catch {
          wire.destroy(); // the parent writes the key a second after the last supervisor disconnected
        }
      });
      wire.on("data", (chunk: Buffer) => {
        for (const frame of reader.push(chunk)) this.obey(frame);
      });
      wire.on("error", () => wire.destroy());
      wire.on("close", () => {
        this.wire = undefined;
        this.isAttached = false;
        for (const { child } of this.kept.values()) child.kill("SIGKILL");
        resolve();
      });
    });
  }

  private obey({ type, header }: Frame): void {
    const value: unknown = JSON.parse(header);
    if (type === supervisorFrame.start) this.start(start.parse(value));
    else if (type === supervisorFrame.cap) {
      const { id, bytes } = cap.parse(value);
      this.caps.set(id, bytes);
      const kept = this.kept.get(id);
      if (kept) kept.memory.cap = bytes;
    } else if (type === supervisorFrame.kill) this.kept.get(kill.parse(value).id)?.child.kill("SIGKILL");
  }

  /** Starts an executor with a new connection as its only descriptor. This process closes its copy without reading from it. */
  private start({ id, token, jitless }: { id: number; token: string; jitless: boolean }): void {
    this.hasServed = true;
    const stream = connect(this.path);
    stream.pause();
    stream.on("error", (error) =>
      this.send(supervisorFrame.exited, { id, peak: 0, reason: "exited", detail: error.message }),
    );
    stream.on("connect", () => {
      stream.write(Buffer.concat(encodeFrame(supervisorFrame.join, { id, token })), () => {
        const child = spawnExecutor(executorProgram({ jitless }), stream);
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
    const report = setInterval(() => this.send(supervisorFrame.seen, { id, peak: memory.peak }), seenMs);
    const gone = (detail: string) => {
      clearInterval(report);
      memory.stop();
      if (!this.kept.delete(id)) return;
      this.caps.delete(id);
      const spent = why === undefined && this.memoryKills() > this.memoryKillsBefore;
      if (spent) [reason, why] = ["memory", "the executors' container is at its memory limit"];
      this.send(supervisorFrame.exited, { id, peak: memory.peak, reason, detail: why ?? detail });
      if (!spent) return;
      this.spent.abort();
      this.wire?.end();
    };
    child.on("error", (error) => gone(error.message.slice(0, 400)));
    const error = new StartupError(child.stderr);
    child.on("exit", (code, signal) => error.explain(signal ?? `status ${code}`, gone));
  }

  private send(type: number, header: unknown): void {
    this.wire?.write(Buffer.concat(encodeFrame(type, header)));
  }

  private stop(): void {
    const hangUp = () => this.wire?.destroy();
    if (this.isAttached) this.farewell = this.clock.after(farewellMs, hangUp);
    else hangUp();
  }
}

/** The rights of executors here, including access to the socket's folder. */
function rightsIn(folder: string): Omit<ExecutorRights, "jit"> {
  const { rights } = ownConfinement();
  const isOpen = rights.user === "separate" ? (statSync(folder).mode & 0o002) !== 0 : isWritable(folder);
  return { ...rights, socketFolder: isOpen ? "writable" : "read-only" };
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
