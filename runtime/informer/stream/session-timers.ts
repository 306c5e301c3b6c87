import type { Clock, Timer } from "../../base/clock.ts";

/** A timer this late means that the process stood still; where the monotonic clock fell behind by as much, the machine slept. */
const sleptMs = 30_000;
/** How long past `timeoutSeconds` the server may take to end a watch, even if bytes still trickle. */
const overdueMs = 15_000;

interface SessionDeadlines {
  /** Silence allowed, in milliseconds; asked anew each time. */
  idleMs(): number;
  /** The `timeoutSeconds` that the server was asked for, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * The deadlines of one connection: silence, total length, and a machine that slept. Any byte resets the first; while
 * we ourselves hold the stream back, silence is our own doing and does not count. One timer serves all of them.
 */
export class SessionTimers {
  private readonly clock: Clock;
  private readonly deadlines: SessionDeadlines;
  private readonly expire: (what: "idle" | "overdue" | "suspended") => void;
  private readonly startedAt: number;
  private timer: Timer | undefined;
  private armed = { due: 0, boot: 0, monotonic: 0 };
  private heldBack = false;
  /** When the last byte came, on the monotonic clock. */
  lastByteAt: number;

  constructor(clock: Clock, deadlines: SessionDeadlines, expire: (what: "idle" | "overdue" | "suspended") => void) {
    this.clock = clock;
    this.deadlines = deadlines;
    this.expire = expire;
    this.startedAt = this.lastByteAt = clock.monotonic();
    this.arm();
  }

  /** Bytes came. */
  received(at: number): void {
    this.lastByteAt = at;
  }

  /** The allowed silence may have become shorter than it was when the timer was set. */
  tighten(): void {
    if (this.heldBack || this.lastByteAt + this.deadlines.idleMs() >= this.armed.due) return;
    this.stop();
    this.arm();
  }

  /** The stream is held back by us from now on, or no longer. */
  hold(held: boolean): void {
    this.heldBack = held;
    if (!held) this.lastByteAt = this.clock.monotonic();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private arm(): void {
    const now = this.clock.monotonic();
    const idleAt = (this.heldBack ? now : this.lastByteAt) + this.deadlines.idleMs();
    const due = Math.max(now + 1, Math.min(idleAt, this.overdueAt));
    this.armed = { due, boot: this.clock.sinceBoot(), monotonic: now };
    this.timer = this.clock.after(due - now, () => this.check());
  }

  private check(): void {
    const now = this.clock.monotonic();
    const slept = this.clock.sinceBoot() - this.armed.boot - (now - this.armed.monotonic);
    if (now - this.armed.due > sleptMs || slept > sleptMs) this.expire("suspended");
    else if (now >= this.overdueAt) this.expire("overdue");
    else if (!this.heldBack && now - this.lastByteAt >= this.deadlines.idleMs()) this.expire("idle");
    else this.arm();
  }

  private get overdueAt(): number {
    return this.startedAt + this.deadlines.timeoutMs + overdueMs;
  }
}
