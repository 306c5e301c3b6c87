import { brand } from "./brand.ts";
import { type Duration, parseDuration } from "./duration.ts";

/** Returned by a handler to be run again after a time. It is not a failure, and does not count as an attempt. */
export class RequeueAfter {
  static {
    brand(RequeueAfter, "RequeueAfter");
  }

  /** Milliseconds until then. */
  readonly delayMs: number;

  /** Throws a TypeError for a text that is not a duration. */
  constructor(delay: Duration) {
    const delayMs = parseDuration(delay);
    if (delayMs === undefined) {
      throw new TypeError(`requeueAfter takes milliseconds or text such as "30s", got ${JSON.stringify(delay)}`);
    }
    this.delayMs = delayMs;
  }
}

/**
 * Requests another run after this time: `return requeueAfter("30s")`. It is not a failure, does not count as an attempt, and
 * survives a restart of the runtime. A reconciler's key that changes earlier runs earlier. An event is delivered again unchanged,
 * as `redelivered`, and later events of its object wait for it. At most 366 days. Throws a TypeError for a text that is not a
 * duration.
 */
export const requeueAfter = (delay: Duration): RequeueAfter => new RequeueAfter(delay);
