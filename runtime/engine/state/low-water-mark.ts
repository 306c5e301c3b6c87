import { isUpTo, newerOf, type ResourceVersion } from "../../base/resource-version.ts";

/** One received item, at its place in the order of arrival. */
export interface MarkEntry {
  /** Undefined for a list that is incomplete: it holds back later entries, and is not a checkpoint. */
  resourceVersion: ResourceVersion | undefined;
  /** The number of its events that are not terminal yet. */
  outstanding: number;
  /** True if nothing with the same resourceVersion can follow: a bookmark, or the end of a list. */
  readonly firm: boolean;
  /** Set if a restart came after the entry: it is no longer a checkpoint. */
  over?: true;
  /** Called when everything up to and including the entry is terminal, just after the mark has moved. */
  reached?: () => void;
}

/** The number of entries from which finished ones that cannot affect the mark are removed. */
const roomy = 1_000;

/**
 * A checkpoint that is never ahead of unfinished work. It is the resourceVersion of the newest entry for which that entry and all
 * earlier ones are terminal. Entries finish in any order; those behind an unfinished one wait. The mark passes the
 * resourceVersion of an event only when something newer has followed, because two objects may share one.
 */
export class LowWaterMark {
  private mark: ResourceVersion | undefined;
  private held: ResourceVersion | undefined;
  private entries: MarkEntry[] = [];
  private head = 0;
  /** The number of entries beyond which `condense` runs. */
  private room: number;

  /** @param room the initial number of entries beyond which finished ones are condensed */
  constructor(mark: ResourceVersion | undefined, room = roomy) {
    this.mark = mark;
    this.room = room;
  }

  get value(): ResourceVersion | undefined {
    return this.mark;
  }

  /** The number of waiting entries. */
  get length(): number {
    return this.entries.length - this.head;
  }

  push(entry: MarkEntry): void {
    this.entries.push(entry);
    if (entry.outstanding === 0) this.advance();
    if (this.length > this.room) this.condense();
  }

  /** Same as `push` of a change that is done. Behind unfinished entries, several in a row are merged into the last one. */
  note(resourceVersion: ResourceVersion): void {
    const tail = this.length > 0 ? this.entries[this.entries.length - 1] : undefined;
    const says = tail?.outstanding === 0 && !tail.firm && !tail.reached && !tail.over;
    if (says && tail.resourceVersion !== undefined) tail.resourceVersion = resourceVersion;
    else if (tail) this.push({ resourceVersion, outstanding: 0, firm: false });
    else this.pass({ resourceVersion, firm: false });
  }

  /** Invalidates the entries before `entry` (default: all) as checkpoints. The mark still waits until they are terminal. */
  restart(entry?: MarkEntry): void {
    this.mark = this.held = undefined;
    for (const before of this.entries.slice(this.head)) {
      if (before === entry) return;
      before.over = true;
    }
  }

  /** Records that one event of the entry is terminal. Returns whether the mark moved. */
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

  /** Merges runs of finished entries into the last one of each run. There can be many behind one that is stuck. */
  private condense(): void {
    const waiting = this.entries.slice(this.head);
    this.entries = waiting.filter((entry, index) => {
      const next = waiting[index + 1];
      if (entry.over && entry.outstanding === 0) return false;
      const silent = entry.outstanding === 0 && !entry.reached;
      const said = next?.outstanding === 0 && next.resourceVersion !== undefined && (next.firm || !entry.firm);
      return !(silent && said);
    });
    this.head = 0;
    this.room = Math.max(this.room, 2 * this.entries.length);
  }

  private pass({ resourceVersion, firm, reached, over }: Omit<MarkEntry, "outstanding">): void {
    if (resourceVersion === undefined || over) return;
    if (firm) {
      this.mark = newerOf(this.mark, resourceVersion);
      this.held = undefined;
      reached?.();
      return;
    }
    if (this.held !== undefined && isUpTo(resourceVersion, this.held)) return;
    if (this.held !== undefined) this.mark = newerOf(this.mark, this.held);
    this.held = resourceVersion;
  }
}
