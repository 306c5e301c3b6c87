import { brand } from "./brand.ts";
import { type Duration, parseDuration } from "./duration.ts";

/** What a handler returns to be run again after a time. It is no failure, and counts no attempt. */
export class RequeueAfter {
  static {
    brand(RequeueAfter, "RequeueAfter");
  }

  /** Milliseconds until then. */
  readonly delayMs: number;

  /** Throws a TypeError for a text that is no duration. */
  constructor(delay: Duration) {
    const delayMs = parseDuration(delay);
    if (delayMs === undefined) {
      throw new TypeError(`requeueAfter takes milliseconds or text such as "30s", got ${JSON.stringify(delay)}`);
    }
    this.delayMs = delayMs;
  }
}

/**
 * Asks to be run again after this long: `return requeueAfter("30s")`. It is no failure, counts no attempt, and survives a
 * restart of the runtime. A reconciler's key that changes sooner runs sooner. An event comes again as it was,
 * `redelivered`, and later events of its object wait for it. At most 366 days. Throws a TypeError for a text that is no duration.
 */
export const requeueAfter = (delay: Duration): RequeueAfter => new RequeueAfter(delay);
