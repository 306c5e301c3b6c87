import type { JournalRow, StartedEvent } from "../../journal/batch.ts";
import { YoungMap } from "../../v8/young-map.ts";
import { uidOf } from "../delivery/delivery.ts";

type AttemptIdentity = Pick<StartedEvent, "view" | "key" | "id">;

interface OpenRow {
  /** All that it says on disk. */
  started: readonly StartedEvent[];
  /** Of these by their places, which are settled. */
  settled: boolean[];
  /** How many are not. */
  open: number;
  /** The first that is not, or one before it: attempts end in the order in which they began, as a rule. */
  first: number;
  /** Whether `outdated` knows of it. */
  isIndexed: boolean;
}

/** A row of at least so many attempts is written anew where no more than this share of them is open. */
const worthwhile = 8;
const openShare = 0.25;
/** The newest rows, which are looked through for an object. Most are over before they are too old for that. */
const mostYoung = 32;

/** Rows of the journal whose attempts are not all settled: a row has those of one commit, and stays for the last of them. */
export class OpenRows {
  private readonly young: number;
  private readonly rows = new YoungMap<number, OpenRow>();
  /** The numbers of young rows, those that are over included; oldest first. */
  private readonly newest: number[] = [];
  /** By an object's key, of any view: which rows that are young no more tell of settled attempts at it. A number where it is one. */
  private readonly outdated = new YoungMap<string, number | Set<number>>();

  /** @param young how many rows count as young. Default 32. */
  constructor(young = mostYoung) {
    this.young = young;
  }

  /** An attempt goes into a row. `all`: every one that the row is to have, in the end. */
  add(row: number, all: readonly StartedEvent[]): void {
    const found = this.rows.get(row);
    if (found) {
      found.open++;
      return;
    }
    this.rows.set(row, { started: all, settled: [], open: 1, first: 0, isIndexed: false });
    this.newest.push(row);
    if (this.newest.length > this.young) this.index(this.newest.shift() as number);
  }

  /** Gives whether the row can go: it tells of nothing else. To settle an attempt twice takes nothing from the others. */
  settle(row: number, attempt: AttemptIdentity): boolean {
    const found = this.rows.get(row);
    if (!found) return true;
    const place = placeOf(found, attempt);
    if (place >= 0) {
      found.settled[place] = true;
      found.open--;
      if (found.isIndexed) this.note(row, attempt.key);
    }
    if (found.open === 0) {
      this.rows.delete(row);
      if (found.isIndexed) for (const each of found.started) this.forget(row, each);
      return true;
    }
    return false;
  }

  /**
   * What is settled need not stay for the last that is not, which may wait for days. Gives the row without it, where that is
   * worth a write: so rows have four times what is open at most, or a few more.
   */
  shrink(row: number): JournalRow | undefined {
    const found = this.rows.get(row);
    if (!found) return undefined;
    const { open, started } = found;
    if (started.length < worthwhile || open > openShare * started.length) return undefined;
    return this.without(row, (_, isSettled) => isSettled);
  }

  /** The attempt was not made. Gives the row without it; undefined where that can go. */
  withdraw(row: number, attempt: StartedEvent): JournalRow | undefined {
    if (this.settle(row, attempt)) return undefined;
    return this.without(row, (each) => each === attempt);
  }

  /**
   * An object is gone. Its tombstone proves that its own events are done, and not that those of objects are which had its
   * name before. Gives the rows that are to say no more of these.
   */
  bury(view: number, key: string, uid: string): JournalRow[] {
    const isDone = (each: StartedEvent, isSettled: boolean) =>
      isSettled && each.view === view && each.key === key && uidOf(each.id) !== uid;
    return this.rowsOf(key).flatMap((row) => this.without(row, isDone) ?? []);
  }

  /** Those that may tell of settled attempts at an object of that key, oldest first. */
  private rowsOf(key: string): readonly number[] {
    const rows = this.outdated.get(key);
    if (rows === undefined) return this.newest;
    return [...(typeof rows === "number" ? [rows] : rows), ...this.newest];
  }

  /** The row is young no more. */
  private index(row: number): void {
    const found = this.rows.get(row);
    if (!found) return;
    found.isIndexed = true;
    for (const [place, { key }] of found.started.entries()) if (found.settled[place]) this.note(row, key);
  }

  private note(row: number, key: string): void {
    const rows = this.outdated.get(key);
    if (rows === undefined) this.outdated.set(key, row);
    else if (typeof rows !== "number") rows.add(row);
    else if (rows !== row) this.outdated.set(key, new Set([rows, row]));
  }

  private forget(row: number, { key }: StartedEvent): void {
    const rows = this.outdated.get(key);
    if (rows === undefined) return;
    const isEmpty = typeof rows === "number" ? rows === row : rows.delete(row) && rows.size === 0;
    if (isEmpty) this.outdated.delete(key);
  }

  /** Undefined where it says nothing of the kind. */
  private without(row: number, isDone: (each: StartedEvent, isSettled: boolean) => boolean): JournalRow | undefined {
    const found = this.rows.get(row);
    if (!found) return undefined;
    const isKept = found.started.map((each, place) => !isDone(each, found.settled[place] === true));
    const gone = found.started.filter((_, place) => !isKept[place]);
    if (gone.length === 0) return undefined;
    found.settled = isKept.flatMap((kept, place) => (kept ? [found.settled[place] === true] : []));
    found.started = found.started.filter((_, place) => isKept[place]);
    found.first = 0;
    if (found.isIndexed) {
      for (const each of gone) if (!found.started.some(({ key }) => key === each.key)) this.forget(row, each);
    }
    return { id: row, started: found.started };
  }
}

/** The place of an attempt that is not settled; -1 where there is none. */
function placeOf(row: OpenRow, { view, id }: Pick<AttemptIdentity, "view" | "id">): number {
  const { started, settled } = row;
  while (settled[row.first]) row.first++;
  for (let place = row.first; place < started.length; place++) {
    const each = started[place] as StartedEvent;
    if (!settled[place] && each.view === view && each.id === id) return place;
  }
  return -1;
}
