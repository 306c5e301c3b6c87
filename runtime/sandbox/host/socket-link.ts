import type { Socket } from "node:net";
import type { Link, LinkListener } from "./link.ts";

/** Milliseconds after a kill in which the warden should have said that the process is gone. */
const goneMs = 1000;

/** What a link needs of the one connection to the warden. */
interface SupervisorWire {
  cap(id: number, bytes: number): void;
  kill(id: number): void;
}

/** An executor that a warden started: a connection of its own for bytes, the warden's for power over its life. */
export class SocketLink implements Link {
  readonly id: number;
  readonly pid = undefined;
  peakMemory = 0;
  private readonly warden: SupervisorWire;
  private readonly listener: LinkListener;
  private readonly early: { readonly bytes: Buffer; readonly taken: (() => void) | undefined }[] = [];
  private paused = false;
  private stream: Socket | undefined;
  private memoryCap: number | undefined;
  private over = false;

  constructor(id: number, warden: SupervisorWire, listener: LinkListener) {
    this.id = id;
    this.warden = warden;
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
    this.warden.cap(this.id, bytes);
  }

  kill(): void {
    this.warden.kill(this.id);
    setTimeout(() => this.end("exited", "killed"), goneMs).unref();
  }

  /** The warden has been asked for it: what it should know. From now on the process has so long to speak. */
  started(): void {
    if (this.memoryCap !== undefined) this.warden.cap(this.id, this.memoryCap);
    process.nextTick(() => {
      if (!this.over) this.listener.opened();
    });
  }

  /** Its process has connected; the stream is paused, and flows unless the link is. */
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

  /** It is gone. What it had said before may still be on its way; a moment for that. */
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
