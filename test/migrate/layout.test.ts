import fc from "fast-check";
import { expect, test } from "vitest";
import { resourceVersion, resourceVersionIn } from "../../runtime/base/resource-version.ts";
import { type Sharding, selectionOf, shardingOf, whole } from "../../runtime/engine/state/sharding.ts";
import { type Cursor, emptyBatch, type KnownState, runId } from "../../runtime/journal/batch.ts";
import { copyJournal } from "../../runtime/migrate/copy.ts";
import { alone, type Layout, layoutOf } from "../../runtime/migrate/layout.ts";
import { slotsOf } from "../../runtime/slots/rendezvous.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { letter, spilledEvent, spilledKey } from "../journal/store-contract.ts";

type LayoutKind = Pick<Layout, "isKeyed" | "isReconciler">;
const plain: LayoutKind = { isKeyed: () => false, isReconciler: () => false };
const version = (number: number) => resourceVersion(String(number));
const ownSelection = selectionOf("app=web", "", undefined);

const layout = (slots: number, shardings: Record<string, Sharding>): Layout =>
  layoutOf(slots, (name) => shardings[name] ?? whole);

/** Migrates all stores of one layout to those of another. */
async function carried(
  stores: readonly MemoryStore[],
  from: Layout,
  to: Layout,
  nature = plain,
): Promise<MemoryStore[]> {
  const targets = Array.from({ length: to.slots }, () => new MemoryStore());
  for (const [target, store] of targets.entries()) {
    for (const [source, each] of stores.entries()) {
      await copyJournal(each, store, { from, source, to: { ...to, ...nature }, target });
    }
  }
  return targets;
}

/** All stored data, without the numbers that a store assigns. */
async function contents(store: MemoryStore) {
  const views = await store.views();
  const words = new Map(views.map((view) => [view.id, `${view.function}/${view.trigger}/${view.resource}`]));
  const of = (view: number) => words.get(view) ?? "gone";
  const known: unknown[] = [];
  for (const { id } of views) {
    const rows: [string, unknown][] = [];
    await store.known(id, (key, identity) => rows.push([key, identity]));
    for (const [key, identity] of rows) known.push([of(id), key, identity, await store.body(id, key)]);
  }
  const names = new Set(views.map((view) => view.function));
  const spill: unknown[] = [];
  for (const name of names) {
    const events = await store.spilled(name, Number.NEGATIVE_INFINITY, 1e9);
    const byObject = Map.groupBy(events, (event) => `${of(event.view)} ${event.namespace}/${event.name}`);
    for (const [object, own] of byObject) {
      spill.push([object, own.map(({ view: _, sequence: __, id, ...rest }) => [rest.kind === "key" ? "" : id, rest])]);
    }
  }
  const journal = (await store.begun()).flatMap(({ started }) => started).map(({ view, ...rest }) => [of(view), rest]);
  const letters = (await store.deadLetters()).map(({ letter: _, view, ...rest }) => [of(view), rest]);
  const text = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
  return {
    cluster: await store.cluster(),
    paused: [...(await store.paused())].toSorted(),
    cursors: text(views.flatMap(({ id, cursors }) => cursors.map(({ view: _, ...rest }) => [of(id), rest]))),
    known: text(known),
    spill: text(spill),
    journal: text(journal),
    letters: text(letters),
  };
}

const names = ["copy", "audit", "label"];

const objectArbitrary = fc.record({
  function: fc.constantFrom(...names),
  key: fc.integer({ min: 0, max: 30 }).map((number) => `team-${number % 3}/object-${number}`),
  rv: fc.integer({ min: 1, max: 500 }),
  kind: fc.constantFrom("known", "older", "deleted", "waits", "began", "letter"),
});

