import type { Clock } from "../../base/clock.ts";

/** The kinds of work that the main thread does for a single function. */
type Work = "conditions" | "keys" | "rows" | "lists" | "schedules" | "calls" | "logs" | "errors";

/**
 * The share of each second that all functions together may use at once; beyond it they take turns. The other half is for work
 * that no function is charged for: reading, commits and frames.
 */
const sharedPart = 0.5;
/** The least number of functions by which it is divided, however few use any: a single one progresses in its turns. */
const leastSharers = 5;
/** Milliseconds that an idle function may use at once. An event's conditions take 25 at most. */
const burstMs = 25;
/** Milliseconds that all functions together may use at once: one change may concern a hundred functions. */
const sharedBurstMs = 10;
/** Milliseconds of a turn. A piece of work that takes longer is completed, and deducted from the next turns. */
const turnMs = 5;
/** Milliseconds between two checks which functions have paid off their use. */
const lookMs = 100;
/**
 * The least pause between two turns in milliseconds, in addition to those charged in the last one: sockets are read, and other
 * work runs.
 */
const betweenMs = 1;

/** Returns a function's account, for work that is done for it outside its queue. */
export interface LoopAccounts {
  /** `undefined` if no such function is loaded. */
  of(functionName: string): LoopAccount | undefined;
}

/**
 * Divides the event loop's time among functions. Each has an account for the work that is done for it alone. Its work runs at
 * once while the function has used less than its share (a token bucket). Otherwise the function is throttled: its work waits in
 * the account's queue for a turn. A turn is a few milliseconds for one of the waiting functions, then for the next (deficit round robin).
 */
export class LoopTime implements LoopAccounts {
  private readonly clock: Clock;
  private readonly waiting = new Set<LoopAccount>();
  /** By function. A function may be loaded in several parts, or again before it is unloaded: each has an account. */
  private readonly open = new Map<string, LoopAccount[]>();
  /** Accounts with a use that their share has not paid off yet. */
  private readonly sharers = new Set<LoopAccount>();
  private isDue = false;
  /** Milliseconds that were charged in turns since the last one began: that work is done between two turns. */
  private chargedMs = 0;
  /**
   * Milliseconds that all together may still use at once, as of `filledAt`. Time only adds to that, so that a positive value needs no
   * look at the clock, which takes 0.1 us.
   */
  left = sharedBurstMs;
  private filledAt: number;
  private lookedAt: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.filledAt = clock.monotonic();
    this.lookedAt = this.filledAt;
  }

  /**
   * Opens an account for a function.
   * @param goOn does waiting work, as long as `mayBegin`; called in its turn. Default: all its work is given to `soon` or `pieces`
   */
  account(functionName: string, goOn?: () => void): LoopAccount {
    const account = new LoopAccount(this, functionName, goOn);
    this.open.set(functionName, [...(this.open.get(functionName) ?? []), account]);
    return account;
  }

  of(functionName: string): LoopAccount | undefined {
    return this.open.get(functionName)?.at(-1);
  }

  /** The monotonic time in milliseconds. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Returns the part of each millisecond that one account may use at once, as of `now`. */
  shareAt(now: number): number {
    if (now - this.lookedAt > lookMs) {
      this.lookedAt = now;
      for (const each of this.sharers) each.fill(now);
    }
    return sharedPart / Math.max(leastSharers, this.sharers.size);
  }

  /** Whether work may run at once, by the current balance. */
  hasRoom(now: number): boolean {
    this.left = Math.min(sharedBurstMs, this.left + (now - this.filledAt) * sharedPart);
    this.filledAt = now;
    return this.left > 0;
  }

  /** Deducts milliseconds that were used at once. */
  tookAtOnce(ms: number): void {
    this.left = Math.max(-sharedBurstMs, this.left - ms);
  }

  /** Records whether an account has a use that its share has not paid off. */
  takes(account: LoopAccount, isInDebt: boolean): void {
    if (isInDebt) this.sharers.add(account);
    else this.sharers.delete(account);
  }

  /** Counts milliseconds that were charged in a turn. */
  charged(ms: number): void {
    this.chargedMs += ms;
  }

  waits(account: LoopAccount): boolean {
    return this.waiting.has(account);
  }

  /** Queues an account for a turn. */
  wait(account: LoopAccount): void {
    this.waiting.add(account);
    if (this.isDue) return;
    this.turnAfter(betweenMs);
  }

  private turnAfter(ms: number): void {
    this.isDue = true;
    this.clock.after(ms, () => this.turn(), { unref: true });
  }

  /** Removes an account. */
  leave(account: LoopAccount): void {
    const { functionName } = account;
    const others = this.open.get(functionName)?.filter((each) => each !== account) ?? [];
    if (others.length > 0) this.open.set(functionName, others);
    else this.open.delete(functionName);
    this.waiting.delete(account);
    this.sharers.delete(account);
  }

  /** Runs one turn: of the account with the most unused time if one is within its share, otherwise of the first. */
  private turn(): void {
    this.isDue = false;
    const { chargedMs } = this;
    this.chargedMs = 0;
    if (chargedMs > 0) {
      this.turnAfter(chargedMs);
      return;
    }
    let [first] = this.waiting;
    for (const each of this.waiting) if (first && each.unspent > Math.max(0, first.unspent)) first = each;
    if (!first) return;
    this.waiting.delete(first);
    try {
      first.takeTurn(turnMs);
    } finally {
      const [next] = this.waiting;
      if (next) this.wait(next);
    }
  }
}

