import type { Clock } from "../../base/clock.ts";

/** What the parent does for one function alone on the thread that all share. */
type Work = "conditions" | "keys" | "rows" | "lists" | "schedules" | "calls" | "logs" | "errors";

/**
 * What functions may take of each second at once, all together; the rest of it they take in turns. The other half is for what no
 * account has: reading, commits and frames.
 */
const sharedPart = 0.5;
/** Among so many functions it is shared at least, however few take any: one alone gets on in its turns. */
const leastSharers = 5;
/** Milliseconds that a function may take at once after it took none. An event's conditions take 25 at most. */
const burstMs = 25;
/** Milliseconds that all may take at once together: one change may be a concern of a hundred functions. */
const sharedBurstMs = 10;
/** Milliseconds of a turn. What is begun in it ends, and is taken off the next ones. */
const turnMs = 5;
/** Milliseconds after which it is looked again who has made up for what it took. */
const lookMs = 100;
/** Milliseconds between two turns at least, and those that were charged in the last one: sockets are read, and everybody else goes on. */
const betweenMs = 1;

/** Of functions by their names: the account on which goes what is done for one elsewhere than in its queue. */
export interface LoopAccounts {
  /** Undefined where no such function is loaded. */
  of(functionName: string): LoopAccount | undefined;
}

/**
 * The time of the event loop, shared among functions. Each has an account of what was done for it alone. What it needs is done at
 * once while it has taken less than its share (a token bucket). Otherwise it waits in its own queue for its turn. A turn is a few
 * milliseconds for one of those that wait, then for the next (deficit round robin).
 */
export class LoopTime implements LoopAccounts {
  private readonly clock: Clock;
  private readonly line = new Set<LoopAccount>();
  /** By function. A function may be loaded in several parts, or anew before it is unloaded: each has an account. */
  private readonly open = new Map<string, LoopAccount[]>();
  /** Those that took something which their share has not made up for yet. */
  private readonly sharers = new Set<LoopAccount>();
  private isDue = false;
  /** Milliseconds that were charged in turns since the last one began: the work itself is done between two turns. */
  private chargedMs = 0;
  /** Milliseconds that all together may still take at once, as of `filledAt`. */
  private left = sharedBurstMs;
  private filledAt: number;
  private lookedAt: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.filledAt = clock.monotonic();
    this.lookedAt = this.filledAt;
  }

  /** An account for one more function. */
  account(functionName: string): LoopAccount {
    const account = new LoopAccount(this, functionName);
    this.open.set(functionName, [...(this.open.get(functionName) ?? []), account]);
    return account;
  }

  of(functionName: string): LoopAccount | undefined {
    return this.open.get(functionName)?.at(-1);
  }

  /** Milliseconds of the clock that does not go back. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Of a millisecond, what each may take at once, as of `now`. */
  shareAt(now: number): number {
    if (now - this.lookedAt > lookMs) {
      this.lookedAt = now;
      for (const each of this.sharers) each.fill(now);
    }
    return sharedPart / Math.max(leastSharers, this.sharers.size);
  }

  /**
   * Whether anything may be done at once, outside of turns, by what was left when it was filled last. Time only adds to that, so
   * that `true` needs no look at the clock, which takes 0.1 us.
   */
  get hasRoomLeft(): boolean {
    return this.left > 0;
  }

  /** The same, now. */
  hasRoom(now: number): boolean {
    this.left = Math.min(sharedBurstMs, this.left + (now - this.filledAt) * sharedPart);
    this.filledAt = now;
    return this.left > 0;
  }

  /** So many milliseconds were taken at once. */
  tookAtOnce(ms: number): void {
    this.left = Math.max(-sharedBurstMs, this.left - ms);
  }

  /** Notes whether an account has taken what its share has not made up for. */
  takes(account: LoopAccount, isInDebt: boolean): void {
    if (isInDebt) this.sharers.add(account);
    else this.sharers.delete(account);
  }

  /** So many milliseconds were charged in a turn. */
  charged(ms: number): void {
    this.chargedMs += ms;
  }

  waits(account: LoopAccount): boolean {
    return this.line.has(account);
  }

  /** Its turn comes after those that wait already. */
  wait(account: LoopAccount): void {
    this.line.add(account);
    if (this.isDue) return;
    this.turnAfter(betweenMs);
  }

  private turnAfter(ms: number): void {
    this.isDue = true;
    this.clock.after(ms, () => this.turn(), { unref: true });
  }

  /** It is over. */
  leave(account: LoopAccount): void {
    const { functionName } = account;
    const others = this.open.get(functionName)?.filter((each) => each !== account) ?? [];
    if (others.length > 0) this.open.set(functionName, others);
    else this.open.delete(functionName);
    this.line.delete(account);
    this.sharers.delete(account);
  }

  /** One turn: of who has taken least lately, where somebody is within its share, else of the first. */
  private turn(): void {
    this.isDue = false;
    const { chargedMs } = this;
    this.chargedMs = 0;
    if (chargedMs > 0) {
      this.turnAfter(chargedMs);
      return;
    }
    let [first] = this.line;
    for (const each of this.line) if (first && each.unspent > Math.max(0, first.unspent)) first = each;
    if (!first) return;
    this.line.delete(first);
    try {
      first.takeTurn(turnMs);
    } finally {
      const [next] = this.line;
      if (next) this.wait(next);
    }
  }
}