/** A single runtime with all kinds of rows. */
async function filled(
  objects: readonly { function: string; key: string; rv: number; kind: string }[],
): Promise<MemoryStore> {
  const store = new MemoryStore();
  await store.setCluster("cluster-1");
  await store.setPaused("audit", 7);
  let sequence = 0;
  for (const name of names) {
    const { id: view } = await store.openView(name, "settings", "/ConfigMap");
    const { id: clock } = await store.openView(name, "nightly", "watchfire.dev/Schedule");
    const cursor: Cursor = {
      view,
      namespace: "",
      selection: ownSelection,
      lowWaterMark: resourceVersionIn("400"),
      epoch: 2,
      initial: false,
    };
    const times = { ...cursor, view: clock, selection: '[{"everyMs":60000},0]', lowWaterMark: version(60_000) };
    await store.commit({ ...emptyBatch, cursors: [cursor, times] });
  }
  for (const [index, { function: name, key, rv, kind }] of objects.entries()) {
    const view = (await store.views(name)).find(({ trigger }) => trigger === "settings")?.id ?? 0;
    const [namespace = "", object = ""] = key.split("/");
    const at = {
      view,
      function: name,
      namespace,
      name: object,
      resourceVersion: version(rv),
      id: `u-${key}/${rv}/Modified`,
    };
    const identity = {
      uid: `u-${key}`,
      resourceVersion: version(rv),
      hash: "h",
      deleted: kind === "deleted",
      matched: true,
    };
    const state = (body: KnownState["body"]) => ({
      ...emptyBatch,
      known: [{ view, key, state: { ...identity, body } }],
    });
    if (kind === "known" || kind === "older") await store.commit(state(Buffer.from(`body ${index}`)));
    if (kind === "older") await store.commit(state("older"));
    if (kind === "deleted") await store.commit(state(undefined));
    if (kind === "waits") {
      await store.commit({ ...emptyBatch, spill: [{ ...spilledEvent(view, ++sequence), ...at, sequence }] });
    }
    if (kind === "began") {
      const started = [
        { view, key, id: at.id, resourceVersion: at.resourceVersion, type: "Modified" as const, attempt: 1 },
      ];
      await store.commit({ ...emptyBatch, journal: [{ id: index + 1, started }] });
    }
    if (kind === "letter") await store.commit({ ...emptyBatch, deadLetters: [{ ...letter(view), ...at }] });
  }
  return store;
}

test("what is split over slots is together again what it was, whole functions and those in shards", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(objectArbitrary, { maxLength: 40 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 5 }),
      async (objects, slots, shards) => {
        const store = await filled(objects);
        const fleet = layout(slots, { copy: { shards, by: "key" } });
        const split = await carried([store], alone, fleet);
        const [merged = new MemoryStore()] = await carried(split, fleet, alone);
        const [before, after] = [await contents(store), await contents(merged)];
        // A function in shards then has no checkpoint, but its schedule does.
        const places = slotsOf("copy", shards, slots).length;
        const withoutMark = (row: string) =>
          places > 1 && row.startsWith('["copy/settings') ? row.replace('"lowWaterMark":"400",', "") : row;
        expect(after).toEqual({ ...before, cursors: before.cursors.map(withoutMark).toSorted() });
      },
    ),
    { numRuns: 60 },
  );
});

test("each row lies in one slot, that of its function or of its key's shard, where the position is as it was", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(objectArbitrary, { maxLength: 40 }),
      fc.integer({ min: 2, max: 9 }),
      async (objects, slots) => {
        const store = await filled(objects);
        const fleet = layout(slots, { copy: { shards: 3, by: "key" } });
        const split = await carried([store], alone, fleet);
        const all = await contents(store);
        const parts = await Promise.all(split.map(contents));
        for (const kind of ["known", "spill", "journal", "letters"] as const) {
          expect(parts.flatMap((part) => part[kind]).toSorted()).toEqual(all[kind]);
        }
        for (const [slot, each] of split.entries()) {
          for (const { function: name, trigger, cursors } of await each.views()) {
            const places = slotsOf(name, name === "copy" ? 3 : 1, slots);
            expect(places).toContain(slot);
            if (trigger !== "settings") continue;
            const selection = name === "copy" ? selectionOf("app=web", "", "3 by key") : ownSelection;
            expect(cursors).toMatchObject([{ selection, lowWaterMark: "400", epoch: 2, initial: false }]);
          }
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("a fleet of another number of slots has the same, with each position as it was", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(objectArbitrary, { maxLength: 40 }),
      fc.integer({ min: 3, max: 9 }),
      fc.integer({ min: 3, max: 9 }),
      async (objects, slots, others) => {
        const shardings = { copy: { shards: 3, by: "key" } as const };
        const [first, second] = [layout(slots, shardings), layout(others, shardings)];
        const split = await carried([await filled(objects)], alone, first);
        const moved = await carried(split, first, second);
        const direct = await carried([await filled(objects)], alone, second);
        expect(await Promise.all(moved.map(contents))).toEqual(await Promise.all(direct.map(contents)));
      },
    ),
    { numRuns: 40 },
  );
});

