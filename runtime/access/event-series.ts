import type { Clock } from "../base/clock.ts";

/** As client-go's event correlator (`tools/record/events_cache.go`): how many series are remembered, and for how long. */
const mostSeries = 4096;
const windowMs = 600_000;
/** Messages about one thing that differ, before they are shown as one: as there. */
const mostMessages = 10;

/** The repeats of one Event. */
export interface EventSeries {
  /** The Event's name in the cluster; undefined until it is written. */
  name: string | undefined;
  /** Occurrences so far, those included that were not written. */
  count: number;
  readonly firstAt: string;
  /** Shown in place of the message where many messages were merged. */
  readonly merged: boolean;
  /** The write under way: writes of one series follow one another. */
  tail: Promise<unknown>;
  lastSeen: number;
}

/** Finds the series that an Event belongs to: equal Events are one; too many about one thing that differ are one too. */
export class SeriesCache {
  private readonly clock: Clock;
  /** In order of use: the longest unused is first. */
  private readonly series = new Map<string, EventSeries>();
  private readonly messages = new Map<string, { readonly since: number; readonly seen: Set<string> }>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * The series, this occurrence counted.
   * @param about everything that two Events of a series have in common but the message
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

/** Now, as metav1.Time has it: whole seconds. */
export const timestamp = (clock: Clock): string => new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");

function evict(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > mostSeries && oldest !== undefined) map.delete(oldest);
}
