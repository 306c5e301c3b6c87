import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

// Writes more to the folder in argv than its log may hold, closes it cleanly, and has nothing else to wait for.
const store = new Checkpoint(new SqliteJournal({ folder: process.argv[2] ?? "", room: () => 1 }));
const { id } = await store.openView("copy", "settings", "/ConfigMap");
const body = Buffer.alloc(100_000, "x");
const identity = { uid: "u", resourceVersion: resourceVersion("5"), hash: "", deleted: false, matched: true };
for (let n = 0; n < 10; n++) {
  await store.commit({ ...emptyBatch, known: [{ view: id, key: `a/${n}`, state: { ...identity, body } }] });
}
await store.close(true);
