import type { Clock } from "../../base/clock.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "../wire.ts";
import { type DownFrame, readUpFrame, type UpFrame } from "./frames.ts";
import type { Launch, Link } from "./link.ts";
import { SilenceTimer } from "./silence-timer.ts";
import { UsageShare } from "./usage-share.ts";

/** Why an executor died. */
export type DeathReason = "memory" | "silent" | "breach" | "stuck" | "exited" | "closed" | "refused";

/** Callbacks of one executor process. */
interface ExecutorListener {
  frame(frame: UpFrame): void;
  /** It accepts data again after `isFull`. */
  room(): void;
  died(reason: DeathReason, detail: string): void;
}

/** Settings shared by all executors of a sandbox. */
export interface ExecutorSettings {
  /** The guest's bootstrap script. */
  readonly guest: string;
  readonly clock: Clock;
  readonly launch: Launch;
  readonly idleMs: number;
  readonly recycleEvents: number;
}

/** Milliseconds between two heartbeats, and of silence after which an executor is considered dead. */
const heartbeatMs = 200;
const silenceMs = 3000;
/**
 * Milliseconds of silence allowed before the first frame. Node starts in 80 ms of CPU time, which can take long on a busy
 * machine.
 */
const startMs = 30_000;
/** Milliseconds within which it must read some of the sent data: enough for the largest frame on a busy machine. */
const takeMs = 10_000;

/** Bytes sent and not yet read by the executor, beyond which it is sent no replies and no events, and is not read either. */
const mostUntaken = 32 * 2 ** 20;

/**
 * Maximum number of frames of an executor per period of `framePeriodMs`. Beyond that it has been taken over: an honest one sends
 * two frames per entry, and an entry takes at least 20 us. Reading more would keep the parent from its work.
 */
const maxFrames = 25_000;
const framePeriodMs = 250;

/**
 * Limits for reading one executor. `cpuShare`: milliseconds of this process' CPU time, per millisecond and in a burst.
 * `byteShare`: bytes, likewise. Beyond them it is read later. An honest executor under full load uses a third of that.
 */
const cpuShare = { perMs: 0.5, burst: 20 };
const byteShare = { perMs: 256 * 1024, burst: 32 * 2 ** 20 };

const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** One executor process and its supervision. It is treated as hostile. */
export class ExecutorProcess {
  private readonly clock: Clock;
  private readonly listener: ExecutorListener;
  private readonly link: Link;
  private readonly cpuMs: () => number;
  private readonly cpu = new UsageShare(cpuShare.perMs, cpuShare.burst);
  private readonly bytes = new UsageShare(byteShare.perMs, byteShare.burst);
  private readonly silence: SilenceTimer;
  private readonly stall: SilenceTimer;
  private death: { reason: DeathReason; detail: string } | undefined;
  private buried = false;
  private hasSpoken = false;
  /** Bytes sent that it has not read. */
  private untaken = 0;
  private resting = false;
  private deaf = false;
  private frames = 0;
  private framesSince = 0;

