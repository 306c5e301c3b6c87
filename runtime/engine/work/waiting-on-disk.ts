import { setImmediate as nextTurn } from "node:timers/promises";
import { type Checkpoint, rowsInATurn } from "../../journal/checkpoint.ts";

/** Events and keys that wait on disk. */
interface RowsOnDisk {
  readonly count: number;
  /** When the oldest was received, in epoch milliseconds. */
  readonly oldestAt: number | undefined;
}

/** Counts what waits on disk for functions that are not loaded, each once until its rows change, without reading bodies. */
export class WaitingOnDisk {
  private readonly store: Pick<Checkpoint, "journal">;
  /** By function; without rows while they are counted. */
  private readonly found = new Map<string, { rows?: RowsOnDisk }>();

  constructor(store: Pick<Checkpoint, "journal">) {
    this.store = store;
  }

  /** Returns what waits for a function. `undefined` if that takes more than one turn, until it is counted. */
  of(name: string): RowsOnDisk | undefined {
    // A store that cannot be read now is asked again later.
    if (!this.found.has(name)) void this.count(name).catch(() => this.forget(name));
    return this.found.get(name)?.rows;
  }

  /** Called when the rows of a function, or without a name those of all functions, have changed. */
  forget(name?: string): void {
    if (name === undefined) this.found.clear();
    else this.found.delete(name);
  }

  /** Sets the result within the call if there are few rows. */
  private async count(name: string): Promise<void> {
    const found: { rows?: RowsOnDisk } = {};
    this.found.set(name, found);
    let [count, oldestAt, after] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let rows = rowsInATurn; rows === rowsInATurn; ) {
      rows = 0;
      const headers = this.store.journal.headers("spill", { function: name, after });
      for (const { sequence, receivedAt } of headers) {
        count++;
        after = sequence;
        oldestAt = Math.min(oldestAt, receivedAt);
        // An array has been read already, a query is made again after a pause.
        if (++rows === rowsInATurn && !Array.isArray(headers)) break;
      }
      if (rows !== rowsInATurn) break;
      await nextTurn();
      // Its rows have changed meanwhile.
      if (this.found.get(name) !== found) return;
    }
    found.rows = { count, oldestAt: count === 0 ? undefined : oldestAt };
  }
}
