import { setImmediate as nextTurn } from "node:timers/promises";

/** A metric family: all series with one name. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** A text for each of its series: one line, or several separated by line ends. */
  lines(): Iterable<string>;
}

/** Characters produced before yielding to the event loop: half a millisecond of work. */
const pieceLength = 64 * 1024;

/**
 * Produces the text for Prometheus. With 2,000 functions it has 12 MB, so it is produced in pieces, and the event loop gets a
 * turn after each one. Each series, including all lines of a histogram, is a consistent snapshot; different series may be from
 * different moments.
 */
export class MetricRegistry {
  private readonly readers = new Set<() => Iterable<Family>>();

  add<T extends Family>(family: T): T {
    this.addAll(() => [family]);
    return family;
  }

  /** @param read called once for each text */
  addAll(read: () => Iterable<Family>): void {
    this.readers.add(read);
  }

  /** @param states read for this text alone, after what was added */
  async text(states: readonly (() => Iterable<Family>)[] = []): Promise<string> {
    const pieces: string[] = [];
    let lines: string[] = [];
    let length = 0;
    for (const read of [...this.readers, ...states]) {
      for (const family of read()) {
        lines.push(`# HELP ${family.name} ${escapedHelp(family.help)}`, `# TYPE ${family.name} ${family.type}`);
        for (const line of family.lines()) {
          lines.push(line);
          length += line.length;
          if (length < pieceLength) continue;
          pieces.push(lines.join("\n"));
          lines = [];
          length = 0;
          await nextTurn();
        }
      }
    }
    return [...pieces, ...lines, ""].join("\n");
  }
}

const escapedHelp = (text: string): string => text.replace(/[\\\n]/g, (each) => (each === "\n" ? "\\n" : "\\\\"));