  /** `cpuMs` returns the CPU time that this thread has used, in milliseconds. */
  constructor(options: ExecutorSettings & { listener: ExecutorListener; cpuMs?: () => number }) {
    this.clock = options.clock;
    this.cpuMs = options.cpuMs ?? threadCpuMs;
    this.listener = options.listener;
    this.silence = new SilenceTimer(this.clock, (ms) => this.kill("silent", `no heartbeat for ${ms} ms`));
    this.stall = new SilenceTimer(this.clock, (ms) =>
      this.kill("breach", `it took nothing that it was sent for ${ms} ms`),
    );
    const reader = new FrameReader(maxFrameUp);
    this.link = options.launch({
      opened: () => this.silence.expect(startMs),
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

  /** Whether so much sent data is unread that no more should be sent. */
  get isFull(): boolean {
    return this.untaken >= mostUntaken;
  }

  /** Sets the resident memory in bytes at which it is killed. */
  capMemory(bytes: number): void {
    this.link.capMemory(bytes);
  }

  /** Reports whether code of functions may run in it. */
  mayRun(isPossible: boolean): void {
    this.link.mayRun?.(isPossible);
  }

  /** Sends a frame. `taken` is called once the frame has left this process, or never will. */
  send({ type, header, segments = [] }: DownFrame, taken?: () => void): void {
    if (this.isDead) {
      taken?.();
      return;
    }
    // One write of one buffer: copying some KiB costs less than as many entries in the stream's queue.
    const bytes = Buffer.concat(encodeFrame(type, header, segments));
    if (this.untaken === 0 && this.hasSpoken) this.stall.expect(takeMs);
    this.untaken += bytes.length;
    this.link.write(bytes, () => {
      this.took(bytes.length);
      taken?.();
    });
    this.listen();
  }

  /** Kills it at once. The listener is notified once it has ended. */
  kill(reason: DeathReason, detail: string): void {
    if (this.isDead) return;
    this.death = { reason, detail };
    this.link.kill();
  }

  private took(length: number): void {
    const wasFull = this.isFull;
    this.untaken -= length;
    if (this.untaken === 0) this.stall.stop();
    else if (this.hasSpoken) this.stall.expect(takeMs);
    if (!wasFull || this.isFull || this.isDead) return;
    this.listen();
    this.listener.room();
  }

  private receive(reader: FrameReader, chunk: Buffer): void {
    if (this.isDead) return;
    const startedAt = this.cpuMs();
    try {
      let count = 0;
      for (const frame of reader.push(chunk)) {
        const checked = readUpFrame(frame);
        if (!checked) {
          this.kill("breach", `a frame of type ${frame.type} is not as it should be`);
          return;
        }
        count++;
        if (checked.type === frameType.refused) {
          this.kill("refused", checked.reason);
          return;
        }
        this.listener.frame(checked);
        if (this.isDead) return;
      }
      // An incomplete frame is no sign of life: it could arrive bit by bit for ever.
      if (count > 0) this.heard(count);
    } catch (error) {
      this.kill("breach", error instanceof Error ? error.message : "a frame cannot be read");
    }
    const now = this.clock.monotonic();
    const restMs = Math.max(this.cpu.use(this.cpuMs() - startedAt, now), this.bytes.use(chunk.length, now));
    if (restMs > 0) this.rest(restMs);
  }

  private heard(frames: number): void {
    const now = this.clock.monotonic();
    if (now - this.framesSince >= framePeriodMs) {
      this.framesSince = now;
      this.frames = 0;
    }
    this.frames += frames;
    if (this.frames > maxFrames) this.kill("breach", `more than ${maxFrames} frames in ${framePeriodMs} ms`);
    if (!this.hasSpoken && this.untaken > 0) this.stall.expect(takeMs);
    this.hasSpoken = true;
    this.silence.expect(silenceMs);
  }

  /** Stops reading it for `ms` milliseconds, because it used up its share of this process. */
  private rest(ms: number): void {
    this.resting = true;
    this.listen();
    this.clock.after(ms, () => {
      this.resting = false;
      this.listen();
    });
  }

  /** Starts or stops reading it. While it is not read, its silence is not measured. */
  private listen(): void {
    const deaf = this.resting || this.isFull;
    if (deaf === this.deaf) return;
    this.deaf = deaf;
    if (deaf) {
      this.link.pause();
      this.silence.stop();
    } else {
      this.link.resume();
      if (!this.buried) this.silence.expect(this.hasSpoken ? silenceMs : startMs);
    }
  }

  private bury(reason: DeathReason, detail: string): void {
    if (this.buried) return;
    this.buried = true;
    this.silence.stop();
    this.stall.stop();
    this.listener.died(this.death?.reason ?? reason, this.death?.detail ?? detail);
  }
}
