import fc from "fast-check";
import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { OpenRows } from "../../runtime/engine/commit/open-rows.ts";
import type { StartedEvent } from "../../runtime/journal/batch.ts";

const attempt = (key: string, uid: string, view = 1): StartedEvent => ({
  ...{ view, key, id: `${uid}/5/Added`, type: "Added", attempt: 1 },
  resourceVersion: resourceVersion("5"),
});
const [of, other, third] = [attempt("a", "first"), attempt("b", "other"), attempt("a", "first", 2)];

function rowsWith(...all: readonly StartedEvent[]): OpenRows {
  const rows = new OpenRows();
  for (const _ of all) rows.add(7, all);
  return rows;
}

test("a tombstone takes what is settled of its name's earlier objects out of rows, and no more", () => {
  const rows = rowsWith(of, other, third);
  expect([rows.settle(7, of), rows.settle(7, third)]).toEqual([false, false]);
  expect(rows.recordDeletion(1, "a", "first")).toEqual([]);
  expect(rows.recordDeletion(1, "b", "second")).toEqual([]);
  expect(rows.recordDeletion(1, "a", "second")).toEqual([{ id: 7, started: [other, third] }]);
  expect(rows.recordDeletion(1, "a", "third")).toEqual([]);
  expect(rows.settle(7, other)).toBe(true);
  expect(rows.recordDeletion(2, "a", "second")).toEqual([]);
});

test("a row in which little is open is written without what is settled", () => {
  const all = Array.from({ length: 16 }, (_, index) => attempt(`n${index}`, `uid-${index}`));
  const rows = rowsWith(...all);
  const shrunk = all.slice(0, 15).map((each) => {
    rows.settle(7, each);
    return rows.shrink(7)?.started.length;
  });
  expect(shrunk.flatMap((left, index) => (left === undefined ? [] : [[index + 1, left]]))).toEqual([[12, 4]]);
  expect(rows.recordDeletion(1, "n0", "another")).toEqual([]);
  expect(rows.recordDeletion(1, "n12", "another")).toEqual([
    { id: 7, started: [13, 14, 15].map((index) => all[index]) },
  ]);
  expect(rows.settle(7, attempt("n15", "uid-15"))).toBe(true);
});

test("a tombstone leaves what is not settled on record", () => {
  const again = { ...of, id: "first/6/Modified" };
  const rows = rowsWith(of, again, other);
  rows.settle(7, of);
  expect(rows.recordDeletion(1, "a", "second")).toEqual([{ id: 7, started: [again, other] }]);
});

test("a tombstone takes them out of each row that tells of them, however many there are", () => {
  const rows = new OpenRows();
  for (const row of [7, 8, 9]) {
    for (const _ of [of, other]) rows.add(row, [of, other]);
    rows.settle(row, of);
  }
  expect(rows.settle(8, other)).toBe(true);
  expect(rows.recordDeletion(1, "a", "second")).toEqual([7, 9].map((id) => ({ id, started: [other] })));
  expect(rows.recordDeletion(1, "a", "third")).toEqual([]);
});

/** Reference model of rows: what each contains, and which of it is still open. */
class PlainRows {
  readonly said = new Map<number, { started: readonly StartedEvent[]; readonly open: Set<StartedEvent> }>();

  settle(row: number, attempt: StartedEvent): boolean {
    const found = this.said.get(row);
    found?.open.delete(attempt);
    if (found && found.open.size > 0) return false;
    this.said.delete(row);
    return true;
  }

  bury(view: number, key: string, uid: string) {
    return [...this.said].flatMap(([id, row]) => {
      const isDone = (each: StartedEvent) =>
        each.view === view && each.key === key && !each.id.startsWith(`${uid}/`) && !row.open.has(each);
      if (!row.started.some(isDone)) return [];
      row.started = row.started.filter((each) => !isDone(each));
      return [{ id, started: row.started }];
    });
  }
}

const chosen = fc.tuple(fc.nat(), fc.nat());
const act = fc.oneof(
  { weight: 3, arbitrary: fc.record({ begins: fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ settles: chosen }) },
  {
    weight: 3,
    arbitrary: fc.record({
      buries: fc.record({ key: fc.constantFrom("a", "b", "c"), uid: fc.constantFrom("u1", "u2") }),
    }),
  },
);

test("rows tell of what is open, and of what is settled until a tombstone takes it, however old they are", () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), fc.nat(4), (acts, young) => {
      const rows = new OpenRows(young);
      const plain = new PlainRows();
      const begun: { readonly row: number; readonly attempt: StartedEvent }[] = [];
      for (const [number, each] of acts.entries()) {
        if ("begins" in each) {
          const started = each.begins.map((which, place) => ({
            ...attempt("abcabc"[which] ?? "", which < 3 ? "u1" : "u2"),
            id: `u${which < 3 ? 1 : 2}/${number}-${place}/Modified`,
          }));
          for (const _ of started) rows.add(number, started);
          plain.said.set(number, { started, open: new Set(started) });
          begun.push(...started.map((attempt) => ({ row: number, attempt })));
        } else if ("settles" in each) {
          const [where] = each.settles;
          const found = begun[where % (begun.length || 1)];
          if (found) expect(rows.settle(found.row, { ...found.attempt })).toBe(plain.settle(found.row, found.attempt));
        } else {
          const { key, uid } = each.buries;
          const told = rows.recordDeletion(1, key, uid).toSorted((a, b) => a.id - b.id);
          expect(told).toEqual(plain.bury(1, key, uid));
        }
      }
    }),
    { numRuns: 500 },
  );
});
