import { setImmediate as nextTurn } from "node:timers/promises";
import { emptyBatch, type StartedEvent } from "./batch.ts";
import type { CheckpointStore } from "./store.ts";

/** Rows of one commit: few enough to hold, many enough that a commit costs nothing. */
const chunk = 1_000;
const chunkBytes = 16 * 1024 * 1024;

/**
 * Copies the rows of one store into another that is empty: positions, known objects, begun attempts, waiting events and
 * dead letters. Letters get new numbers in the same order. What functions that were removed had known is left behind.
 * Between two chunks the event loop turns: the Lease under which this is done is to be renewed.
 */
export async function carryOver(from: CheckpointStore, to: CheckpointStore): Promise<void> {
  const cluster = await from.cluster();
  if (cluster !== undefined) await to.setCluster(cluster);
  for (const [name, since] of await from.paused()) await to.setPaused(name, since);
  const views = new Map<number, number>();
  const functions = new Set<string>();
  for (const view of await from.views()) {
    const { id } = await to.openView(view.function, view.trigger, view.resource);
    views.set(view.id, id);
    functions.add(view.function);
    const objects: [string, Parameters<Parameters<CheckpointStore["known"]>[1]>[1]][] = [];
    await from.known(view.id, (key, identity) => objects.push([key, identity]));
    for (let at = 0; at < objects.length; at += chunk) {
      const rows = objects.slice(at, at + chunk).map(async ([key, identity]) => {
        const body = await from.body(view.id, key);
        return { row: { view: id, key, state: { ...identity, body: body?.bytes } }, isOlder: body?.isOlder };
      });
      const known = await Promise.all(rows);
      await to.commit({ ...emptyBatch, known: known.map(({ row }) => row) });
      const older = known.filter(({ isOlder }) => isOlder);
      const noted = older.map(({ row }) => ({ ...row, state: { ...row.state, body: "older" as const } }));
      if (noted.length > 0) await to.commit({ ...emptyBatch, known: noted });
      await nextTurn();
    }
    // Positions come after what they stand on.
    await to.commit({ ...emptyBatch, cursors: view.cursors.map((cursor) => ({ ...cursor, view: id })) });
  }
  const moved = <T extends { readonly view: number }>(row: T): T[] => {
    const view = views.get(row.view);
    return view === undefined ? [] : [{ ...row, view }];
  };
  const journal = (await from.journal()).map(({ id, started }) => ({
    id,
    started: started.flatMap(moved<StartedEvent>),
  }));
  await to.commit({ ...emptyBatch, journal });
  for (const name of functions) {
    for (let after = Number.NEGATIVE_INFINITY; ; ) {
      const spill = await from.spilled(name, after, chunk, chunkBytes);
      if (spill.length === 0) break;
      after = spill.at(-1)?.sequence ?? after;
      await to.commit({ ...emptyBatch, spill: spill.flatMap(moved) });
      await nextTurn();
    }
  }
  for (let after: string | undefined; ; ) {
    const page = await from.deadLetters({ after });
    if (page.length === 0) break;
    after = page.at(-1)?.letter;
    const whole = await Promise.all(page.map(({ letter }) => from.deadLetter(letter)));
    const deadLetters = whole.flatMap((each) => {
      if (!each) return [];
      const { letter: _, bodyDropped: __, ...event } = each;
      // Of a trigger that is gone: nothing takes it any more, and it is kept to be looked at.
      return [{ ...event, view: views.get(event.view) ?? 0 }];
    });
    await to.commit({ ...emptyBatch, deadLetters });
    await nextTurn();
  }
}
