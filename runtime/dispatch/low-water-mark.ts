import { compareResourceVersions, newerResourceVersion } from "../watch/resource-version.ts";

/** Something received, in its place in the order of arrival. */
export interface MarkEntry {
  /** Undefined of a list that has not ended, or never will: it holds what follows up, and is no position. */
  resourceVersion: string | undefined;
  /** Events of it that are not terminal yet. */
  outstanding: number;
  /** Nothing with the same resourceVersion can follow: a bookmark, or the end of a list. */
  readonly firm: boolean;
  /** Called when everything up to and including the entry is terminal, just after the mark has moved. */
  reached?: () => void;
  /** The mark goes to this entry even if that is backwards: resourceVersions were rewound. */
  readonly rewinds?: boolean;
}

/**
 * A position that is never ahead of unfinished work: the resourceVersion of the newest entry such that it and all that
 * arrived before it are terminal. Entries finish in any order; those behind an unfinished one wait. It passes the
 * resourceVersion of an event only when something newer followed, because two objects may share one.
 */
export class LowWaterMark {
  private mark: string | undefined;
  private held: string | undefined;
  private entries: MarkEntry[] = [];
  private head = 0;

  constructor(mark: string | undefined) {
    this.mark = mark;
  }

  get value(): string | undefined {
    return this.mark;
  }

  /** How many entries wait. */
  get length(): number {
    return this.entries.length - this.head;
  }

  push(entry: MarkEntry): void {
    this.entries.push(entry);
    if (entry.outstanding === 0) this.advance();
  }

  /** One event of the entry has become terminal. Gives whether the mark moved. */
  settle(entry: MarkEntry): boolean {
    entry.outstanding--;
    return entry.outstanding === 0 && this.entries[this.head] === entry ? this.advance() : false;
  }

  private advance(): boolean {
    const before = this.mark;
    for (let entry = this.entries[this.head]; entry?.outstanding === 0; entry = this.entries[this.head]) {
      this.head++;
      this.pass(entry);
    }
    // Amortised: the array is cut when more than half of it is behind the head.
    if (this.head > 64 && this.head * 2 > this.entries.length) {
      this.entries = this.entries.slice(this.head);
      this.head = 0;
    }
    return this.mark !== before;
  }

  private pass({ resourceVersion, firm, rewinds, reached }: MarkEntry): void {
    if (resourceVersion === undefined) return;
    if (firm) {
      this.mark = rewinds ? resourceVersion : newerResourceVersion(this.mark, resourceVersion);
      this.held = undefined;
      reached?.();
      return;
    }
    const order = this.held === undefined ? 1 : (compareResourceVersions(resourceVersion, this.held) ?? 1);
    if (order <= 0) return;
    if (this.held !== undefined) this.mark = newerResourceVersion(this.mark, this.held);
    this.held = resourceVersion;
  }
}
