import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/resource-version.ts";
import { GapDiff, type KnownObject, MassDeletionGuard } from "../../runtime/watch/diff.ts";
import { change } from "../dispatch/harness.ts";

interface Item {
  readonly name: string;
  readonly uid: string;
  readonly rv: number;
}

const key = (name: string) => `team-a/${name}`;

function diff(known: readonly Item[], listed: readonly Item[], mode: "newer" | "different" = "newer") {
  const before = new Map<string, KnownObject>(
    known.map(({ name, uid, rv }) => [key(name), { uid, resourceVersion: resourceVersion(String(rv)) }]),
  );
  const gap = new GapDiff((it) => before.get(it), mode);
  for (const { name, uid, rv } of listed) gap.item(change("Added", name, rv, { uid }));
  return gap.end(before).found.map((it) => `${it.type} ${it.key.slice(7)}`);
}

const a = { name: "a", uid: "1", rv: 10 };
const b = { name: "b", uid: "2", rv: 11 };

const items = fc
  .uniqueArray(fc.record({ name: fc.constantFrom(..."abcdefgh"), uid: fc.constantFrom("1", "2"), rv: fc.nat(200) }), {
    selector: ({ name }) => name,
  })
  .map((list) => list.map((item) => ({ ...item, rv: item.rv + 1 })));

describe("the diff after a gap", () => {
  it("tells what was created, changed and deleted, and nothing of what was not", () => {
    const c = { name: "c", uid: "3", rv: 30 };
    expect(diff([a, b, c], [{ ...a, rv: 20 }, c, { name: "d", uid: "4", rv: 15 }])).toEqual([
      "Deleted b",
      "Added d",
      "Modified a",
    ]);
  });

  it("tells of a name that passed to another object as a deletion, then a creation", () => {
    expect(diff([a], [{ ...a, uid: "9", rv: 20 }])).toEqual(["Deleted a", "Added a"]);
  });

  it("takes an older state for a lagging server's, except after a rewind", () => {
    expect(diff([a], [{ ...a, rv: 9 }])).toEqual([]);
    expect(diff([a], [{ ...a, rv: 9 }], "different")).toEqual(["Modified a"]);
  });

  it("counts an item that is listed twice once", () => {
    expect(diff([], [a, a])).toEqual(["Added a"]);
  });

  it("brings what was known to what is listed, deletions first and the rest by resourceVersion", () => {
    fc.assert(
      fc.property(items, items, (known, listed) => {
        const told = diff(known, listed, "different");
        const state = new Map(known.map((it) => [it.name, it]));
        const byName = new Map(listed.map((it) => [it.name, it]));
        for (const line of told) {
          const [type, name = ""] = line.split(" ");
          const item = byName.get(name);
          if (type === "Deleted") expect(state.delete(name)).toBe(true);
          else {
            expect(state.has(name)).toBe(type === "Modified");
            if (item) state.set(name, item);
          }
        }
        expect([...state.values()].sort(byNameOrder)).toEqual([...listed].sort(byNameOrder));
        const rest = told.filter((line) => !line.startsWith("Deleted"));
        expect(told.slice(told.length - rest.length)).toEqual(rest);
        const versions = rest.map((line) => byName.get(line.split(" ")[1] ?? "")?.rv ?? 0);
        expect(versions).toEqual([...versions].sort((x, y) => x - y));
      }),
    );
  });
});

const byNameOrder = (x: Item, y: Item) => (x.name < y.name ? -1 : 1);

describe("the guard against mass deletion", () => {
  it("believes a list that empties most of a large set only when a second one says so, 30 s later", () => {
    const guard = new MassDeletionGuard();
    expect(guard.believes(80, 150, 1_000)).toBe(false);
    expect(guard.believes(80, 150, 30_999)).toBe(false);
    expect(guard.believes(80, 150, 31_000)).toBe(true);
    expect(guard.believes(80, 150, 31_001)).toBe(false);
  });

  it("believes at once what is small, and forgets its suspicion after a list that looks right", () => {
    const guard = new MassDeletionGuard();
    expect(guard.believes(100, 100, 0)).toBe(true);
    expect(guard.believes(75, 150, 0)).toBe(true);
    expect(guard.believes(150, 150, 0)).toBe(false);
    expect(guard.believes(0, 150, 10_000)).toBe(true);
    expect(guard.believes(150, 150, 31_000)).toBe(false);
  });
});
