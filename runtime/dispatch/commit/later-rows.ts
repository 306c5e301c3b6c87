import type { KnownState } from "../../checkpoint/batch.ts";

/** A row waits at most so long, in milliseconds, for a newer one of its object. */
export const rowWaitMs = 30_000;
/** The rows of all functions that wait: a large cluster's Pods. */
const mostRows = 150_000;
/** One commit takes so many of them, a few milliseconds of it. */
const commitRows = 500;

interface Waiting {
  state: KnownState;
  readonly view: number;
  readonly key: string;
  /** When the first of its object came that is not on record. */
  readonly since: number;
}

/** Rows that differ from those on record in the resourceVersion alone, the newest of each object. */
export class LaterRows {
  /** By view and key; the object that has waited longest comes first. */
  private readonly rows = new Map<string, Waiting>();

  /** Gives whether there was room. */
  take(view: number, key: string, state: KnownState, now: number): boolean {
    const name = nameOf(view, key);
    const before = this.rows.get(name);
    if (before) before.state = state;
    else if (this.rows.size < mostRows) this.rows.set(name, { state, view, key, since: now });
    else return false;
    return true;
  }

  /** Something newer of the object is on record. */
  forget(view: number, key: string): void {
    if (this.rows.size > 0) this.rows.delete(nameOf(view, key));
  }

  /** When the next is to be written, as `take` was told the time; undefined where none waits. */
  get due(): number | undefined {
    for (const { since } of this.rows.values()) return since + rowWaitMs;
    return undefined;
  }

  /** Lets go of those that came first by `until`, as many as one commit takes. */
  release(until: number): Pick<Waiting, "view" | "key" | "state">[] {
    const released: Waiting[] = [];
    for (const [name, row] of this.rows) {
      if (row.since > until || released.length >= commitRows) break;
      released.push(row);
      this.rows.delete(name);
    }
    return released;
  }
}

const nameOf = (view: number, key: string): string => `${view}/${key}`;
