import { getHeapStatistics } from "node:v8";

/** Of the heap's limit, how much the queues of all functions together may hold. */
const heapShare = 0.25;

/**
 * Bytes of bodies that all functions together may hold. Where it is spent, those that hold more than their share of it
 * go to disk first, and one that holds little is not made to pay for them: in all it is never twice the budget.
 */
export class MemoryBudget {
  private readonly limit: number;
  private used = 0;
  private holders = 0;

  /** @param limit in bytes; a quarter of the heap's limit unless given. */
  constructor(limit = getHeapStatistics().heap_size_limit * heapShare) {
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
    return this.used >= this.limit && own >= this.limit / this.holders;
  }
}
