import { getHeapStatistics } from "node:v8";

/** A quarter of the heap's limit, in bytes: what the queues of all functions together may hold in memory. */
export const heapQuarter = (): number => getHeapStatistics().heap_size_limit / 4;

/**
 * Bytes that all functions together may hold, in memory or on disk. Where it is spent, those that hold more than their
 * share of it take no more. One that holds little is not made to pay for them: in all it is never twice the budget.
 */
export class Budget {
  private readonly limit: () => number;
  private used = 0;
  private holders = 0;

  /** @param limit in bytes; asked each time, since a disk fills and empties. */
  constructor(limit: () => number) {
    this.limit = limit;
  }

  /** One more function, or with -1 one less, shares it. */
  share(holders: 1 | -1): void {
    this.holders += holders;
  }

  /** Bytes came, or went where negative. */
  hold(bytes: number): void {
    this.used += bytes;
  }

  /** Whether one that holds `own` bytes should take no more. */
  isSpent(own: number): boolean {
    return this.used >= this.limit() && own >= this.fairShare;
  }

  /** Whether one that holds `own` bytes has more than such a part of its share, and all together as large a part of the budget. */
  isShort(own: number, part: number): boolean {
    return this.used >= part * this.limit() && own >= part * this.fairShare;
  }

  /** What each may hold where the budget is spent, in bytes. */
  get fairShare(): number {
    return this.limit() / Math.max(1, this.holders);
  }
}
