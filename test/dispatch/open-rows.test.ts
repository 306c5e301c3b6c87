import { expect, test } from "vitest";
import type { StartedEvent } from "../../runtime/checkpoint/batch.ts";
import { OpenRows } from "../../runtime/dispatch/commit/open-rows.ts";
import { resourceVersion } from "../../runtime/resource-version.ts";

const attempt = (key: string, uid: string, view = 1): StartedEvent => ({
  ...{ view, key, id: `${uid}/5/Added`, type: "Added", attempt: 1 },
  resourceVersion: resourceVersion("5"),
});
const [of, other, third] = [attempt("a", "first"), attempt("b", "other"), attempt("a", "first", 2)];

function rowsWith(...all: readonly StartedEvent[]): OpenRows {
  const rows = new OpenRows();
  for (const each of all) rows.add(7, each, all);
  return rows;
}

test("a tombstone takes what is settled of its name's earlier objects out of rows, and no more", () => {
  const rows = rowsWith(of, other, third);
  expect([rows.settle(7, of), rows.settle(7, third)]).toEqual([false, false]);
  expect(rows.bury(1, "a", "first")).toEqual([]);
  expect(rows.bury(1, "b", "second")).toEqual([]);
  expect(rows.bury(1, "a", "second")).toEqual([{ id: 7, started: [other, third] }]);
  expect(rows.bury(1, "a", "third")).toEqual([]);
  expect(rows.settle(7, other)).toBe(true);
  expect(rows.bury(2, "a", "second")).toEqual([]);
});

test("a row in which little is open is written without what is settled", () => {
  const all = Array.from({ length: 16 }, (_, index) => attempt(`n${index}`, `uid-${index}`));
  const rows = rowsWith(...all);
  const shrunk = all.slice(0, 15).map((each) => {
    rows.settle(7, each);
    return rows.shrink(7)?.started.length;
  });
  expect(shrunk.flatMap((left, index) => (left === undefined ? [] : [[index + 1, left]]))).toEqual([[12, 4]]);
  expect(rows.bury(1, "n0", "another")).toEqual([]);
  expect(rows.bury(1, "n12", "another")).toEqual([{ id: 7, started: [13, 14, 15].map((index) => all[index]) }]);
  expect(rows.settle(7, attempt("n15", "uid-15"))).toBe(true);
});

test("a tombstone leaves what is not settled on record", () => {
  const again = { ...of, id: "first/6/Modified" };
  const rows = rowsWith(of, again, other);
  rows.settle(7, of);
  expect(rows.bury(1, "a", "second")).toEqual([{ id: 7, started: [again, other] }]);
});

test("a tombstone takes them out of each row that tells of them, however many there are", () => {
  const rows = new OpenRows();
  for (const row of [7, 8, 9]) {
    for (const each of [of, other]) rows.add(row, each, [of, other]);
    rows.settle(row, of);
  }
  expect(rows.settle(8, other)).toBe(true);
  expect(rows.bury(1, "a", "second")).toEqual([7, 9].map((id) => ({ id, started: [other] })));
  expect(rows.bury(1, "a", "third")).toEqual([]);
});
