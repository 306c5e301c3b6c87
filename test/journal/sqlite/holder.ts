import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

// Holds the store of the folder in argv until it is killed.
const store = new Checkpoint(new SqliteJournal({ folder: process.argv[2] ?? "" }));
const { id } = await store.openView("copy", "settings", "/ConfigMap");
const cursor = {
  view: id,
  namespace: "",
  selection: "s1",
  lowWaterMark: resourceVersion("41"),
  epoch: 0,
  initial: true,
};
await store.commit({ ...emptyBatch, cursors: [cursor] });
process.stdout.write("held\n");
// Referenced here, so that the store and its lock are not garbage-collected.
setInterval(() => void store, 60_000);
