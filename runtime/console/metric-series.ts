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

/** The bytes of one source's live changes since the start. */
interface SourceCounter {
  readonly key: string;
  readonly bytes: number;
}

/** Samples over which a source's rate is taken: those of a minute. */
const rateSamples = 6;
/** Sources whose rate is known. */
const mostSources = 2_000;

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
  private readonly readSources: () => readonly SourceCounter[];
  private readonly clock: Clock;
  /** The last readings of each source, oldest first. */
  private sources = new Map<string, readonly { readonly at: number; readonly bytes: number }[]>();
  private readonly rings = new Map<string, SampleRings>();
  private readonly sum = new SampleRings();
  /** Number of samples so far. */
  private count = 0;
  private sampledAt = 0;
  private timer: Timer | undefined;

  constructor(
    read: () => readonly FunctionCounters[],
    clock: Clock,
    readSources: () => readonly SourceCounter[] = () => [],
  ) {
    this.read = read;
    this.readSources = readSources;
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
    this.sampleSources();
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

  /** Returns the bytes a second of a source's live changes in the last minute; `undefined` if there is one reading at most. */
  bytesPerSecond(key: string): number | undefined {
    const readings = this.sources.get(key) ?? [];
    const [first, last] = [readings[0], readings.at(-1)];
    if (!first || !last || last.at <= first.at) return undefined;
    return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
  }

  private sampleSources(): void {
    const at = this.clock.monotonic();
    const next: typeof this.sources = new Map();
    for (const { key, bytes } of this.readSources().slice(0, mostSources)) {
      const before = this.sources.get(key) ?? [];
      // Counts begin again with a source.
      const isSame = (before.at(-1)?.bytes ?? 0) <= bytes;
      next.set(key, [...(isSame ? before.slice(-rateSamples) : []), { at, bytes }]);
    }
    this.sources = next;
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
