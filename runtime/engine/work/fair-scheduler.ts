import type { Clock } from "../../base/clock.ts";
import { type LoopAccount, LoopTime } from "../account/loop-time.ts";

/**
 * Events of brief handlers that are under way, of all functions, before functions take turns. That is four turns: with two executors,
 * each has one to work at and one that waits. 100 functions on a source made 10,000 events a second without turns, and 12,200 to
 * 12,800 with them. With 512 it was a tenth less, with 128 as well (two cores, medians of three, 2026-11-26).
 */
const mostUnderWay = 256;
/** Events that a function begins in its turn: as many as one entry into its isolate takes. */
const turnEvents = 64;
/**
 * Where nothing of a function has come back for so many milliseconds, its events hold up no other's. 256 that do next to nothing come
 * back within 40 ms, where both cores are busy. It is looked for each so many milliseconds.
 */
const stuckMs = 200;
const lookMs = 50;
/**
 * Lanes that wait with an event, of all functions that take turns. Of 100 functions each then has 64 for its turn. With 4000 it has 30, and a
 * twentieth fewer are handled a second. Without a limit 40,000 wait, and each collection of young objects copies some of them.
 */
const mostWaiting = 8000;
/** And of one of them at least, however many there are. */
const leastWaiting = 16;

/**
 * Whose turn it is, of the functions whose handlers are brief. Each of a hundred would else send one event or two with each commit:
 * a frame, an entry and an answer for little. While others' events are under way, those of a function wait together.
 */
export class FairScheduler {
  readonly time: LoopTime;
  private readonly clock: Clock;
  private underWay = 0;
  /** Those whose turn is to come, first come first served. */
  private readonly line = new Set<FairShare>();
  /** Those that wait for their turn, or have events under way. */
  private readonly engaged = new Set<FairShare>();
  private isWatching = false;

  constructor(clock: Clock) {
    this.clock = clock;
    this.time = new LoopTime(clock);
  }

  /** Milliseconds of the clock that does not go back. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** A place for one more function. */
  place(functionName: string): FairShare {
    return new FairShare(this, functionName);
  }

  /** Whether one that is not in its turn may begin an event. Where it may not, its turn comes. One that is alone takes no turns. */
  admits(place: FairShare): boolean {
    const { line, engaged, underWay } = this;
    if (line.size === 0 && (underWay < mostUnderWay || (engaged.size === 1 && engaged.has(place)))) return true;
    this.line.add(place);
    this.engaged.add(place);
    this.watch();
    return false;
  }

  /** An event begins of a place. @param isFirst none other of it is under way */
  began(place: FairShare, isFirst: boolean): void {
    this.underWay++;
    if (isFirst) this.engaged.add(place);
  }

  /** So many events of it are under way no more. */
  ended(place: FairShare, events: number): void {
    this.underWay -= events;
    this.release(place);
    if (this.line.size > 0) this.give();
  }

  /** Lanes that may be ready of one whose turn is to come; of another as many as like, since it waits for its own handlers. */
  shareOf(place: FairShare): number {
    if (place.hangs || !this.line.has(place)) return Number.POSITIVE_INFINITY;
    return Math.max(leastWaiting, mostWaiting / this.engaged.size);
  }

  private release(place: FairShare): void {
    if (!place.isBusy && !this.line.has(place)) this.engaged.delete(place);
  }

