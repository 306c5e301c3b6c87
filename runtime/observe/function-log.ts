import { type DestinationStream, symbols } from "pino";
import { type Clock, systemClock } from "../base/clock.ts";

/** Maximum characters of the lines of all functions. */
const mostInAll = 16 * 2 ** 20;
/** Maximum characters of the lines of one function, however few functions there are. */
const mostOfOne = 256 * 1024;

/** Number of the runtime's warnings that are kept, and the maximum characters of each. */
const mostWarnings = 200;
const longestWarning = 4096;
/** Pino's number of the level `warn`. */
const warn = 40;

/**
 * A line as in the log, with its number. Numbers rise over all functions, and over restarts: each is the time in epoch microseconds,
 * or one more than the last number.
 */
export interface KeptLine {
  readonly number: number;
  readonly line: string;
}

/** A line for the history. */
export interface CollectedLine extends KeptLine {
  readonly function: string;
  /** The event's id, for a line of a run. */
  readonly run: string | undefined;
}

/** Lines for the history, until it takes them. Data without methods, because every line passes it. */
export interface LineCollector {
  readonly lines: CollectedLine[];
  /** How many more characters it takes. Lines that do not fit are counted in `dropped`. */
  room: number;
  dropped: number;
}

/** The last lines of one function. */
interface KeptLines {
  readonly lines: KeptLine[];
  size: number;
}

/** A destination to which pino passes each line's fields. */
type Fielded = DestinationStream & { lastLevel?: number; lastObj?: unknown };

/**
 * Keeps the last log lines of each function in memory and passes all lines on. A line belongs to the function that the runtime
 * itself set in the `function` field, so handlers cannot imitate that. All functions get an equal share of the memory, at most
 * 256 KiB. Longer lines are not kept.
 */
export class FunctionLog implements DestinationStream {
  /** Makes pino set the two fields below before each line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastObj: unknown;
  /** Takes the lines for the history. Default: there is no history. */
  collector: LineCollector | undefined;
  private readonly next: Fielded;
  private readonly clock: Pick<Clock, "now">;
  private readonly functions = new Map<string, KeptLines>();
  private readonly alarms: string[] = [];
  private readonly waiting = new Set<(name: string) => void>();
  private number = 0;

  constructor(next: DestinationStream, clock: Pick<Clock, "now"> = systemClock) {
    this.next = next;
    this.clock = clock;
  }

  write(line: string): void {
    const { next, lastObj, lastLevel } = this;
    next.lastLevel = lastLevel;
    next.lastObj = lastObj;
    next.write(line);
    const { function: name, run } = (lastObj ?? {}) as { readonly function?: unknown; readonly run?: unknown };
    if (lastLevel >= warn && run === undefined) this.keepWarning(line);
    if (typeof name === "string") this.keep(name, line.trimEnd(), typeof run === "string" ? run : undefined);
  }

  /**
   * Returns the lines of one function, or of all, after the given number, oldest first. If the number is higher than any here, it
   * comes from an earlier process and all kept lines are returned.
   */
  after(name: string | undefined, number: number): readonly KeptLine[] {
    const lines = name === undefined ? this.all() : (this.functions.get(name)?.lines ?? []);
    return number > this.number ? lines : lines.filter((each) => each.number > number);
  }

  private all(): KeptLine[] {
    return [...this.functions.values()].flatMap(({ lines }) => lines).sort((a, b) => a.number - b.number);
  }

  /** Resolves when the function, or any function, has another line, or the signal aborts. */
  another(name: string | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.waiting.delete(hears);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const hears = (of: string) => {
        if (name === undefined || of === name) done();
      };
      if (signal.aborted) return resolve();
      this.waiting.add(hears);
      signal.addEventListener("abort", done);
    });
  }

  /** The last warnings and errors of the runtime itself, oldest first, without those of handlers' runs. */
  get warnings(): readonly string[] {
    return this.alarms;
  }

  private keepWarning(line: string): void {
    this.alarms.push(line.trimEnd().slice(0, longestWarning));
    if (this.alarms.length > mostWarnings) this.alarms.shift();
  }

  private keep(name: string, line: string, run: string | undefined): void {
    if (line.length > this.share) return;
    const number = Math.max(this.number + 1, this.clock.now() * 1000);
    this.number = number;
    const { collector } = this;
    if (collector) {
      if (collector.room >= line.length) {
        collector.room -= line.length;
        collector.lines.push({ number, line, function: name, run });
      } else collector.dropped++;
    }
    let kept = this.functions.get(name);
    if (!kept) {
      kept = { lines: [], size: 0 };
      this.functions.set(name, kept);
      // A new function makes the others' share smaller.
      for (const each of this.functions.values()) this.trim(each);
    }
    kept.lines.push({ number, line });
    kept.size += line.length;
    this.trim(kept);
    for (const hears of [...this.waiting]) hears(name);
  }

  private get share(): number {
    return Math.min(mostOfOne, Math.floor(mostInAll / Math.max(1, this.functions.size)));
  }

  private trim(kept: KeptLines): void {
    const { share } = this;
    if (kept.size <= share) return;
    let gone = 0;
    // Removes more than necessary, so that it does not run for each line.
    for (; kept.size > share * 0.75 && gone < kept.lines.length - 1; gone++)
      kept.size -= kept.lines[gone]?.line.length ?? 0;
    kept.lines.splice(0, gone);
  }
}
