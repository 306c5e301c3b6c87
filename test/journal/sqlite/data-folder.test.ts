import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { DataFolder } from "../../../runtime/journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import { folderOf } from "../../tools/folder.ts";
import { VirtualClock } from "../../virtual-clock.ts";

/** The data folder of a killed runtime: its commits are in the log. */
async function killed(): Promise<string> {
  const root = folderOf({});
  const [first, data] = [join(root, "first"), join(root, "data")];
  const store = new Checkpoint(new SqliteJournal({ folder: first }));
  await store.openView("copy", "settings", "/ConfigMap");
  cpSync(first, data, { recursive: true });
  await store.close(false);
  return data;
}

test("positions that are set aside keep the commits of their log, and leave none of it to a new file", async () => {
  const data = await killed();
  const folder = new DataFolder(data, new VirtualClock());
  expect(folder.retire()).toBe(true);
  expect(readdirSync(data).filter((name) => /^checkpoint\.db/.test(name))).toEqual([]);
  const aside = new DatabaseSync(join(data, "checkpoint.moved.db"));
  expect(aside.prepare("SELECT function FROM view").all()).toEqual([{ function: "copy" }]);
  aside.close();
});
