import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { LastState } from "../../runtime/engine/redelivery/possible-redeliveries.ts";
import { type Difference, GapDiff } from "../../runtime/engine/state/gap-diff.ts";
import { change } from "./fixture.ts";

interface Item {
  readonly name: string;
  readonly uid: string;
  readonly rv: number;
}

const key = (name: string) => `team-a/${name}`;
const lineOf = (it: Difference) => `${it.type} ${it.key.slice(7)}`;

type Listed = Item & { readonly spec?: string };

/** Reads a list. Returns the deliveries made while it was read, and those made once it was complete. */
function read(
  known: readonly Item[],
  listed: readonly Listed[],
  { mode = "newer", believed = true }: { mode?: "newer" | "different"; believed?: boolean } = {},
) {
  const before = new Map<string, LastState>(
    known.map(({ name, uid, rv }) => [key(name), { uid, resourceVersion: resourceVersion(String(rv)) }]),
  );
  const told: string[] = [];
  const deliver = (it: Difference) => told.push(lineOf(it));
  const heldLimit = 16 << 20;
  const lookup = (it: string) => before.get(it);
  const gap = new GapDiff({ lookup, mode, believed, heldLimit, deliversUnknown: false, deliver });
  for (const { name, rv, ...over } of listed) gap.item(change("Added", name, rv, over));
  const { found, ...counts } = gap.end(before);
  return { told, found: found.map(lineOf), ...counts };
}

function diff(...args: Parameters<typeof read>): string[] {
  const { told, found } = read(...args);
  return [...told, ...found];
}

const a = { name: "a", uid: "1", rv: 10 };
const b = { name: "b", uid: "2", rv: 11 };
const c = { name: "c", uid: "3", rv: 30 };
const d = { name: "d", uid: "4", rv: 15 };

const items = fc
  .uniqueArray(fc.record({ name: fc.constantFrom(..."abcdefgh"), uid: fc.constantFrom("1", "2"), rv: fc.nat(200) }), {
    selector: ({ name }) => name,
  })
  .map((list) => list.map((item) => ({ ...item, rv: item.rv + 1 })));

describe("the diff after a gap", () => {
  it("tells what was created, changed and deleted, and nothing of what was not", () => {
    const { told, found } = read([a, b, c], [{ ...a, rv: 20 }, c, d]);
    expect([told, found]).toEqual([[], ["Deleted b", "Added d", "Modified a"]]);
  });

  it("delivers a name that passed to another object as a deletion, then a creation", () => {
    expect(diff([a], [{ ...a, uid: "9", rv: 20 }])).toEqual(["Deleted a", "Added a"]);
  });

  it("takes an older state for a lagging server's, except after a rewind", () => {
    expect(diff([a], [{ ...a, rv: 9 }])).toEqual([]);
    expect(diff([a], [{ ...a, rv: 9 }], { mode: "different" })).toEqual(["Modified a"]);
  });

  it("counts an item that is listed twice once", () => {
    expect(diff([], [a, a])).toEqual(["Added a"]);
  });

  it("brings what was known to what is listed, deletions first and the rest by resourceVersion", () => {
    fc.assert(
      fc.property(items, items, fc.boolean(), (known, listed, believed) => {
        const told = diff(known, listed, { mode: "different", believed });
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

describe("a list of more than may wait", () => {
  const spec = "x".repeat(1 << 20);
  const large = Array.from({ length: 40 }, (_, n) => ({ name: `n${n}`, uid: `u${n}`, rv: 20 + n, spec }));

  it("is told as it is read from there on, each difference once, what is gone at its end", () => {
    const { told, found, lacks } = read([a, b], [{ ...b, uid: "9", rv: 20 }, ...large]);
    expect(told.slice(0, 3)).toEqual(["Deleted b", "Added b", "Added n0"]);
    expect([told.length, found, lacks]).toEqual([42, ["Deleted a"], false]);
  });

  it("is told where an object shows that it is of the same cluster, and let go of where none does", () => {
    const doubted = { believed: false };
    const same = read([a, b], [...large, b], doubted);
    expect([same.told, same.lacks]).toEqual([[], true]);
    expect(read([a, b], [b, ...large], doubted)).toMatchObject({ found: ["Deleted a"], lacks: false });
    const other = read([a, b], [{ ...b, uid: "9", rv: 20 }, ...large], doubted);
    expect(other).toMatchObject({ told: [], known: 2, deleted: 2, lacks: true });
    expect(other.found.length).toBeLessThan(20);
  });
});

const byNameOrder = (x: Item, y: Item) => (x.name < y.name ? -1 : 1);
