import type { Clock, Timer } from "../clock.ts";
import { type DownFrame, readUpFrame, type UpFrame } from "./frames.host.ts";
import type { Launch, Link } from "./link.host.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "./wire.ts";

/** Why an executor is gone. */
export type DeathReason = "memory" | "silent" | "breach" | "stuck" | "exited" | "closed" | "refused";

/** The parent's ear of one executor. */
export interface ExecutorListener {
  frame(frame: UpFrame): void;
  died(reason: DeathReason, detail: string): void;
}

/** What every executor of a sandbox is made with. */
export interface ExecutorSettings {
  /** The guest's bootstrap. */
  readonly guest: string;
  readonly clock: Clock;
  readonly launch: Launch;
  readonly idleMs: number;
  readonly recycleEvents: number;
}

/** Milliseconds between two heartbeats, and of silence after which an executor is taken for dead. */
const heartbeatMs = 200;
const silenceMs = 3000;
/** Milliseconds of silence before its first word: Node starts in 80 ms of CPU, for which a busy machine may take long. */
const startMs = 30_000;
/** Milliseconds in which this process reads what waits for it, if it was itself that stood still. */
const catchUpMs = 50;

/**
 * Frames of an executor within a period of so many milliseconds, beyond which it is no executor of ours: an honest one
 * sends two an entry, and an entry takes 20 us at least. Reading them would keep the parent from its work.
 */
const maxFrames = 25_000;
const framePeriodMs = 250;

/** One process that holds isolates, and the watch over it. It is taken to be hostile. */
export class ExecutorProcess {
  private readonly clock: Clock;
  private readonly listener: ExecutorListener;
  private readonly link: Link;
  private silenceTimer: Timer | undefined;
  private death: { reason: DeathReason; detail: string } | undefined;
  private buried = false;
  private lastHeard = 0;
  private patienceMs = startMs;
  private isCatchingUp = false;
  private frames = 0;
  private framesSince = 0;

  constructor(options: ExecutorSettings & { listener: ExecutorListener }) {
    this.clock = options.clock;
    this.listener = options.listener;
    const reader = new FrameReader(maxFrameUp);
    this.link = options.launch({
      opened: () => this.heard(),
      data: (chunk) => this.receive(reader, chunk),
      ended: (reason, detail) => this.bury(reason, detail),
    });
    const { idleMs, recycleEvents } = options;
    const header = { heartbeatMs, idleMs, recycleEvents };
    this.send({ type: frameType.hello, header, segments: [Buffer.from(options.guest)] });
  }

  get pid(): number | undefined {
    return this.link.pid;
  }

  /** The highest resident memory seen, in bytes. */
  get peakMemory(): number {
    return this.link.peakMemory;
  }

  get isDead(): boolean {
    return this.death !== undefined || this.buried;
  }

  /** Resident memory in bytes at which it is killed. */
  capMemory(bytes: number): void {
    this.link.capMemory(bytes);
  }

  send({ type, header, segments = [] }: DownFrame): void {
    if (this.isDead) return;
    // One write of one buffer: copying some KiB costs less than as many entries in the stream's queue.
    this.link.write(Buffer.concat(encodeFrame(type, header, segments)));
  }

  /** Ends it at once. The listener hears of it when it is gone. */
  kill(reason: DeathReason, detail: string): void {
    if (this.isDead) return;
    this.death = { reason, detail };
    this.link.kill();
  }

  private receive(reader: FrameReader, chunk: Buffer): void {
    if (this.isDead) return;
    const before = this.frames;
    try {
      for (const frame of reader.push(chunk)) {
        const checked = readUpFrame(frame);
        if (!checked) {
          this.kill("breach", `a frame of type ${frame.type} is not as it should be`);
          return;
        }
        this.frames++;
        if (checked.type === frameType.refused) {
          this.kill("refused", checked.reason);
          return;
        }
        this.listener.frame(checked);
        if (this.isDead) return;
      }
      // Part of a frame is no sign of life: it could trickle in for ever.
      if (this.frames > before) {
        this.patienceMs = silenceMs;
        this.heard();
      }
    } catch (error) {
      this.kill("breach", error instanceof Error ? error.message : "a frame cannot be read");
    }
  }

  private heard(): void {
    const now = this.clock.monotonic();
    if (now - this.framesSince >= framePeriodMs) {
      this.framesSince = now;
      this.frames = 0;
    } else if (this.frames > maxFrames) this.kill("breach", `more than ${maxFrames} frames in ${framePeriodMs} ms`);
    this.lastHeard = now;
    this.isCatchingUp = false;
    this.silenceTimer ??= this.clock.after(silenceMs, () => this.listen(), { unref: true });
  }

  private listen(): void {
    this.silenceTimer = undefined;
    if (this.isDead) return;
    const left = this.lastHeard + this.patienceMs - this.clock.monotonic();
    if (left <= 0 && this.isCatchingUp) {
      this.kill("silent", `no heartbeat for ${this.patienceMs} ms`);
      return;
    }
    this.isCatchingUp = left <= 0;
    this.silenceTimer = this.clock.after(left > 0 ? left : catchUpMs, () => this.listen(), { unref: true });
  }

  private bury(reason: DeathReason, detail: string): void {
    if (this.buried) return;
    this.buried = true;
    this.silenceTimer?.cancel();
    this.listener.died(this.death?.reason ?? reason, this.death?.detail ?? detail);
  }
}
