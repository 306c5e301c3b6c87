import type { Clock } from "../../base/clock.ts";
import { type LoopAccount, LoopTime } from "../account/loop-time.ts";

/**
 * Limit on events of brief handlers in progress, of all functions, before functions take turns. That is four turns: with two
 * executors, each has one to work at and one that waits. 100 functions on a source made 10,000 events a second without turns, and
 * 12,200 to 12,800 with them. With a limit of 512 or of 128 it was a tenth less (two cores, medians of three, 2026-11-26).
 */
const mostUnderWay = 256;
/** The number of events that a function begins in its turn: as many as one entry into its isolate takes. */
const turnEvents = 64;
/**
 * Milliseconds without any result after which a function's events no longer hold up those of others, and the interval of that
 * check. 256 events that do next to nothing end within 40 ms if both cores are busy.
 */
const stuckMs = 200;
const lookMs = 50;
/**
 * Limit on lanes with a waiting event, of all functions that take turns. With 100 functions each then has 64 for its turn. With
 * 4000 it has 30, and a twentieth fewer are handled a second. Without a limit 40,000 wait, and each collection of young objects
 * copies some of them.
 */
const mostWaiting = 8000;
/** The least number of such lanes of each function, however many functions there are. */
const leastWaiting = 16;

/**
 * Decides whose turn it is, among functions whose handlers are brief. Without turns each of a hundred functions would send an
 * event or two with each commit: a frame, an entry and an answer for little work. With turns, a function's events gather while
 * those of others are in progress.
 */
export class FairScheduler {
  readonly time: LoopTime;
  private readonly clock: Clock;
  private underWay = 0;
  /** Functions whose turn is to come, in order of arrival. */
  private readonly waiting = new Set<FairShare>();
  /** Functions that wait for their turn, or have events in progress. */
  private readonly engaged = new Set<FairShare>();
  private isWatching = false;

  constructor(clock: Clock) {
    this.clock = clock;
    this.time = new LoopTime(clock);
  }

  /** The monotonic time in milliseconds. */
  get now(): number {
    return this.clock.monotonic();
  }

  /**
   * Adds a function, and returns its share.
   * @param begin begins the waiting events; called when its turn has come
   */
  addFunction(functionName: string, begin: () => void): FairShare {
    return new FairShare(this, functionName, begin);
  }

  /**
   * Whether a function outside its turn may begin an event. If not, it is queued for its turn. A single function takes no turns.
   */
  admits(share: FairShare): boolean {
    const { waiting, engaged, underWay } = this;
    if (waiting.size === 0 && (underWay < mostUnderWay || (engaged.size === 1 && engaged.has(share)))) return true;
    this.waiting.add(share);
    this.engaged.add(share);
    this.watch();
    return false;
  }

  /**
   * Counts an event that begins.
   * @param isFirst whether the function has no other event in progress
   */
  began(share: FairShare, isFirst: boolean): void {
    this.underWay++;
    if (isFirst) this.engaged.add(share);
  }

  /** Uncounts events that have ended. */
  ended(share: FairShare, events: number): void {
    this.underWay -= events;
    this.release(share);
    if (this.waiting.size > 0) this.give();
  }

  /**
   * The number of lanes that may be ready, for a function that is queued for its turn. Others have no limit, since they wait for
   * their own handlers.
   */
  readyLimitOf(share: FairShare): number {
    if (share.isStuck || !this.waiting.has(share)) return Number.POSITIVE_INFINITY;
    return Math.max(leastWaiting, mostWaiting / this.engaged.size);
  }

  private release(share: FairShare): void {
    if (!share.isBusy && !this.waiting.has(share)) this.engaged.delete(share);
  }

  private give(): void {
    for (const share of this.waiting) {
      if (this.underWay >= mostUnderWay) return;
      this.waiting.delete(share);
      try {
        share.takeTurn();
      } finally {
        this.release(share);
      }
    }
  }

  private watch(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    const due = this.now + lookMs;
    this.clock.after(lookMs, () => this.look(due), { unref: true });
  }

  private look(due: number): void {
    this.isWatching = false;
    const { now } = this;
    // If the event loop was blocked, results that arrived meanwhile have not been read yet.
    if (now <= due + lookMs) for (const share of this.engaged) share.checkSince(now - stuckMs);
    this.give();
    if (this.waiting.size > 0) this.watch();
  }
}

