import type { Clock, Random } from "../../base/clock.ts";
import type { DeliverySettings } from "../../manifest/function.ts";
import { retryDelay } from "./retry.ts";

/** The longest that a failed run keeps its key from running for a newer change, in milliseconds: a person may have mended it. */
const mostRestMs = 30_000;

/** Keys whose failures count: objects that come, fail and go are without end. Of more, those that failed first begin anew. */
const mostRests = 100_000;

/** Failures of a key count together while each comes within so many of the longest delays of the one before. */
const longestDelays = 2;

interface BackoffEntry {
  /** Failed runs since the last one that ended well. */
  readonly failures: number;
  /** By the monotonic clock. */
  readonly failedAt: number;
  readonly until: number;
}

/**
 * How long keys rest after failed runs. Failures in a row count across newer changes: a run may make those itself. They
 * count across giving up as well, since the change that such a run made may come after it.
 */
export class KeyBackoff {
  private readonly clock: Clock;
  private readonly random: Random;
  /** By key, the last to fail last. */
  private readonly rests = new Map<string, BackoffEntry>();

  constructor(clock: Clock, random: Random) {
    this.clock = clock;
    this.random = random;
  }

  /** Its run has ended well. */
  end(key: string): void {
    this.rests.delete(key);
  }

  /** Its run has failed. `before`: failures that a process before this one counted. Gives the milliseconds until it is tried again. */
  begin(key: string, retry: DeliverySettings["retry"], before: number, asked: number | undefined): number {
    const failedAt = this.clock.monotonic();
    this.forget(failedAt - longestDelays * Math.max(retry.maxDelayMs, mostRestMs));
    const failures = Math.max(this.rests.get(key)?.failures ?? 0, before - 1) + 1;
    const delayMs = retryDelay(retry, failures, asked, this.random);
    this.rests.delete(key);
    this.rests.set(key, { failures, failedAt, until: failedAt + Math.min(delayMs, mostRestMs) });
    const [first] = this.rests.keys();
    if (this.rests.size > mostRests && first !== undefined) this.rests.delete(first);
    return delayMs;
  }

  /** The milliseconds until it may run for a newer change. */
  msOf(key: string): number {
    return Math.max(0, (this.rests.get(key)?.until ?? 0) - this.clock.monotonic());
  }

  private forget(before: number): void {
    for (const [key, { failedAt }] of this.rests) {
      if (failedAt >= before) return;
      this.rests.delete(key);
    }
  }
}
