import { setImmediate as nextTurn } from "node:timers/promises";

/** What Prometheus sees under one name. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** A text for each of its series: a line, or several with line ends between. */
  lines(): Iterable<string>;
}

/** Characters that are made before the event loop turns: half a millisecond of work. */
const pieceLength = 64 * 1024;

/**
 * The text that Prometheus reads. With 2,000 functions it has 12 MB: it is made in pieces, and the event loop turns after
 * each. Each series is of one moment, a histogram with all its lines as well; two series may be of two moments.
 */
export class MetricRegistry {
  private readonly readers = new Set<() => Iterable<Family>>();

  add<T extends Family>(family: T): T {
    this.addAll(() => [family]);
    return family;
  }

  /** @param read asked once for each text */
  addAll(read: () => Iterable<Family>): void {
    this.readers.add(read);
  }

  async text(): Promise<string> {
    const pieces: string[] = [];
    let lines: string[] = [];
    let length = 0;
    for (const read of this.readers) {
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
