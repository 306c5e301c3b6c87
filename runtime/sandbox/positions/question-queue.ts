import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";

/**
 * Number of stacks per second that are mapped for one function, and of those in a burst. A person reads fewer, and an error log
 * repeats them.
 */
export const mappedPerSecond = 10;
const mappedAtOnce = 20;

/** Maximum characters of all waiting questions. One question has at most 20,000. */
const mostWaiting = 4 * 2 ** 20;
/** Number of functions whose use is remembered, beyond those with waiting questions. */
const mostAccounts = 10_000;
/** Half-life, in milliseconds, of a function's use of the thread. */
const halfLifeMs = 10_000;

/** One function's questions and its use of the thread. */
interface Account<Item> {
  readonly name: string;
  readonly bucket: TokenBucket;
  readonly waiting: { readonly item: Item; readonly length: number }[];
  length: number;
  /** Milliseconds of the thread that it had used at time `at`. */
  used: number;
  at: number;
}

/**
 * Queue of questions for the thread. Each function has a rate limit, which also bounds how many of its questions wait. The
 * function that has used the thread least is served next.
 */
export class QuestionQueue<Item> {
  private readonly clock: Clock;
  private readonly accounts = new Map<string, Account<Item>>();
  /** Accounts with waiting questions. */
  private readonly asking = new Set<Account<Item>>();
  private length = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get size(): number {
    return this.asking.size;
  }

  /** Takes a token of the function's rate limit. Returns false if there is no token. */
  mayAsk(name: string): boolean {
    return this.accountOf(name).bucket.take();
  }

  /**
   * Adds a question. Returns the questions dropped in exchange: the oldest ones of the function whose questions take the most
   * room.
   */
  add(name: string, item: Item, length: number): readonly Item[] {
    const account = this.accountOf(name);
    account.waiting.push({ item, length });
    account.length += length;
    this.length += length;
    this.asking.add(account);
    const dropped: Item[] = [];
    while (this.length > mostWaiting) {
      const largest = [...this.asking].reduce((most, one) => (one.length > most.length ? one : most));
      dropped.push(this.shift(largest, 0));
    }
    return dropped;
  }

  /**
   * Removes and returns the oldest question of the function that has used the thread least, among those for which `isFit` is
   * true.
   */
  take(isFit: (item: Item) => boolean): Item | undefined {
    let least: Account<Item> | undefined;
    let leastUsed = Number.POSITIVE_INFINITY;
    for (const account of this.asking) {
      const [first] = account.waiting;
      const used = this.usedBy(account);
      if (!first || used >= leastUsed || !isFit(first.item)) continue;
      [least, leastUsed] = [account, used];
    }
    return least && this.shift(least, 0);
  }

  remove(name: string, item: Item): void {
    const account = this.accounts.get(name);
    const index = account?.waiting.findIndex((one) => one.item === item) ?? -1;
    if (account && index >= 0) this.shift(account, index);
  }

  clear(): readonly Item[] {
    const all = [...this.asking].flatMap(({ waiting }) => waiting.map(({ item }) => item));
    this.asking.clear();
    this.accounts.clear();
    this.length = 0;
    return all;
  }

  /** Records that a function has used the thread for `ms` milliseconds. */
  charge(name: string, ms: number): void {
    const account = this.accountOf(name);
    account.used = this.usedBy(account) + ms;
    account.at = this.clock.monotonic();
  }

  private usedBy({ used, at }: Account<Item>): number {
    return used === 0 ? 0 : used * 0.5 ** ((this.clock.monotonic() - at) / halfLifeMs);
  }

  private shift(account: Account<Item>, index: number): Item {
    const [{ item, length }] = account.waiting.splice(index, 1) as [{ item: Item; length: number }];
    account.length -= length;
    this.length -= length;
    if (account.waiting.length === 0) this.asking.delete(account);
    return item;
  }

  private accountOf(name: string): Account<Item> {
    const { clock } = this;
    const known = this.accounts.get(name);
    const bucket = () => new TokenBucket(clock, mappedAtOnce, mappedPerSecond);
    const account = known ?? { name, bucket: bucket(), waiting: [], length: 0, used: 0, at: clock.monotonic() };
    // Moves the function to the end, so that the map is in order of last use.
    this.accounts.delete(name);
    this.accounts.set(name, account);
    for (const [other, { waiting }] of this.accounts) {
      if (this.accounts.size <= mostAccounts) break;
      if (waiting.length === 0 && other !== name) this.accounts.delete(other);
    }
    return account;
  }
}
