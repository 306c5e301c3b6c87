import type { Socket } from "node:net";
import type { Link, LinkListener } from "./link.ts";

/** Milliseconds after a kill within which the supervisor should report the process' end. */
const goneMs = 1000;

/** The functions of the supervisor's connection that a link uses. */
interface SupervisorWire {
  cap(id: number, bytes: number): void;
  kill(id: number): void;
}

/**
 * An executor that a supervisor started. Its data uses a separate connection; it is killed and limited through the supervisor's.
 */
export class SocketLink implements Link {
  readonly id: number;
  readonly pid = undefined;
  peakMemory = 0;
  private readonly supervisor: SupervisorWire;
  private readonly listener: LinkListener;
  private readonly early: { readonly bytes: Buffer; readonly taken: (() => void) | undefined }[] = [];
  private paused = false;
  private stream: Socket | undefined;
  private memoryCap: number | undefined;
  private over = false;

  constructor(id: number, supervisor: SupervisorWire, listener: LinkListener) {
    this.id = id;
    this.supervisor = supervisor;
    this.listener = listener;
  }

  write(bytes: Buffer, taken?: () => void): void {
    if (this.stream) this.stream.write(bytes, taken);
    else if (!this.over) this.early.push({ bytes, taken });
    else taken?.();
  }

  pause(): void {
    this.paused = true;
    this.stream?.pause();
  }

  resume(): void {
    this.paused = false;
    this.stream?.resume();
  }

  capMemory(bytes: number): void {
    this.memoryCap = bytes;
    this.supervisor.cap(this.id, bytes);
  }

  kill(): void {
    this.supervisor.kill(this.id);
    setTimeout(() => this.end("exited", "killed"), goneMs).unref();
  }

  /** Called when the supervisor has been asked for it: sends the memory cap and starts the process' time to connect. */
  started(): void {
    if (this.memoryCap !== undefined) this.supervisor.cap(this.id, this.memoryCap);
    process.nextTick(() => {
      if (!this.over) this.listener.opened();
    });
  }

  /** Receives its process' connection. The stream is paused, and resumed unless the link is paused. */
  joined(stream: Socket): void {
    if (this.over || this.stream) {
      stream.destroy();
      return;
    }
    this.stream = stream;
    stream.on("data", (chunk: Buffer) => this.listener.data(chunk));
    stream.on("close", () => this.kill());
    if (!this.paused) stream.resume();
    for (const { bytes, taken } of this.early.splice(0)) stream.write(bytes, taken);
  }

  /** Ends the link. Data sent before the process' end may still arrive for `goneMs`. */
  end(reason: "memory" | "exited", detail: string): void {
    if (this.over) return;
    this.over = true;
    for (const { taken } of this.early.splice(0)) taken?.();
    this.resume();
    const { stream } = this;
    const bury = () => this.listener.ended(reason, detail);
    if (!stream || stream.destroyed) {
      process.nextTick(bury);
      return;
    }
    const timer = setTimeout(() => stream.destroy(), goneMs);
    stream.once("close", () => {
      clearTimeout(timer);
      bury();
    });
    stream.once("end", () => stream.destroy());
  }
}
