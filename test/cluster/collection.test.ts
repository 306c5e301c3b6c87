import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Store } from "../../runtime/cluster/storage/store.ts";
import { VirtualClock } from "../virtual-clock.ts";

const write = fc.record({ key: fc.constantFrom("a/1", "a/2", "b/1", "b/2", "c/1"), remove: fc.boolean() });
const object = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });

describe("a collection", () => {
  test("shows every revision that it still remembers exactly as it was", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 40 }), fc.constantFrom("", "a/", "b/"), (writes, prefix) => {
        const store = new Store(new VirtualClock());
        const collection = store.collection("things");
        const snapshots = new Map<number, string[]>();
        const shown = (entries: Iterable<[string, { revision: number }]>) =>
          [...entries].map(([key, { revision }]) => `${key}@${revision}`);
        snapshots.set(store.revision, []);
        for (const { key, remove } of writes) {
          if (remove) store.delete("things", key);
          else store.put("things", key, object(key));
          snapshots.set(store.revision, shown(collection.current(prefix)));
        }
        for (const [revision, snapshot] of snapshots)
          expect(shown(collection.past(revision, prefix))).toEqual(snapshot);
      }),
    );
  });

  test("lists its keys in order whatever the order of writes", () => {
    fc.assert(
      fc.property(fc.array(write), (writes) => {
        const store = new Store(new VirtualClock());
        const model = new Set<string>();
        for (const { key, remove } of writes) {
          [...store.collection("things").keys("")];
          if (remove) store.delete("things", key);
          else store.put("things", key, object(key));
          if (remove) model.delete(key);
          else model.add(key);
        }
        expect([...store.collection("things").keys("")]).toEqual([...model].sort());
      }),
    );
  });

  test("gives the changes after a revision, each once, in order", () => {
    fc.assert(
      fc.property(fc.array(write), fc.nat(40), (writes, offset) => {
        const store = new Store(new VirtualClock());
        const revisions: number[] = [];
        const start = store.revision + offset;
        for (const { key, remove } of writes) {
          const before = store.revision;
          if (remove) store.delete("things", key);
          else store.put("things", key, object(key));
          if (store.revision > Math.max(before, start)) revisions.push(store.revision);
        }
        const cursor = store.collection("things").after(start);
        const seen: number[] = [];
        for (let change = cursor.next(); change; change = cursor.next()) seen.push(change.revision);
        expect(seen).toEqual(revisions);
      }),
    );
  });

  test("forgets what is older than five minutes, and says from where on it remembers", async () => {
    const clock = new VirtualClock();
    const store = new Store(clock);
    const old = store.put("things", "a", object("a")).revision;
    await clock.advance(300_001);
    store.put("things", "b", object("b"));
    expect(store.collection("things").compacted).toBe(old);
  });

  test("shows a deleted object's content with the deletion's revision", () => {
    const store = new Store(new VirtualClock());
    store.put("things", "a", { ...object("a"), data: { x: "1" } });
    const gone = store.delete("things", "a");
    expect(gone?.object).toMatchObject({ data: { x: "1" }, metadata: { resourceVersion: String(store.revision) } });
  });
});