/** The account of one function. */
export class LoopAccount {
  readonly functionName: string;
  private readonly loop: LoopTime;
  private readonly goOn: (() => void) | undefined;
  /** Milliseconds that it may still use at once, as of `filledAt`. */
  private left = burstMs;
  private filledAt: number;
  /** Milliseconds that it may use in its turns; negative if the last one took too long. */
  private credit = 0;
  /** The end of its current or last turn. */
  private turnEnds = 0;
  private waitsSince: number | undefined;
  /** Whether anything is measured. An account without measured work never waits. */
  private isMeasured = false;
  private isTaking = false;
  private isClosed = false;
  /** The work to do in its turn before `goOn`. */
  private readonly waiting: (() => void)[] = [];
  private readonly spentSeconds = new Map<Work, number>();

  constructor(loop: LoopTime, functionName: string, goOn?: () => void) {
    this.loop = loop;
    this.functionName = functionName;
    this.goOn = goOn;
    this.filledAt = loop.now;
  }

  /** The seconds that were used, by kind of work. */
  get spent(): ReadonlyMap<Work, number> {
    return this.spentSeconds;
  }

  /** Whether it has used its share, and work of it waits for its turns. */
  get isOverShare(): boolean {
    return this.waitsSince !== undefined;
  }

  /** The seconds for which it has exceeded its share without a break; `undefined` if it does not. */
  get overSeconds(): number | undefined {
    return this.waitsSince === undefined ? undefined : (this.loop.now - this.waitsSince) / 1000;
  }

  /** The unused milliseconds of its share; negative if it has used more. */
  get unspent(): number {
    this.fill(this.loop.now);
    return this.left;
  }

  /** Declares that work will be measured. */
  measures(): void {
    this.isMeasured = true;
  }

  /** Whether work may begin now. If not, the account is queued for a turn. */
  mayBegin(): boolean {
    const { loop } = this;
    if (!this.isMeasured || this.isClosed) return true;
    const isFree = !this.isTaking && !loop.waits(this);
    if (isFree && this.left > 0 && loop.left > 0) return true;
    const { now } = loop;
    if (now < this.turnEnds) return true;
    this.fill(now);
    if (isFree && this.left > 0 && loop.hasRoom(now)) return true;
    // If its own bucket is not empty, it waits because the shared one is, and is not over its share.
    if (this.left <= 0) this.waitsSince ??= now;
    loop.wait(this);
    return false;
  }

  /** Runs work as soon as it may begin: now, or in a turn, in the order of submission. */
  soon(work: () => void): void {
    if (this.waiting.length === 0 && this.mayBegin()) work();
    else this.waiting.push(work);
  }

  /**
   * Runs work in pieces, no more than a turn's at once. The rest continues in later turns, after the work that waits already.
   * @param piece does a little of the work; returns whether there is more
   */
  pieces(work: Work, piece: () => boolean): Promise<void> {
    this.isMeasured = true;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const goOn = () => {
      const ends = this.loop.now + turnMs;
      try {
        while (this.isClosed || (this.loop.now < ends && this.mayBegin())) {
          if (!this.measure(work, piece)) return resolve();
        }
      } catch (error) {
        return reject(error);
      }
      if (this.unspent <= 0) this.waitsSince ??= this.loop.now;
      this.waiting.push(goOn);
      this.loop.wait(this);
    };
    if (this.waiting.length === 0) goOn();
    else this.waiting.push(goOn);
    return promise;
  }

