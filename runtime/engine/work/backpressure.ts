import type { Clock, Timer } from "../../base/clock.ts";
import type { FairShare } from "./fair-scheduler.ts";
import { freeAt, type MemoryLimit, type Spill } from "./spill.ts";

/** The share of memory at which a function without disk is full. */
const fullAt = 0.75;

/**
 * The share of memory at which a function's sources begin to wait (500 events). With more, a collection of young objects finds
 * most of them alive, and copies them twice before they end. Sources continue at `goOnShare` of it (350 events).
 */
const waitAt = 0.5;
const goOnShare = 0.7;

/** The interval between checks whether waiting for a function is worthwhile, in milliseconds. */
const lookMs = 500;

/** The longest such interval for a full function whose events do not end, in milliseconds. */
const mostStuckMs = 10_000;

/** The function's lanes that only wait for its turn, and the limit on them. */
interface WaitsForTurn {
  readonly ready: { readonly length: number };
  readonly share: Pick<FairShare, "readyLimit"> & { readonly time: Pick<FairShare["time"], "isOverShare"> };
}

/** The use of memory and disk that decides who waits. */
type Room = Pick<Spill, "fill" | "diskFill" | "onDisk" | "isSpent" | "holdsQueues">;

/**
 * Decides whether a function's sources wait for it. An event that will soon be handled is cheaper left in the socket: writing it
 * to disk and reading it back costs more than everything else together.
 *
 * Sources wait for a function that handles as much as it may hold every half second: 500 events. They also wait for one that only
 * waits for its turn, with all the lanes that may do so. A slower function spills to disk, and holds up no source. Its speed can
 * be measured only while it is behind, and is remembered, so a slow function holds its sources up once, for one check.
 *
 * A function that exceeds its share of the main thread's time has to be measured as quick first; otherwise each such function
 * would cost the others a check. A slow function that may write no more to disk is full: it accepts nothing. Its sources continue
 * without it, and it rejoins them from its checkpoint. A function that exceeds its share of the main thread's time may keep no more
 * on disk than in memory, since each of those bytes takes the thread twice.
 */
export class Backpressure {
  private readonly clock: Clock;
  private readonly spill: Room;
  private readonly limit: MemoryLimit;
  private readonly turn: WaitsForTurn;
  private held: PromiseWithResolvers<void> | undefined;
  private refusing: PromiseWithResolvers<void> | undefined;
  private timer: Timer | undefined;
  private refusalTimer: Timer | undefined;
  /** Milliseconds without an ended event after which a full function accepts events again. */
  private stuckMs = lookMs;
  /** The events that ended since that was last checked. */
  private ended = 0;
  private quick = true;
  /** Whether the last check, since the function fell behind, has measured it as quick. */
  private isSeenQuick = false;
  private stopped = false;
  /** The events, and bytes of their bodies, that ended since the last check. */
  private events = 0;
  private bytes = 0;

  constructor(clock: Clock, spill: Room, limit: MemoryLimit, turn: WaitsForTurn) {
    this.clock = clock;
    this.spill = spill;
    this.limit = limit;
    this.turn = turn;
  }

  /** Whether it holds more than that part of the amount at which sources wait. */
  private exceeds(part: number): boolean {
    const { ready, share } = this.turn;
    return this.spill.fill > part * waitAt || ready.length > part * share.readyLimit;
  }

  /** Whether the maximum of lanes is ready, and waits for other functions' turns. Lanes that wait for a retry do not count. */
  private get waitsForTurn(): boolean {
    return this.turn.ready.length >= this.turn.share.readyLimit;
  }

  /** A pending promise while sources should wait. */
  get congested(): Promise<void> | undefined {
    if (this.stopped || (this.spill.fill < waitAt && !this.waitsForTurn)) return undefined;
    this.watch();
    if (!this.isWorthWaiting) return undefined;
    this.held ??= Promise.withResolvers<void>();
    return this.held.promise;
  }

  private get isWorthWaiting(): boolean {
    if (!this.quick || this.isSeenQuick || !this.turn.share.time.isOverShare) return this.quick;
    return !this.spill.holdsQueues && this.spill.fill >= fullAt;
  }

  /** Whether a function without disk is slow, and its memory so full that it should accept nothing. */
  get isShort(): boolean {
    const { holdsQueues, fill } = this.spill;
    return !holdsQueues && !this.quick && !this.refusing && fill >= fullAt;
  }

  /**
   * A pending promise while the function accepts nothing, because it is slow, and has no room left. A list in progress stops
   * only if the disk is used up, because the next list would start again.
   */
  full(isListing = false): Promise<void> | undefined {
    const { spill, turn, limit } = this;
    if (this.stopped || (isListing && spill.holdsQueues && !spill.isSpent)) return undefined;
    if (this.refusing) return this.refusing.promise;
    const isOutOfDisk = spill.isSpent || (turn.share.time.isOverShare && spill.onDisk >= limit.bytes);
    if (spill.holdsQueues ? !isOutOfDisk : !this.isShort) return undefined;
    this.refusing = Promise.withResolvers<void>();
    if (spill.holdsQueues) this.lookWhetherStuck();
    return this.refusing.promise;
  }

  /** Whether what waits has become so little that a full function accepts events again. */
  private get hasDrained(): boolean {
    const { holdsQueues, diskFill, onDisk, fill } = this.spill;
    if (!holdsQueues) return fill <= freeAt;
    return diskFill <= freeAt && onDisk <= freeAt * this.limit.bytes;
  }

  /**
   * Accepts events again if no event ended since the last check and the function is within its share of time. Its events then wait
   * for a retry or a pause, which may be long. The interval doubles each time, until enough has ended.
   */
  private lookWhetherStuck(): void {
    this.ended = 0;
    this.refusalTimer = this.clock.after(
      this.stuckMs,
      () => {
        if (!this.refusing) return;
        const isStuck = this.ended === 0 && !this.turn.share.time.isOverShare && this.spill.diskFill <= freeAt;
        if (!isStuck) return this.lookWhetherStuck();
        this.stuckMs = Math.min(2 * this.stuckMs, mostStuckMs);
        this.accept();
      },
      { unref: true },
    );
  }

  /** Whether it accepts nothing. */
  get isFull(): boolean {
    return this.refusing !== undefined;
  }

  /** Records that an event of so many bytes has ended. */
  left(bytes: number): void {
    this.events++;
    this.bytes += bytes;
    this.ended++;
    if (!this.refusing || !this.hasDrained) return;
    this.stuckMs = lookMs;
    this.accept();
  }

  /** Called when the result of an attempt has been acted on: lets waiting sources continue if they may. */
  moved(): void {
    if (this.held && !(this.exceeds(goOnShare) && this.isWorthWaiting)) this.free();
  }

  /** Stops holding up sources. */
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
    // Events that wait for a retry leave memory without ending, so `moved` is not called for them.
    if (!this.quick || !isFilled) this.free();
    if (isFilled) this.watch();
  }

  /**
   * Whether the function is quick, by the events that ended since the last check. Waiting for other functions' turns does not
   * count as slow, unless events are on disk.
   */
  private get isQuick(): boolean {
    const { events, bytes } = this.limit;
    const isWaiting = this.waitsForTurn && this.spill.fill < 1;
    return isWaiting || this.events >= waitAt * events || this.bytes >= waitAt * bytes;
  }

  private accept(): void {
    this.refusalTimer?.cancel();
    this.refusing?.resolve();
    this.refusing = undefined;
  }

  private free(): void {
    this.held?.resolve();
    this.held = undefined;
  }
}