/** One function's share of the turns. */
export class FairShare {
  /** Accounts for the main thread's time that the function uses. */
  readonly time: LoopAccount;
  private readonly scheduler: FairScheduler;
  private readonly begin: () => void;
  /** The number of events that it may still begin in its turn; 0 outside it. */
  private left = 0;
  private underWay = 0;
  /** Events that began in an earlier period are no longer counted. */
  private period = 1;
  /** When an event last ended, or began while there was no other in progress. */
  private lastSign = 0;
  /** Whether its events do not end. Until one does, its events take no turns, and are not counted. Written here only. */
  isStuck = false;

  constructor(scheduler: FairScheduler, functionName: string, begin: () => void) {
    this.scheduler = scheduler;
    this.begin = begin;
    this.time = scheduler.time.account(functionName, begin);
  }

  /** Whether counted events of it are in progress. */
  get isBusy(): boolean {
    return this.underWay > 0;
  }

  /** The number of lanes that may be ready here before its sources wait. */
  get readyLimit(): number {
    return this.scheduler.readyLimitOf(this);
  }

  /** Whether an event may begin now. If not, the function is queued for its turn. */
  mayBegin(): boolean {
    return this.left > 0 || this.scheduler.admits(this);
  }

  /** Records that an event begins. Returns the argument for `leave`. */
  enter(): number {
    if (this.left > 0) this.left--;
    const isFirst = this.underWay++ === 0;
    if (isFirst) this.lastSign = this.scheduler.now;
    this.scheduler.began(this, isFirst);
    return this.period;
  }

  /**
   * Records that an event has ended.
   * @param period the result of `enter`; `undefined` if the event was not counted
   */
  leave(period: number | undefined): void {
    this.lastSign = this.scheduler.now;
    this.isStuck = false;
    if (period !== this.period) return;
    this.underWay--;
    this.scheduler.ended(this, 1);
  }

  takeTurn(): void {
    this.left = turnEvents;
    try {
      this.begin();
    } finally {
      this.left = 0;
    }
  }

  /** Marks it as hanging if no event in progress has ended since then. */
  checkSince(at: number): void {
    if (this.underWay === 0 || this.lastSign > at) return;
    this.isStuck = true;
    this.writeOff();
  }

  /** Stops counting its events in progress. */
  writeOff(): void {
    const { underWay } = this;
    if (underWay === 0) return;
    this.period++;
    this.underWay = 0;
    this.scheduler.ended(this, underWay);
  }
}

/**
 * An event that ends within so many milliseconds of being sent was worth prefetching. More than the time for which a container is
 * stopped when it has used up its share of the processor (100 ms). The fewer events travel together, the more each costs.
 */
const quickMs = 250;
/**
 * Limit on events beyond those that may run: a commit, a frame and an entry carry tens of them. With 128 an event costs 5 % more
 * CPU (measured).
 */
const most = 256;
/**
 * A handler that takes no longer than this, in milliseconds, is brief. With 256 of them in progress (`mostUnderWay`), 17,000 a
 * second can still end, which is more than two cores handle if many functions are busy.
 */
const briefMs = 15;
/** Brief handlers that one longer handler cancels out, and the count from which on a function is brief. */
const longWeighs = 8;
const briefFrom = 4;
const mostBrief = 64;

/**
 * The number of a function's prefetched events, beyond those that may run at once: as many as end soon. A slow handler gets no
 * prefetched events, since they are better off in their lanes.
 */
export class PrefetchWindow {
  /** Written here only. */
  events = 0;
  private brief = 0;

  /** Whether handlers work only briefly, except for at most one in nine. */
  get isBrief(): boolean {
    return this.brief >= briefFrom;
  }

  /** Records an event that ended so many milliseconds after it was sent, and the part of them that its handler took. */
  ended(tookMs: number, handlerMs: number): void {
    this.brief = handlerMs <= briefMs ? Math.min(mostBrief, this.brief + 1) : Math.max(0, this.brief - longWeighs);
    this.events = tookMs <= quickMs ? Math.min(most, this.events + 1) : Math.max(0, this.events - 1);
  }

  /** Resets the window after the executor has died. */
  interrupted(): void {
    this.events = 0;
    this.brief = 0;
  }
}
