import type { JournalRow, StartedEvent } from "../../checkpoint/batch.ts";
import { TransientMap } from "../../transient.ts";
import { uidOf } from "../delivery/event-id.ts";

type Attempt = Pick<StartedEvent, "view" | "key" | "id">;

interface OpenRow {
  /** Its attempts that are not settled. */
  readonly open: Set<string>;
  /** All that it says on disk. */
  started: readonly StartedEvent[];
}

/** A row of at least so many attempts is written anew where no more than this share of them is open. */
const worthwhile = 8;
const openShare = 0.25;

/** Rows of the journal whose attempts are not all settled: a row has those of one commit, and stays for the last of them. */
export class OpenRows {
  private readonly rows = new TransientMap<number, OpenRow>();
  /** By an object's key, of any view: the row that tells of attempts at it which are settled, or the rows where they are several. */
  private readonly outdated = new TransientMap<string, number | Set<number>>();

  /** An attempt goes into a row. `all`: every one that the row is to have, in the end. */
  add(row: number, attempt: StartedEvent, all: readonly StartedEvent[]): void {
    const found = this.rows.get(row);
    if (found) found.open.add(attemptKey(attempt));
    else this.rows.set(row, { open: new Set([attemptKey(attempt)]), started: all });
  }

  /** Gives whether the row can go: it tells of nothing else. To settle an attempt twice takes nothing from the others. */
  settle(row: number, attempt: Attempt): boolean {
    const found = this.rows.get(row);
    if (!found) return true;
    found.open.delete(attemptKey(attempt));
    if (found.open.size === 0) {
      this.rows.delete(row);
      for (const each of found.started) this.forget(row, each);
      return true;
    }
    this.note(row, attempt.key);
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
    if (started.length < worthwhile || open.size > openShare * started.length) return undefined;
    return this.without(row, (each) => !open.has(attemptKey(each)));
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
    const rows = this.outdated.get(key);
    if (rows === undefined) return [];
    return [...(typeof rows === "number" ? [rows] : rows)].flatMap((row) => {
      const open = this.rows.get(row)?.open;
      const isDone = (each: StartedEvent) =>
        each.view === view && each.key === key && uidOf(each.id) !== uid && !open?.has(attemptKey(each));
      return this.without(row, isDone) ?? [];
    });
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
  private without(row: number, isDone: (each: StartedEvent) => boolean): JournalRow | undefined {
    const found = this.rows.get(row);
    const gone = found?.started.filter(isDone) ?? [];
    if (!found || gone.length === 0) return undefined;
    found.started = found.started.filter((each) => !isDone(each));
    for (const each of gone) if (!found.started.some(({ key }) => key === each.key)) this.forget(row, each);
    return { id: row, started: found.started };
  }
}

const attemptKey = ({ view, id }: Pick<Attempt, "view" | "id">): string => `${view}/${id}`;
