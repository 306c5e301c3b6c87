import type { JournalRow, StartedEvent } from "../../journal/batch.ts";
import { YoungMap } from "../../v8/young-map.ts";
import { uidOf } from "../delivery/delivery.ts";

type AttemptIdentity = Pick<StartedEvent, "view" | "key" | "id">;

interface OpenRow {
  /** All attempts in the row on disk. */
  started: readonly StartedEvent[];
  /** Which of them are settled, by index. */
  settled: boolean[];
  /** The number of those that are not settled. */
  open: number;
  /**
   * The index of the first attempt that is not settled, or a lower one: attempts usually end in the order in which they began.
   */
  first: number;
  /** Whether `outdated` has the row. */
  isIndexed: boolean;
}

/** A row of at least this many attempts is rewritten once no more than this share of them is open. */
const worthwhile = 8;
const openShare = 0.25;
/** The number of newest rows that are searched for an object. Most rows are settled before they are older than that. */
const mostYoung = 32;

/**
 * Rows of the journal whose attempts are not all settled. A row has the attempts of one commit, and stays until the last of them
 * is settled.
 */
export class OpenRows {
  private readonly young: number;
  private readonly rows = new YoungMap<number, OpenRow>();
  /** The numbers of the newest rows, settled ones included; oldest first. */
  private readonly newest: number[] = [];
  /** Index from an object's key, of any view, to older rows with settled attempts at it. A single row is stored as a number. */
  private readonly outdated = new YoungMap<string, number | Set<number>>();

  /** @param young how many rows are searched without an index. Default 32. */
  constructor(young = mostYoung) {
    this.young = young;
  }

  /** Adds an attempt to a row. `all` are all attempts that the row will have. */
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

  /**
   * Settles an attempt. Returns whether the row can be deleted, because all others in it are settled too. Settling one twice does
   * not affect the others.
   */
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
   * Returns the row without its settled attempts if that is worth a write, so that they need not stay until the last one ends,
   * which may take days. So rows have at most four times the open attempts, or a few more.
   */
  shrink(row: number): JournalRow | undefined {
    const found = this.rows.get(row);
    if (!found) return undefined;
    const { open, started } = found;
    if (started.length < worthwhile || open > openShare * started.length) return undefined;
    return this.without(row, (_, isSettled) => isSettled);
  }

  /** Removes an attempt that was not made. Returns the row without it; `undefined` if the row can be deleted. */
  withdraw(row: number, attempt: StartedEvent): JournalRow | undefined {
    if (this.settle(row, attempt)) return undefined;
    return this.without(row, (each) => each === attempt);
  }

  /**
   * Records that an object was deleted. Its tombstone proves that its own events are done, but not those of earlier objects with
   * its name. Returns the rows from which these must be removed.
   */
  recordDeletion(view: number, key: string, uid: string): JournalRow[] {
    const isDone = (each: StartedEvent, isSettled: boolean) =>
      isSettled && each.view === view && each.key === key && uidOf(each.id) !== uid;
    return this.rowsOf(key).flatMap((row) => this.without(row, isDone) ?? []);
  }

  /** The rows that may have settled attempts at an object of that key, oldest first. */
  private rowsOf(key: string): readonly number[] {
    const rows = this.outdated.get(key);
    if (rows === undefined) return this.newest;
    return [...(typeof rows === "number" ? [rows] : rows), ...this.newest];
  }

  /** Adds a row to the index, because it is no longer one of the newest. */
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

  /** Returns the row without the attempts that are done; `undefined` if there is no such attempt. */
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

/** Returns the index of an attempt that is not settled; -1 if there is no such attempt. */
function placeOf(row: OpenRow, { view, id }: Pick<AttemptIdentity, "view" | "id">): number {
  const { started, settled } = row;
  while (settled[row.first]) row.first++;
  for (let place = row.first; place < started.length; place++) {
    const each = started[place] as StartedEvent;
    if (!settled[place] && each.view === view && each.id === id) return place;
  }
  return -1;
}
