import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { applyEntry, Changes, encodeEntry } from "../../runtime/journal/memory/log-entry.ts";
import { headerOf, readSpilled, readSpillHeader } from "../../runtime/journal/rows.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { spilledEvent, spilledKey } from "./store-contract.ts";

const pending = {
  causes: [{ type: "Added", trigger: "settings", namespace: "team-a", name: "web" }],
  begun: 1,
  forgiven: 0,
} as const;

/** Headers in the form of 61ca142a. */
const oldEvent =
  '{"view":1,"function":"copy","trigger":"settings","namespace":"team-a","name":"web","uid":"u1","resourceVersion":"7","type":"Modified","id":"u1/7/Modified","flags":{},"deletedBy":"7","form":"F,v1,-,-","receivedAt":1700000000000,"sequence":3,"replayed":false,"redelivered":true}';
const oldTick =
  '{"view":2,"function":"copy","trigger":"nightly","namespace":"","name":"nightly","uid":"u2","resourceVersion":"1700000000000","type":"Scheduled","id":"u2/1700000000000/Scheduled","flags":{},"deletedBy":"1700000000000","form":"N,v1,-,-","receivedAt":1700000000000,"sequence":4,"replayed":false,"redelivered":false}';
const oldKey =
  '{"view":1,"function":"copy","trigger":"settings","namespace":"team-a","name":"web","uid":"","resourceVersion":"0","type":"Modified","id":"key/5","flags":{},"deletedBy":"0","form":"F,v1,-,-","receivedAt":1700000000000,"sequence":5,"replayed":true,"redelivered":false,"notBefore":1700000000001,"pending":{"causes":[{"type":"Added","trigger":"settings","namespace":"team-a","name":"web"}],"begun":1,"forgiven":0}}';

/** A header in the form of an older runtime. */
const withoutKind = (header: string) => {
  const { kind: _, ...old } = JSON.parse(header);
  return JSON.stringify(old);
};

test("a row without a kind is read as the event, the time or the key that it is", () => {
  const read = [oldEvent, oldTick, oldKey].map((header) => readSpillHeader({ header, size: 0 }));
  expect(read).toMatchObject([
    { kind: "event", sequence: 3, type: "Modified", resourceVersion: "7", redelivered: true },
    { kind: "tick", sequence: 4, type: "Scheduled" },
    { kind: "key", sequence: 5, namespace: "team-a", name: "web", notBefore: 1_700_000_000_001, pending },
  ]);
  expect(read[2]).not.toHaveProperty("uid");
});

test("the row of a key has all that an older runtime reads of one", () => {
  const { kind, ...row } = JSON.parse(headerOf(spilledKey(1, 5, pending)));
  expect(kind).toBe("key");
  const { form: _, notBefore: __, ...old } = JSON.parse(oldKey);
  expect(row).toEqual(old);
  expect(readSpilled({ header: headerOf(spilledEvent(1, 5)), body: Buffer.from("{}") })).toMatchObject({
    kind: "event",
  });
});

test("rows that an older runtime left in a data folder are read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-old-rows-"));
  const first = new Checkpoint(new SqliteJournal({ folder }));
  const { id } = await first.openView("copy", "settings", "/ConfigMap");
  await first.commit({ ...emptyBatch, spill: [spilledEvent(id, 3), spilledKey(id, 5, pending)] });
  await first.close(true);
  const file = new DatabaseSync(join(folder, "checkpoint.db"));
  const rows = file.prepare("SELECT sequence, header FROM spill").all();
  for (const { sequence, header } of rows)
    file.prepare("UPDATE spill SET header = ? WHERE sequence = ?").run(withoutKind(String(header)), Number(sequence));
  file.close();
  const second = new Checkpoint(new SqliteJournal({ folder }));
  expect([...(await second.spillHeaders("copy"))].map(({ kind }) => kind)).toEqual(["event", "key"]);
  expect((await second.spilled("copy", 4, 1))[0]).toMatchObject({ kind: "key", sequence: 5, pending });
  await second.close(true);
});

test("rows that an older runtime left in Secrets or in a stream are read", () => {
  const disk = new MemoryDisk();
  disk.spill.set("copy/3", spilledEvent(1, 3)).set("copy/5", spilledKey(1, 5, pending));
  const entry = JSON.parse(encodeEntry(disk, Changes.all(disk)).toString());
  for (const row of entry.spill) row[1] = withoutKind(row[1]);
  const read = new MemoryDisk();
  applyEntry(read, Buffer.from(JSON.stringify(entry)));
  expect([...read.spill.values()]).toMatchObject([
    { kind: "event", sequence: 3 },
    { kind: "key", sequence: 5, pending },
  ]);
});
