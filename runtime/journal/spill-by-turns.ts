import { setImmediate as nextTurn } from "node:timers/promises";
import type { SpillHeader } from "./batch.ts";
import type { Checkpoint } from "./checkpoint.ts";

/** Rows read in one turn of the event loop, about 5 ms. A function may have a row for each of 100,000 objects. */
export const rowsInATurn = 256;

/**
 * Reads a function's spill, ordered by sequence, without bodies, and yields to the event loop in between. The spill must not be
 * written meanwhile.
 */
export async function* spillByTurns(
  store: Pick<Checkpoint, "spillHeaders">,
  functionName: string,
): AsyncIterable<SpillHeader> {
  for (let after = Number.NEGATIVE_INFINITY, count = rowsInATurn; count === rowsInATurn; ) {
    count = 0;
    const headers = await store.spillHeaders(functionName, after);
    for (const header of headers) {
      yield header;
      after = header.sequence;
      if (++count < rowsInATurn) continue;
      await nextTurn();
      // A store in memory has sorted all rows already and continues. Any other store is queried again from here.
      if (!Array.isArray(headers)) break;
      count = 0;
    }
  }
}
