import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { readManifests } from "../../runtime/manifest/read.ts";
import { recordsOf } from "../../runtime/manifest/trigger-record.ts";
import { spilledKey } from "../journal/store-contract.ts";
import { folderOf } from "../tools/folder.ts";
import { define, manifest, outcome } from "./session.ts";

it("validate says in one line what an edit does to what a data folder has on record, and changes nothing there", async () => {
  const functions = folderOf({});
  const reconciling = "  delivery: { mode: Reconcile }\n";
  define(functions, "copy", undefined, manifest("copy", reconciling));
  const [read] = readManifests(manifest("copy", reconciling), "function.yaml", join(functions, "copy"));
  if (!read?.manifest) throw new Error("no manifest");
  const data = mkdtempSync(join(tmpdir(), "watchfire-edited-"));
  const store = new Checkpoint(new SqliteJournal({ folder: data }));
  for (const { name, resource, fields } of recordsOf(read.manifest)) {
    const { id } = await store.openView("copy", name, resource);
    await store.recordViews([{ id, trigger: name, identity: name, manifest: JSON.stringify(fields) }]);
    const pending = { causes: [], begun: 0, forgiven: 0 };
    await store.commit({ ...emptyBatch, spill: [spilledKey(id, 1, pending)] });
  }
  await store.close(true);
  const same = await outcome("validate", "--functions", functions, "--data", data);
  expect(same.output).not.toContain("changed");
  define(functions, "copy", undefined, manifest("copy"));
  for (const _ of ["once", "again"]) {
    const { status, output } = await outcome("validate", "--functions", functions, "--data", data);
    expect(output).toContain("copy: mode changed from Reconcile to All: 1 waiting key is delivered");
    expect(status).toBe(0);
  }
});