test("a key's run comes back under the number of its row, also where rows of two shards come together", async () => {
  const sharding: Sharding = { ...shardingOf({ delivery: { shards: 2, mode: "Reconcile" } as never }) };
  const fleet = layout(4, { copy: sharding });
  const stores = Array.from({ length: 4 }, () => new MemoryStore());
  for (const [shard, slot] of slotsOf("copy", 2, 4).entries()) {
    const store = stores[slot] ?? new MemoryStore();
    const { id: view } = await store.openView("copy", "settings", "/ConfigMap");
    const row = (sequence: number) => ({
      ...spilledKey(view, sequence, { causes: [{ type: "Resync" }], begun: 1, forgiven: 0 }),
      name: `object-${shard}-${sequence}`,
    });
    const began = (sequence: number) => ({
      id: sequence,
      started: [
        {
          view,
          key: `team-a/object-${shard}-${sequence}`,
          id: runId(sequence),
          resourceVersion: resourceVersion("5"),
          type: "Modified" as const,
          attempt: 1,
        },
      ],
    });
    await store.commit({ ...emptyBatch, spill: [row(1), row(2)], journal: [began(2)] });
  }
  const [merged = new MemoryStore()] = await carried(stores, fleet, alone);
  const rows = await merged.spilled("copy", 0, 9);
  expect(rows.map(({ sequence, id }) => [sequence, id])).toEqual([1, 2, 3, 4].map((each) => [each, runId(each)]));
  const began = (await merged.begun()).flatMap(({ started }) => started);
  const named = new Map(rows.map(({ id, name }) => [id, name]));
  expect(began.map(({ id, key }) => [`team-a/${named.get(id)}`, key])).toEqual([
    ["team-a/object-0-2", "team-a/object-0-2"],
    ["team-a/object-1-2", "team-a/object-1-2"],
  ]);
});

test("an object that counts for keys of two shards is known in both, and where they come together as the older has it", async () => {
  const sharding: Sharding = { shards: 2, by: "name" };
  const fleet = layout(8, { copy: sharding });
  const nature: LayoutKind = { isKeyed: (_, trigger) => trigger === "pods", isReconciler: () => true };
  const store = new MemoryStore();
  const { id: view } = await store.openView("copy", "pods", "/Pod");
  const put = (of: MemoryStore, at: number, key: string, rv: number, keys?: readonly string[]) =>
    of.commit({
      ...emptyBatch,
      known: [
        {
          view: at,
          key,
          state: {
            uid: "u",
            resourceVersion: version(rv),
            hash: "",
            deleted: false,
            matched: true,
            body: undefined,
            ...(keys && { keys }),
          },
        },
      ],
    });
  // Names that are in both shards.
  const owners = Array.from({ length: 9 }, (_, number) => `team-a/owner-${number}`);
  await put(store, view, "team-a/of-all", 5, owners);
  await put(store, view, "team-a/unnoted", 5);
  await put(store, view, "team-a/of-one", 5, [owners[0] ?? ""]);
  const split = await carried([store], alone, fleet, nature);
  const known = async (of: MemoryStore) => {
    const keys: string[] = [];
    for (const { id } of await of.views("copy"))
      await of.known(id, (key, { resourceVersion: rv }) => keys.push(`${key} ${rv}`));
    return keys;
  };
  const shards = slotsOf("copy", 2, 8).map((slot) => split[slot] ?? new MemoryStore());
  const found = await Promise.all(shards.map(known));
  for (const keys of found) expect(keys).toEqual(expect.arrayContaining(["team-a/of-all 5", "team-a/unnoted 5"]));
  expect(found.flat().filter((key) => key.startsWith("team-a/of-one"))).toHaveLength(1);
  // One shard has already delivered a newer state to its keys.
  const [ahead = new MemoryStore()] = shards;
  await put(ahead, (await ahead.views("copy"))[0]?.id ?? 0, "team-a/of-all", 9, owners);
  const [merged = new MemoryStore()] = await carried(split, fleet, alone, nature);
  expect((await known(merged)).toSorted()).toEqual(["team-a/of-all 5", "team-a/of-one 5", "team-a/unnoted 5"]);
});

