import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";

/** Stacks a second that are mapped for one function, and how many at once. A person reads fewer; an error log repeats them. */
export const mappedPerSecond = 10;
const mappedAtOnce = 20;

/** Characters of all questions that wait. One has 20,000 at most. */
const mostWaiting = 4 * 2 ** 20;
/** Functions whose use is remembered, beyond those that wait. */
const mostAccounts = 10_000;
/** Milliseconds after which a function's use of the thread counts half. */
const halfLifeMs = 10_000;

/** What one function asks, and has used. */
interface Account<Item> {
  readonly name: string;
  readonly bucket: TokenBucket;
  readonly waiting: { readonly item: Item; readonly length: number }[];
  length: number;
  /** Milliseconds of the thread until `at`. */
  used: number;
  at: number;
}

/**
 * Questions that wait for the thread. A function asks at its own rate, so that no more of it wait than that rate brings in the
 * time that a question waits. The function that has used the thread least is next.
 */
export class QuestionQueue<Item> {
  private readonly clock: Clock;
  private readonly accounts = new Map<string, Account<Item>>();
  /** Those with questions. */
  private readonly asking = new Set<Account<Item>>();
  private length = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get size(): number {
    return this.asking.size;
  }

  /** Takes one from the function's rate, if there is one. */
  mayAsk(name: string): boolean {
    return this.accountOf(name).bucket.take();
  }

  /** Adds a question. Returns those that go in exchange: the oldest of whose questions take the most room. */
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

  /** The oldest question of the function that has used the thread least, of those that `isFit` allows. */
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

  /** A function has used the thread for so many milliseconds. */
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
    // The one that asked last stands at the end.
    this.accounts.delete(name);
    this.accounts.set(name, account);
    for (const [other, { waiting }] of this.accounts) {
      if (this.accounts.size <= mostAccounts) break;
      if (waiting.length === 0 && other !== name) this.accounts.delete(other);
    }
    return account;
  }
}
