import type { Clock, Random } from "../../base/clock.ts";
import type { DeliverySettings } from "../../manifest/function.ts";
import { retryDelay } from "./retry.ts";

/**
 * The longest time for which a failed run keeps its key from running for a newer change, in milliseconds: a user may have fixed
 * it.
 */
const maxBackoffMs = 30_000;

/**
 * Limit on keys whose failures are counted, since objects are created, fail and are deleted without end. Beyond it, the key that
 * failed longest ago is reset.
 */
const maxEntries = 100_000;

/** Failures of a key are counted together if each follows the previous one within so many of the longest delays. */
const longestDelays = 2;

interface BackoffEntry {
  /** The number of failed runs since the last successful one. */
  readonly failures: number;
  /** In monotonic milliseconds. */
  readonly failedAt: number;
  readonly until: number;
}

/**
 * The delays of keys after failed runs. Failures in a row are counted across newer changes, because a run may cause those itself,
 * and across giving up, because such a change may arrive after it.
 */
export class KeyBackoff {
  private readonly clock: Clock;
  private readonly random: Random;
  /** By key, in the order of their last failures. */
  private readonly entries = new Map<string, BackoffEntry>();

  constructor(clock: Clock, random: Random) {
    this.clock = clock;
    this.random = random;
  }

  /** Resets a key after a successful run. */
  forget(key: string): void {
    this.entries.delete(key);
  }

  /**
   * Counts a failed run. `before` is the number of failures that an earlier process counted. Returns the delay until the next
   * attempt, in milliseconds.
   */
  recordFailure(key: string, retry: DeliverySettings["retry"], before: number, asked: number | undefined): number {
    const failedAt = this.clock.monotonic();
    this.evictOlderThan(failedAt - longestDelays * Math.max(retry.maxDelayMs, maxBackoffMs));
    const failures = Math.max(this.entries.get(key)?.failures ?? 0, before - 1) + 1;
    const delayMs = retryDelay(retry, failures, asked, this.random);
    this.entries.delete(key);
    this.entries.set(key, { failures, failedAt, until: failedAt + Math.min(delayMs, maxBackoffMs) });
    const [first] = this.entries.keys();
    if (this.entries.size > maxEntries && first !== undefined) this.entries.delete(first);
    return delayMs;
  }

  /** Returns the milliseconds until the key may run for a newer change. */
  msOf(key: string): number {
    return Math.max(0, (this.entries.get(key)?.until ?? 0) - this.clock.monotonic());
  }

  private evictOlderThan(before: number): void {
    for (const [key, { failedAt }] of this.entries) {
      if (failedAt >= before) return;
      this.entries.delete(key);
    }
  }
}
