import type { Clock } from "../base/clock.ts";

/**
 * Limits of client-go's event correlator (`tools/record/events_cache.go`): number of remembered series, and for how long in
 * milliseconds.
 */
const mostSeries = 4096;
const windowMs = 600_000;
/** Number of different messages about one subject before they are merged, as in client-go. */
const mostMessages = 10;

/** The occurrences of one Event. */
export interface EventSeries {
  /** The Event's name in the cluster. `undefined` until it is written. */
  name: string | undefined;
  /** Occurrences so far, including unwritten ones. */
  count: number;
  readonly firstAt: string;
  /** True if different messages were merged. A fixed text is then shown instead. */
  readonly merged: boolean;
  /** The write under way. Writes of one series are sequential. */
  tail: Promise<unknown>;
  lastSeen: number;
}

/** Finds the series of an Event: equal Events are one series, and so are too many different ones about one subject. */
export class SeriesCache {
  private readonly clock: Clock;
  /** Ordered by last use, the oldest first. */
  private readonly series = new Map<string, EventSeries>();
  private readonly messages = new Map<string, { readonly since: number; readonly seen: Set<string> }>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Counts an occurrence, and returns its series.
   * @param about everything that Events of a series have in common except the message
   */
  count(about: string, message: string): EventSeries {
    const now = this.clock.monotonic();
    const merged = this.isFlood(about, message, now);
    const key = merged ? about : `${about}\0${message}`;
    let series = this.series.get(key);
    this.series.delete(key);
    if (!series || now - series.lastSeen > windowMs) {
      const firstAt = timestamp(this.clock);
      series = { name: undefined, count: 0, firstAt, merged, tail: Promise.resolve(), lastSeen: now };
    }
    series.count++;
    series.lastSeen = now;
    this.series.set(key, series);
    evict(this.series);
    return series;
  }

  private isFlood(about: string, message: string, now: number): boolean {
    let known = this.messages.get(about);
    this.messages.delete(about);
    if (!known || now - known.since > windowMs) known = { since: now, seen: new Set() };
    this.messages.set(about, known);
    evict(this.messages);
    if (known.seen.has(message)) return false;
    if (known.seen.size >= mostMessages) return true;
    known.seen.add(message);
    return false;
  }
}

/** The present time in the form of metav1.Time: whole seconds. */
export const timestamp = (clock: Clock): string => new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");

function evict(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > mostSeries && oldest !== undefined) map.delete(oldest);
}