/** One function's account. */
export class LoopAccount {
  readonly functionName: string;
  private readonly loop: LoopTime;
  private goOn: () => void = () => {};
  /** Milliseconds that it may still take at once, as of `filledAt`. */
  private left = burstMs;
  private filledAt: number;
  /** Milliseconds that it may take in its turns; less than 0 where the last one took too long. */
  private credit = 0;
  /** When its last turn ends, or ended. */
  private turnEnds = 0;
  private waitsSince: number | undefined;
  /** Whether anything is measured: what never is waits for nobody. */
  private isMeasured = false;
  private isTaking = false;
  private isClosed = false;
  /** What is to be done in its turn before `goOn`. */
  private readonly waiting: (() => void)[] = [];
  private readonly spentSeconds = new Map<Work, number>();

  constructor(loop: LoopTime, functionName: string) {
    this.loop = loop;
    this.functionName = functionName;
    this.filledAt = loop.now;
  }

  /** Seconds that were taken for it, by what for. */
  get spent(): ReadonlyMap<Work, number> {
    return this.spentSeconds;
  }

  /** Whether it has had its share, and something of it waits for its turns. */
  get isOverShare(): boolean {
    return this.waitsSince !== undefined;
  }

  /** Seconds for which it has been over its share without a break; undefined where it is not. */
  get overSeconds(): number | undefined {
    return this.waitsSince === undefined ? undefined : (this.loop.now - this.waitsSince) / 1000;
  }

  /** Milliseconds of its share that it has not taken; less than 0 where it has taken more. */
  get unspent(): number {
    this.fill(this.loop.now);
    return this.left;
  }

  /** Something is to be measured from now on. */
  measures(): void {
    this.isMeasured = true;
  }

  /** @param goOn does what waits, as long as `mayBegin`; called in its turn */
  onTurn(goOn: () => void): void {
    this.goOn = goOn;
  }

  /** Whether something may be begun for it now. Where it may not, its turn comes. */
  mayBegin(): boolean {
    const { loop } = this;
    if (!this.isMeasured || this.isClosed) return true;
    const isFree = !this.isTaking && !loop.waits(this);
    if (isFree && this.left > 0 && loop.hasRoomLeft) return true;
    const { now } = loop;
    if (now < this.turnEnds) return true;
    this.fill(now);
    if (isFree && this.left > 0 && loop.hasRoom(now)) return true;
    this.waitsSince ??= now;
    loop.wait(this);
    return false;
  }

  /** Does something as soon as it may be begun: now, or in its turn, in the order in which it was given. */
  soon(work: () => void): void {
    if (this.waiting.length === 0 && this.mayBegin()) work();
    else this.waiting.push(work);
  }

  /**
   * Does work piece by piece, no more than a turn's at once. The rest goes on in its turns, behind what waits already.
   * @param piece does a little of it; whether there is more
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
      this.waitsSince ??= this.loop.now;
      this.waiting.push(goOn);
      this.loop.wait(this);
    };
    if (this.waiting.length === 0) goOn();
    else this.waiting.push(goOn);
    return promise;
  }

  /** The same, a piece for each of many. @param take whether the next one is to follow */
  each<Of>(work: Work, all: Iterable<Of>, take: (one: Of) => boolean): Promise<void> {
    const left = all[Symbol.iterator]();
    return this.pieces(work, () => {
      const { done, value } = left.next();
      return !done && take(value);
    });
  }

  /** Does something as soon as it may be begun, and has the time go on the account. */
  async once<T>(work: Work, run: () => T | Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    await this.pieces(work, () => {
      resolve(run());
      return false;
    });
    return promise;
  }

  /** Whether its turn has come, and goes on. */
  get isInTurn(): boolean {
    return this.turnEnds > 0 && this.loop.now < this.turnEnds;
  }

  /** Something is begun. @returns what `end` is to be given */
  begin(): number {
    return this.loop.now;
  }

  /** It is done: the time goes on the account. @param from what `begin` gave */
  end(work: Work, from: number): void {
    const now = this.loop.now;
    this.spend(work, now - from, now, from < this.turnEnds);
  }

  /** Does something for it, and has the time go on the account. */
  measure<T>(work: Work, run: () => T): T {
    const began = this.begin();
    try {
      return run();
    } finally {
      this.end(work, began);
    }
  }

  /**
   * Charges about so many milliseconds for something that is done elsewhere, or in pieces too small to measure. They count as if
   * they were over. As many pass before the next turn.
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

  /** The function is gone. */
  close(): void {
    this.isClosed = true;
    this.loop.leave(this);
    this.goOn = () => {};
    for (const work of this.waiting.splice(0)) work();
  }

  /** Its turn has come, with so many milliseconds more. */
  takeTurn(ms: number): void {
    this.credit = Math.min(this.credit + ms, ms);
    if (this.credit <= 0) {
      this.loop.wait(this);
      return;
    }
    // What it begins may be judged after this has returned, and before anything else is done.
    this.turnEnds = this.loop.now + this.credit;
    this.isTaking = true;
    try {
      while (this.waiting.length > 0 && this.mayBegin()) this.waiting.shift()?.();
      this.goOn();
    } finally {
      this.isTaking = false;
    }
    if (this.loop.waits(this)) return;
    this.credit = Math.min(this.credit, 0);
    this.waitsSince = undefined;
  }

  /** Its share of the time that went by. What it takes in turns is no debt beyond one burst. */
  fill(now: number): void {
    const left = this.left + (now - this.filledAt) * this.loop.shareAt(now);
    this.filledAt = now;
    this.left = Math.min(burstMs, Math.max(left, -burstMs));
    if (this.left === burstMs) this.loop.takes(this, false);
  }
}
