import { type DestinationStream, symbols } from "pino";

/** What the lines of all functions may take, in characters. */
const mostInAll = 16 * 2 ** 20;
/** What those of one function may take, however few functions there are. */
const mostOfOne = 256 * 1024;

/** A line as the log has it, and its number: they count from 1, over all functions. */
interface KeptLine {
  readonly number: number;
  readonly line: string;
}

/** The last lines of one function. */
interface KeptLines {
  readonly lines: KeptLine[];
  size: number;
}

/** A destination that pino hands each line's fields over to. */
type Fielded = DestinationStream & { lastLevel?: number; lastObj?: unknown };

/**
 * Keeps the last log lines of each function in memory, as they are written, and passes all lines on. A function's lines
 * are those that the runtime gave its name to, so that no handler's field counts. The share of each is equal, 256 KiB at
 * most. A longer line is not kept.
 */
export class FunctionLog implements DestinationStream {
  /** Has pino set the two below before each line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastObj: unknown;
  private readonly next: Fielded;
  private readonly functions = new Map<string, KeptLines>();
  private readonly waiting = new Set<(name: string) => void>();
  private number = 0;

  constructor(next: DestinationStream) {
    this.next = next;
  }

  write(line: string): void {
    const { next, lastObj, lastLevel } = this;
    next.lastLevel = lastLevel;
    next.lastObj = lastObj;
    next.write(line);
    const { function: name } = (lastObj ?? {}) as { readonly function?: unknown };
    if (typeof name === "string") this.keep(name, line.trimEnd());
  }

  /**
   * The lines of one function, or of all, after the one of this number, oldest first; all that are kept where it is of
   * another process.
   */
  after(name: string | undefined, number: number): readonly KeptLine[] {
    const lines = name === undefined ? this.all() : (this.functions.get(name)?.lines ?? []);
    return number > this.number ? lines : lines.filter((each) => each.number > number);
  }

  private all(): KeptLine[] {
    return [...this.functions.values()].flatMap(({ lines }) => lines).sort((a, b) => a.number - b.number);
  }

  /** Resolves when the function, or any, has another line, or the signal aborts. */
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

  private keep(name: string, line: string): void {
    if (line.length > this.share) return;
    let kept = this.functions.get(name);
    if (!kept) {
      kept = { lines: [], size: 0 };
      this.functions.set(name, kept);
      // The others' share is smaller now.
      for (const each of this.functions.values()) this.trim(each);
    }
    kept.lines.push({ number: ++this.number, line });
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
    // Some more than is due, so that it is not done with each line.
    for (; kept.size > share * 0.75 && gone < kept.lines.length - 1; gone++)
      kept.size -= kept.lines[gone]?.line.length ?? 0;
    kept.lines.splice(0, gone);
  }
}