test("a function in shards by namespace keeps its positions, each in the shard of its namespace, also where they come together", async () => {
  const fleet = layout(8, { copy: { shards: 4, by: "namespace" } });
  const namespaces = Array.from({ length: 12 }, (_, number) => `team-${number}`);
  const store = new MemoryStore();
  const { id: view } = await store.openView("copy", "settings", "/ConfigMap");
  const cursors = namespaces.map((namespace, index): Cursor => {
    return { view, namespace, selection: ownSelection, lowWaterMark: version(100 + index), epoch: 0, initial: false };
  });
  await store.commit({ ...emptyBatch, cursors });
  const split = await carried([store], alone, fleet);
  const namesIn = async (of: MemoryStore) =>
    (await of.views()).flatMap((each) => each.cursors.map((it) => it.namespace));
  expect((await Promise.all(split.map(namesIn))).flat().toSorted()).toEqual(namespaces.toSorted());
  const [merged = new MemoryStore()] = await carried(split, fleet, alone);
  expect((await contents(merged)).cursors).toEqual((await contents(store)).cursors);
});

test("a schedule goes with the first shard, and in mode Reconcile with each, of which the one that told least counts", async () => {
  const fleet = layout(4, { copy: { shards: 2, by: "namespace" } });
  for (const isReconciler of [false, true]) {
    const nature: LayoutKind = { ...plain, isReconciler: () => isReconciler };
    const split = await carried([await filled([])], alone, fleet, nature);
    const cursorsOf = async (store: MemoryStore) =>
      (await store.views("copy")).filter(({ trigger }) => trigger === "nightly").flatMap(({ cursors }) => cursors);
    const found = await Promise.all(slotsOf("copy", 2, 4).map((slot) => cursorsOf(split[slot] ?? new MemoryStore())));
    expect(found.map(({ length }) => length)).toEqual(isReconciler ? [1, 1] : [1, 0]);
    const [first] = slotsOf("copy", 2, 4);
    const [cursor] = found[0] ?? [];
    if (cursor)
      await split[first ?? 0]?.commit({ ...emptyBatch, cursors: [{ ...cursor, lowWaterMark: version(120_000) }] });
    const [merged = new MemoryStore()] = await carried(split, fleet, alone, nature);
    expect(await cursorsOf(merged)).toMatchObject([{ lowWaterMark: isReconciler ? "60000" : "120000" }]);
  }
});

test("each part of a function receives the entries of all parts of its own state, and no other slot any", async () => {
  const store = new MemoryStore();
  await store.openView("copy", "settings", "/ConfigMap");
  const put = (to: MemoryStore, key: string) =>
    to.commit({ ...emptyBatch, state: [{ function: "copy", key, value: `"${key}"` }] });
  await put(store, "a");
  const three = layout(8, { copy: { shards: 3, by: "key" } });
  const parts = await carried([store], layout(1, {}), three);
  const here = slotsOf("copy", 3, 8);
  const keysIn = (stores: readonly MemoryStore[]) => stores.map((each) => [...each.ownState("copy").keys()].toSorted());
  expect(keysIn(parts)).toEqual(parts.map((_, slot) => (here.includes(slot) ? ["a"] : [])));
  for (const slot of here) await put(parts[slot] as MemoryStore, `of-${slot}`);
  const [whole] = await carried(parts, three, layout(1, {}));
  expect([...(whole?.ownState("copy").keys() ?? [])].toSorted()).toEqual(
    ["a", ...here.map((slot) => `of-${slot}`)].toSorted(),
  );
});
