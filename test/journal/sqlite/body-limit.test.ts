import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

const mebibyte = 1024 * 1024;

test("last bodies fill half of the disk at most: then objects are known without one, and again with one once there is room", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-bodies-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = new Checkpoint(new SqliteJournal({ folder, room: () => 64 * mebibyte }));
  onTestFinished(() => store.close(false));
  const { id: view } = await store.openView("hog", "settings", "/ConfigMap");
  const state = (version: number, body: Buffer | undefined) => ({
    uid: `u${version}`,
    resourceVersion: resourceVersion(String(version)),
    hash: "",
    deleted: false,
    matched: true,
    form: undefined,
    keys: undefined,
    body,
  });
  const put = (number: number) =>
    store.commit({
      ...emptyBatch,
      known: [{ view, key: `a/o${number}`, state: state(number, Buffer.alloc(mebibyte, 97)) }],
    });
  const kept = async () => {
    let count = 0;
    for (let number = 1; number <= 60; number++) if (await store.body(view, `a/o${number}`)) count++;
    return count;
  };
  for (let number = 1; number <= 60; number++) await put(number);
  const full = await kept();
  expect(full).toBeGreaterThan(28);
  expect(full).toBeLessThanOrEqual(33);
  const keys: string[] = [];
  await store.known(view, (key) => void keys.push(key));
  expect(keys).toHaveLength(60);
  const gone = Array.from({ length: 20 }, (_, at) => ({ view, key: `a/o${at + 1}`, state: undefined }));
  await store.commit({ ...emptyBatch, known: gone });
  for (let number = 50; number <= 55; number++) await put(number);
  expect(await store.body(view, "a/o55")).toBeDefined();
});