  private give(): void {
    for (const place of this.line) {
      if (this.underWay >= mostUnderWay) return;
      this.line.delete(place);
      try {
        place.takeTurn();
      } finally {
        this.release(place);
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
    // Where the event loop was held up, what came back meanwhile has not been read yet.
    if (now <= due + lookMs) for (const place of this.engaged) place.checkSince(now - stuckMs);
    this.give();
    if (this.line.size > 0) this.watch();
  }
}

/** One function's place in the rota. */
export class FairShare {
  /** What is done for the function alone. */
  readonly time: LoopAccount;
  private readonly rota: FairScheduler;
  private begin: () => void = () => {};
  /** Events that it may still begin in its turn; 0 outside it. */
  private left = 0;
  private underWay = 0;
  /** Events that began before it are not counted any more. */
  private period = 1;
  /** When an event came back last, or began while none was under way. */
  private lastSign = 0;
  private isStuck = false;

  constructor(rota: FairScheduler, functionName: string) {
    this.rota = rota;
    this.time = rota.time.account(functionName);
  }

  /** Whether events of it are under way, and counted. */
  get isBusy(): boolean {
    return this.underWay > 0;
  }

  /** Whether nothing comes back of what it began: what it begins until something does takes no turn, and is not counted. */
  get hangs(): boolean {
    return this.isStuck;
  }

  /** Lanes that may be ready here until its sources wait. */
  get share(): number {
    return this.rota.shareOf(this);
  }

  /** Whether it has had its share of the parent's time, and waits for its turns. */
  get isOverShare(): boolean {
    return this.time.isOverShare;
  }

  /** @param begin begins what may begin; called when its turn has come */
  onTurn(begin: () => void): void {
    this.begin = begin;
    this.time.onTurn(begin);
  }

  /** Whether an event may begin now. Where it may not, its turn comes. */
  mayBegin(): boolean {
    return this.left > 0 || this.rota.admits(this);
  }

  /** An event begins. @returns what `leave` is to be given */
  enter(): number {
    if (this.left > 0) this.left--;
    const isFirst = this.underWay++ === 0;
    if (isFirst) this.lastSign = this.rota.now;
    this.rota.began(this, isFirst);
    return this.period;
  }

  /** An event is under way no more. @param period what `enter` gave for it; undefined where it began uncounted */
  leave(period: number | undefined): void {
    this.lastSign = this.rota.now;
    this.isStuck = false;
    if (period !== this.period) return;
    this.underWay--;
    this.rota.ended(this, 1);
  }

  takeTurn(): void {
    this.left = turnEvents;
    try {
      this.begin();
    } finally {
      this.left = 0;
    }
  }

  /** It hangs where no event has come back since then, of those that are under way. */
  checkSince(at: number): void {
    if (this.underWay === 0 || this.lastSign > at) return;
    this.isStuck = true;
    this.writeOff();
  }

  /** Its events that are under way are counted no more. */
  writeOff(): void {
    const { underWay } = this;
    if (underWay === 0) return;
    this.period++;
    this.underWay = 0;
    this.rota.ended(this, underWay);
  }
}

/**
 * An event that comes back within so many milliseconds of being sent was sent ahead to a good end. More than a
 * container is stopped for when it has used up its share of the processor (100 ms). The fewer events travel together,
 * the more each costs.
 */
const quickMs = 250;
/** Events beyond those that may run: a commit, a frame and an entry carry tens of them. With 128 an event costs 5 % more CPU (measured). */
const most = 256;
/**
 * A handler that takes no longer, in milliseconds, is brief. While 256 of them are under way (`rota.ts`), 17,000 a second can still
 * end. That is more than two cores handle where many functions are busy.
 */
const briefMs = 15;
/** Of one that takes longer, so many brief ones count no more. A function is brief once so many count. */
const longWeighs = 8;
const briefFrom = 4;
const mostBrief = 64;

/**
 * How many events of a function are on their way to handlers beyond those that may run at once: as many as come back soon.
 * A handler that takes long gets none, since what waits for it is better off in its lane.
 */
export class PrefetchWindow {
  private allowed = 0;
  private brief = 0;

  get events(): number {
    return this.allowed;
  }

  /** Whether handlers do no more than work for a moment, but for one in nine. */
  get isBrief(): boolean {
    return this.brief >= briefFrom;
  }

  /** An event has come back, so many milliseconds after it was sent. Its handler took so many of them. */
  ended(tookMs: number, handlerMs: number): void {
    this.brief = handlerMs <= briefMs ? Math.min(mostBrief, this.brief + 1) : Math.max(0, this.brief - longWeighs);
    this.allowed = tookMs <= quickMs ? Math.min(most, this.allowed + 1) : Math.max(0, this.allowed - 1);
  }

  /** What ran them has died: it begins anew. */
  interrupted(): void {
    this.allowed = 0;
    this.brief = 0;
  }
}
