import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LoggedRecords } from "./logged-records.ts";

function logs() {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-logs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return [join(folder, "first.log"), join(folder, "second.log")] as const;
}

function line(at: number, name: string, attempt = 1, redelivered = false): string {
  const fields = { id: `${name}/7/Modified`, uid: name, name, type: "Modified", resourceVersion: "7", redelivered };
  const time = new Date(at).toISOString();
  return `${JSON.stringify({ time, attempt, fields: { ...fields, synthetic: false, reason: "" }, msg: "told" })}\n`;
}

test("each delivery is found once, in the order of all replicas' clocks, however often and in what pieces it is read", async () => {
  const [first, second] = logs();
  const records = new LoggedRecords(() => [first, second]);
  const later = line(2_000, "later");
  appendFileSync(first, line(1_000, "one") + line(1_000, "two") + later.slice(0, 30));
  appendFileSync(second, `${JSON.stringify({ msg: "slot runs", slot: 3 })}\n${line(1_500, "between")}`);
  expect(await records.written()).toBe(3);
  appendFileSync(first, later.slice(30));
  expect(await records.written()).toBe(4);
  const found = await records.deliveries();
  expect(found.map(({ name }) => name)).toEqual(["one", "two", "between", "later"]);
  expect(found.map(({ writtenAt }) => writtenAt)).toEqual([0, 1, 2, 3]);
});

test("a delivery counts as flagged where it says that it may have run, or is a later attempt", async () => {
  const [first, second] = logs();
  appendFileSync(first, line(1, "first") + line(2, "again", 2) + line(3, "redelivered", 1, true));
  appendFileSync(second, "");
  const found = await new LoggedRecords(() => [first, second]).deliveries();
  expect(found.map(({ name, flagged }) => [name, flagged])).toEqual([
    ["first", false],
    ["again", true],
    ["redelivered", true],
  ]);
});
