import { setImmediate as nextTurn } from "node:timers/promises";
import type { SpillHeader } from "./batch.ts";
import type { Checkpoint } from "./checkpoint.ts";

/** Rows that one turn of the event loop reads: 5 ms of it. A function may have a row for each of 100,000 objects. */
const rowsInATurn = 256;

/** What a function has in its spill, by sequence, without bodies, while other work goes on. Nobody may write to it meanwhile. */
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
      // A store that has them in memory has sorted them all. Another reads on from there.
      if (!Array.isArray(headers)) break;
      count = 0;
    }
  }
}
