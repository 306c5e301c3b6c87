import { isUpTo, newerOf, type ResourceVersion } from "../../base/resource-version.ts";

/** Something received, in its place in the order of arrival. */
export interface MarkEntry {
  /** Undefined of a list that has not ended, or never will: it holds what follows up, and is no position. */
  resourceVersion: ResourceVersion | undefined;
  /** Events of it that are not terminal yet. */
  outstanding: number;
  /** Nothing with the same resourceVersion can follow: a bookmark, or the end of a list. */
  readonly firm: boolean;
  /** A restart came after it: it is no position any more. */
  over?: true;
  /** Called when everything up to and including the entry is terminal, just after the mark has moved. */
  reached?: () => void;
}

/** From so many entries on, those that are done and have no say in where the mark may go are let go of. */
const roomy = 1_000;

/**
 * A position that is never ahead of unfinished work. It is the resourceVersion of the newest entry for which that entry
 * and all earlier ones are terminal. Entries finish in any order; those behind an unfinished one wait. It passes the
 * resourceVersion of an event only when something newer followed, because two objects may share one.
 */
export class LowWaterMark {
  private mark: ResourceVersion | undefined;
  private held: ResourceVersion | undefined;
  private entries: MarkEntry[] = [];
  private head = 0;
  /** Entries that are kept before it is looked which of them are needed. */
  private room: number;

  /** @param room for how many entries, at first. */
  constructor(mark: ResourceVersion | undefined, room = roomy) {
    this.mark = mark;
    this.room = room;
  }

  get value(): ResourceVersion | undefined {
    return this.mark;
  }

  /** How many entries wait. */
  get length(): number {
    return this.entries.length - this.head;
  }

  push(entry: MarkEntry): void {
    this.entries.push(entry);
    if (entry.outstanding === 0) this.advance();
    if (this.length > this.room) this.condense();
  }

  /** As `push` of a change that is done. Behind what is not done, the last of several says all. */
  note(resourceVersion: ResourceVersion): void {
    const tail = this.length > 0 ? this.entries[this.entries.length - 1] : undefined;
    const says = tail?.outstanding === 0 && !tail.firm && !tail.reached && !tail.over;
    if (says && tail.resourceVersion !== undefined) tail.resourceVersion = resourceVersion;
    else if (tail) this.push({ resourceVersion, outstanding: 0, firm: false });
    else this.pass({ resourceVersion, firm: false });
  }

  /** What arrived (before `entry`) is no position any more, though it is still to be terminal before the mark moves. */
  restart(entry?: MarkEntry): void {
    this.mark = this.held = undefined;
    for (const before of this.entries.slice(this.head)) {
      if (before === entry) return;
      before.over = true;
    }
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

  /** Of entries that are done, one after the other, the last says all; they are many behind one that is stuck. */
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
