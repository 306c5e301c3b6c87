import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint, spillByTurns } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { MemoryStore } from "./memory-store.ts";
import { spilledEvent } from "./store-contract.ts";

function sqlite(): Checkpoint {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-"));
  const store = new Checkpoint(new SqliteJournal({ folder: join(folder, "data"), bootId: "boot-1" }));
  onTestFinished(async () => {
    await store.close(false);
    rmSync(folder, { recursive: true, force: true });
  });
  return store;
}

/** The maximum number of rows read in one turn of the event loop, and the total. */
async function read(store: Checkpoint) {
  let inTurn = 0;
  let most = 0;
  let turns = setImmediate(function turn() {
    inTurn = 0;
    turns = setImmediate(turn);
  });
  const sequences: number[] = [];
  for await (const { sequence } of spillByTurns(store, "copy")) {
    sequences.push(sequence);
    most = Math.max(most, ++inTurn);
  }
  clearImmediate(turns);
  return { sequences, most };
}

test.each([
  ["SQLite", sqlite],
  ["memory", () => new MemoryStore()],
])("all of a spill is read in its order, and no more than 256 rows in a turn: %s", async (_, opened) => {
  const store = opened();
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  for (const rows of [0, 1, 255, 256, 257, 512, 1_300]) {
    const { length } = (await read(store)).sequences;
    const spill = Array.from({ length: rows - length }, (_row, index) => spilledEvent(id, length + index + 1));
    await store.commit({ ...emptyBatch, spill });
    const { sequences, most } = await read(store);
    expect(sequences).toEqual(Array.from({ length: rows }, (_row, index) => index + 1));
    expect(most).toBeLessThanOrEqual(257);
  }
});
