import type { Clock, Timer } from "../base/clock.ts";

/** Milliseconds between two samples. */
const seriesStepMs = 10_000;
/** Samples that are kept: those of an hour. */
const mostSamples = 360;
/** Functions of which samples are kept, 4 KB each. The others are part of the sum alone. */
const mostFunctions = 500;

/** The counts of one function at one time. */
export interface FunctionCounters {
  readonly name: string;
  /** Events that ended in the handler, or were given up, since the start. */
  readonly events: number;
  /** Failed attempts since the start. */
  readonly errors: number;
  /** Events that wait at present. */
  readonly waiting: number;
}

/** The counts of each step, the oldest first. */
interface SampledSeries {
  readonly events: readonly number[];
  readonly errors: readonly number[];
  readonly waiting: readonly number[];
}

/** Rings of samples. The counts of events and errors are those of a step. */
class SampleRings {
  readonly events = new Uint32Array(mostSamples);
  readonly errors = new Uint32Array(mostSamples);
  readonly waiting = new Uint32Array(mostSamples);
  private before: FunctionCounters | undefined;
  /** The number of the sample that was added last. */
  private last = -1;

  add(number: number, counters: FunctionCounters): void {
    const at = number % mostSamples;
    // Counts begin again with a process or a partition: they are not of one step then.
    const since = (count: "events" | "errors") =>
      this.before && this.last === number - 1 ? Math.max(0, counters[count] - this.before[count]) : 0;
    this.events[at] = since("events");
    this.errors[at] = since("errors");
    this.waiting[at] = counters.waiting;
    this.before = counters;
    this.last = number;
  }

  /** Sets the sample of a function that is not there. */
  skip(number: number): void {
    const at = number % mostSamples;
    this.events[at] = 0;
    this.errors[at] = 0;
    this.waiting[at] = 0;
  }

  isOlderThan(number: number): boolean {
    return this.last < number - mostSamples;
  }

  read(numbers: readonly number[]): SampledSeries {
    const of = (ring: Uint32Array) => numbers.map((number) => ring[number % mostSamples] ?? 0);
    return { events: of(this.events), errors: of(this.errors), waiting: of(this.waiting) };
  }
}

/** The counts of the last hour, one sample each 10 seconds, for plots. Nothing on an event's path calls it. */
export class MetricSeries {
  private readonly read: () => readonly FunctionCounters[];
  private readonly clock: Clock;
  private readonly rings = new Map<string, SampleRings>();
  private readonly sum = new SampleRings();
  /** Number of samples so far. */
  private count = 0;
  private sampledAt = 0;
  private timer: Timer | undefined;

  constructor(read: () => readonly FunctionCounters[], clock: Clock) {
    this.read = read;
    this.clock = clock;
  }

  /** Samples now, and every 10 seconds until `close`. */
  begin(): void {
    this.sample();
    this.timer = this.clock.after(seriesStepMs, () => this.begin(), { unref: true });
  }

  close(): void {
    this.timer?.cancel();
  }

  /** Adds one sample. */
  sample(): void {
    const number = this.count++;
    this.sampledAt = this.clock.now();
    const counters = this.read();
    const present = new Set(counters.map(({ name }) => name));
    for (const [name, rings] of this.rings) {
      if (present.has(name)) continue;
      rings.skip(number);
      if (rings.isOlderThan(number)) this.rings.delete(name);
    }
    const whole = { name: "", events: 0, errors: 0, waiting: 0 };
    for (const each of counters) {
      whole.events += each.events;
      whole.errors += each.errors;
      whole.waiting += each.waiting;
      let rings = this.rings.get(each.name);
      if (!rings && this.rings.size < mostFunctions) {
        rings = new SampleRings();
        this.rings.set(each.name, rings);
      }
      rings?.add(number, each);
    }
    this.sum.add(number, whole);
  }

  /** Returns the last samples: of one function, or of each and their sum. */
  describe({ function: only, points }: { readonly function?: string | undefined; readonly points: number }) {
    // The first sample has nothing before it.
    const length = Math.max(0, Math.min(points, mostSamples, this.count - 1));
    const numbers = Array.from({ length }, (_, index) => this.count - length + index);
    const names = only === undefined ? [...this.rings.keys()] : [only];
    const functions = names.flatMap((name) => {
      const rings = this.rings.get(name);
      return rings ? [{ name, ...rings.read(numbers) }] : [];
    });
    const from = new Date(this.sampledAt - Math.max(0, length - 1) * seriesStepMs).toISOString();
    return { from, stepMs: seriesStepMs, sum: this.sum.read(numbers), functions };
  }
}