  /**
   * Runs one piece for each item.
   * @param take handles an item; returns whether to continue
   */
  each<Of>(work: Work, all: Iterable<Of>, take: (one: Of) => boolean): Promise<void> {
    const left = all[Symbol.iterator]();
    return this.pieces(work, () => {
      const { done, value } = left.next();
      return !done && take(value);
    });
  }

  /** Runs work as soon as it may begin, and charges its time. */
  async once<T>(work: Work, run: () => T | Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    await this.pieces(work, () => {
      resolve(run());
      return false;
    });
    return promise;
  }

  /** Whether its turn is in progress. */
  get isInTurn(): boolean {
    return this.turnEnds > 0 && this.loop.now < this.turnEnds;
  }

  /** Starts a measurement. Returns the argument for `end`. */
  begin(): number {
    return this.loop.now;
  }

  /**
   * Ends a measurement, and charges its time.
   * @param from the result of `begin`
   */
  end(work: Work, from: number): void {
    const now = this.loop.now;
    this.spend(work, now - from, now, from < this.turnEnds);
  }

  /** Runs work at once, and charges its time. */
  measure<T>(work: Work, run: () => T): T {
    const began = this.begin();
    try {
      return run();
    } finally {
      this.end(work, began);
    }
  }

  /**
   * Charges an estimate for work that is done elsewhere, or in pieces too small to measure. The milliseconds count as used now,
   * and as many pass before the next turn.
   */
  charge(work: Work, ms: number): void {
    const { now } = this.loop;
    const isInTurn = now < this.turnEnds;
    this.spend(work, ms, now, isInTurn);
    if (!isInTurn) return;
    this.turnEnds -= ms;
    this.loop.charged(ms);
  }

  private spend(work: Work, ms: number, now: number, isInTurn: boolean): void {
    if (ms <= 0 || this.isClosed) return;
    this.isMeasured = true;
    this.spentSeconds.set(work, (this.spentSeconds.get(work) ?? 0) + ms / 1000);
    this.fill(now);
    this.left -= ms;
    if (isInTurn) this.credit -= ms;
    else this.loop.tookAtOnce(ms);
    this.loop.takes(this, true);
  }

  /** Closes the account when its function is gone. */
  close(): void {
    this.isClosed = true;
    this.loop.leave(this);
    for (const work of this.waiting.splice(0)) work();
  }

  /** Starts its turn, and adds so many milliseconds. */
  takeTurn(ms: number): void {
    this.credit = Math.min(this.credit + ms, ms);
    if (this.credit <= 0) {
      this.loop.wait(this);
      return;
    }
    // Events that begin here may be judged after this has returned, and before anything else runs.
    this.turnEnds = this.loop.now + this.credit;
    this.isTaking = true;
    try {
      while (this.waiting.length > 0 && this.mayBegin()) this.waiting.shift()?.();
      if (!this.isClosed) this.goOn?.();
    } finally {
      this.isTaking = false;
    }
    if (this.loop.waits(this)) return;
    this.credit = Math.min(this.credit, 0);
    this.waitsSince = undefined;
  }

  /** Adds its share of the time that passed. Use in turns never makes a debt of more than one burst. */
  fill(now: number): void {
    const left = this.left + (now - this.filledAt) * this.loop.shareAt(now);
    this.filledAt = now;
    this.left = Math.min(burstMs, Math.max(left, -burstMs));
    if (this.left === burstMs) this.loop.takes(this, false);
  }
}

/** Bytes of a body that are written without a charge. Most objects are smaller. */
export const freeBytes = 16 * 1024;
/** Milliseconds of the event loop that SQLite takes for each further byte. Measured: 0.5 ms for 100 KB, 5 to 10 ms for 1 MB. */
const byteMs = 5e-6;

/** Charges each function for the large bodies that its rows add to a commit: last bodies, events on disk, dead letters, and entries of `ctx.state`. */
export class WrittenBodies {
  /** By view. */
  private readonly accounts = new Map<number, LoopAccount>();

  /** Charges `account` for the rows of these views. */
  add(views: Iterable<{ readonly id: number }>, account: LoopAccount): void {
    for (const { id } of views) this.accounts.set(id, account);
  }

  remove(views: Iterable<{ readonly id: number }>): void {
    for (const { id } of views) this.accounts.delete(id);
  }

  /** @param bytes of one body, or of all entries of `ctx.state` that an event changed */
  charge(view: number, bytes = 0): void {
    if (bytes > freeBytes) this.accounts.get(view)?.charge("rows", (bytes - freeBytes) * byteMs);
  }
}
