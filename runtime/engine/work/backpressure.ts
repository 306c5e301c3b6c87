import type { Clock, Timer } from "../../base/clock.ts";
import type { FairShare } from "./fair-scheduler.ts";
import { freeAt, type MemoryLimit, type Spill } from "./spill.ts";

/** How full a function's memory is when it is full, where it has no disk. */
const fullAt = 0.75;

/**
 * How full it is at most when its sources begin to wait: 500 events. Of more, a collection of young objects finds most still there,
 * and has them twice before they are over. They go on at this share of it: 350 events.
 */
const waitAt = 0.5;
const goOnShare = 0.7;

/** How often it is looked whether waiting for a function is worth it, in milliseconds. */
const lookMs = 500;

/** What a function has that only waits for its turn: how many lanes, and how many of these may. */
interface WaitsForTurn {
  readonly ready: { readonly length: number };
  readonly place: Pick<FairShare, "share" | "isOverShare">;
}

/** How full memory and disk are, as far as it matters who waits. */
type Room = Pick<Spill, "fill" | "diskFill" | "isSpent" | "holdsQueues">;

/**
 * Whether a function's sources should wait for it. An event that will soon be handled is cheaper left in the socket.
 * Writing it to disk and reading it back costs more than everything else together. So sources wait for a function that
 * gets through as much as it may hold, every half second: 500 events. They wait as well for one that waits for its turn
 * with its share of what may wait for that. A slower one goes to disk and holds nobody up. How quick it is shows only while it is behind, and is remembered: a slow
 * one holds its sources up once, for one look. One that is over its share of the
 * parent's time has to be seen to be quick first. Otherwise each such function would cost the others that look. One that is slow and may write no more is full: it takes
 * nothing. Its sources go on without it, and it joins them again where it stands.
 */
export class Backpressure {
  private readonly clock: Clock;
  private readonly spill: Room;
  private readonly limit: MemoryLimit;
  private readonly turn: WaitsForTurn;
  private held: PromiseWithResolvers<void> | undefined;
  private refusing: PromiseWithResolvers<void> | undefined;
  private timer: Timer | undefined;
  private quick = true;
  /** Whether the last look, since it is behind, has shown that. */
  private isSeenQuick = false;
  private stopped = false;
  /** Events, and bytes of their bodies, that ended since the last look. */
  private events = 0;
  private bytes = 0;

  constructor(clock: Clock, spill: Room, limit: MemoryLimit, turn: WaitsForTurn) {
    this.clock = clock;
    this.spill = spill;
    this.limit = limit;
    this.turn = turn;
  }

  /** Whether it holds more than such a part of what makes its sources wait. */
  private exceeds(part: number): boolean {
    const { ready, place } = this.turn;
    return this.spill.fill > part * waitAt || ready.length > part * place.share;
  }

  private get isBehind(): boolean {
    return this.spill.fill >= waitAt || this.waitsForTurn;
  }

  /** Whether as much of it as may is ready, and waits for others' turns alone: what waits for a retry is none of that. */
  private get waitsForTurn(): boolean {
    return this.turn.ready.length >= this.turn.place.share;
  }

  /** A promise while sources should wait. */
  get congested(): Promise<void> | undefined {
    if (this.stopped || !this.isBehind) return undefined;
    this.watch();
    if (!this.isWorthWaiting) return undefined;
    this.held ??= Promise.withResolvers<void>();
    return this.held.promise;
  }

  private get isWorthWaiting(): boolean {
    if (!this.quick || this.isSeenQuick || !this.turn.place.isOverShare) return this.quick;
    return !this.spill.holdsQueues && this.spill.fill >= fullAt;
  }

  /** Whether it is slow, and memory is so full that it would take nothing: of one that has no disk. */
  get isShort(): boolean {
    const { holdsQueues, fill } = this.spill;
    return !holdsQueues && !this.quick && !this.refusing && fill >= fullAt;
  }

  /** A promise while the function takes nothing: it is slow, and there is no room for what it cannot take. */
  get full(): Promise<void> | undefined {
    if (this.stopped || this.refusing) return this.refusing?.promise;
    const { spill } = this;
    if (spill.holdsQueues ? !spill.isSpent : !this.isShort) return undefined;
    this.refusing = Promise.withResolvers<void>();
    return this.refusing.promise;
  }

  /** Whether it takes nothing. */
  get isFull(): boolean {
    return this.refusing !== undefined;
  }

  /** An event of so many bytes has ended. */
  left(bytes: number): void {
    this.events++;
    this.bytes += bytes;
    const { holdsQueues, diskFill, fill } = this.spill;
    if (this.refusing && (holdsQueues ? diskFill : fill) <= freeAt) this.accept();
  }

  /** An attempt has come back, and what becomes of its event is settled: perhaps nobody has to wait any more. */
  moved(): void {
    if (this.held && !(this.exceeds(goOnShare) && this.isWorthWaiting)) this.free();
  }

  /** Holds nobody up any more. */
  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.free();
    this.accept();
  }

  private watch(): void {
    if (this.timer) return;
    this.events = this.bytes = 0;
    this.timer = this.clock.after(lookMs, () => this.look(), { unref: true });
  }

  private look(): void {
    this.timer = undefined;
    this.quick = this.isQuick;
    const isFilled = this.exceeds(goOnShare);
    this.isSeenQuick = this.quick && isFilled;
    // What waits for a retry leaves memory without an end that would say so.
    if (!this.quick || !isFilled) this.free();
    if (isFilled) this.watch();
  }

  /** By what has ended since the last look. Who waits for others' turns is not slow. What is on disk shows who was. */
  private get isQuick(): boolean {
    const { events, bytes } = this.limit;
    const isWaiting = this.waitsForTurn && this.spill.fill < 1;
    return isWaiting || this.events >= waitAt * events || this.bytes >= waitAt * bytes;
  }

  private accept(): void {
    this.refusing?.resolve();
    this.refusing = undefined;
  }

  private free(): void {
    this.held?.resolve();
    this.held = undefined;
  }
}
