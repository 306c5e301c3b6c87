import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Delivery } from "../../runtime/engine/delivery/delivery.ts";
import type { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, type DispatchOptions, done, failure, manifest, quiet, trigger } from "./fixture.ts";

/**
 * A store like that in Secrets: it takes a mebibyte of waiting events, at most a quarter of it for one function, and only events
 * that hold a checkpoint back.
 */
class SecretsStore extends MemoryStore {
  constructor(disk?: MemoryDisk, spillLimit = 1 << 20) {
    super(disk, { spillLimit, holdsQueues: false });
  }
}

const retry = { maxAttempts: 1, initialDelayMs: 1_000, maxDelayMs: 3_600_000, factor: 1 };
const blocks = manifest({ onFailure: "Block", retry });
const spec = "x".repeat(1_000);

/** A function whose objects named `hot` fail for an hour, and no others. */
async function opened(options: DispatchOptions = {}): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open({ store: new SecretsStore(), ...options })).listed();
  it.runner.answer = ({ object }) => (object.name.startsWith("hot") ? failure("busy", 3_600_000) : done);
  return it;
}

/** Sends changes of one object, as many as the function accepts. */
async function feed(it: DispatchFixture, name: string, from: number, count: number, aSecond = 10): Promise<void> {
  for (let rv = from; rv < from + count; rv++) {
    while (it.subscription.congested) await it.clock.advance(100);
    it.subscription.change(change(rv === from ? "Added" : "Modified", name, rv, { spec: { rv, spec } }));
    if (rv % aSecond === 0) await it.clock.advance(1_000);
  }
}

/** Sends 60 changes of other objects within a minute. Returns how many were delivered. */
async function others(it: DispatchFixture, from: number): Promise<number> {
  for (let n = 0; n < 60; n++) {
    it.subscription.change(change("Added", `other${n}`, from + n, { spec }));
    await it.clock.advance(1_000);
  }
  await quiet(it.runner);
  return new Set(it.runner.deliveries.map(({ object }) => object.name).filter((name) => name.startsWith("other"))).size;
}

/** Returns the deliveries of hot objects from now on, until nothing of them waits. */
async function rest(it: DispatchFixture): Promise<readonly Delivery[]> {
  it.runner.deliveries.length = 0;
  it.runner.answer = () => done;
  await it.clock.advance(3_600_000);
  await quiet(it.runner);
  await it.clock.advance(1_000);
  return it.runner.deliveries.filter(({ object }) => object.name.startsWith("hot"));
}

const versions = (deliveries: readonly Delivery[]): number[] => deliveries.map((each) => Number(each.resourceVersion));
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe("a key with a backlog, where queues wait in memory", () => {
  it.each([
    ["asks to be run in an hour", manifest(), 1_500],
    ["is blocked for good", blocks, 10_500],
  ])("that %s holds up no other key of its function", async (_, of, changes) => {
    const it = await opened({ manifest: of });
    await feed(it, "hot", 11, changes, 50);
    expect([await others(it, 50_000), it.function.status().full]).toEqual([60, false]);
  });

  it("delays no other together with five more of its kind", async () => {
    const it = await opened({ manifest: blocks });
    for (let n = 0; n < 6; n++) await feed(it, `hot${n}`, 1_000 * n + 11, 900);
    expect([await others(it, 50_000), it.function.status().full]).toEqual([60, false]);
  });

  it("is told of its first changes one by one, and then of its newest state, with the gap and the object before it", async () => {
    const it = await opened({ usesOldObject: true });
    await feed(it, "hot", 11, 1_500);
    const told = await rest(it);
    const last = told.at(-1);
    const kept = versions(told).slice(0, -1);
    expect(kept).toEqual(range(11, 10 + kept.length));
    expect(kept.length).toBeGreaterThan(20);
    const from = String(kept.at(-1));
    expect(last).toMatchObject({ type: "Modified", resourceVersion: "1510", redelivered: false, attempt: 1 });
    expect(last?.flags).toEqual({ synthetic: true, reason: "backlog", gap: { from, to: "1510" } });
    expect(JSON.parse(String(last?.oldBody)).metadata.resourceVersion).toBe(from);
    expect(told.slice(0, -1).every(({ flags }) => flags.synthetic === undefined)).toBe(true);
    it.subscription.bookmark(resourceVersion("9000"));
    await it.clock.advance(1_000);
    expect(it.subscription.lowWaterMark).toBe("9000");
  });

  it("receives each deletion, and each object that took its name", async () => {
    const it = await opened();
    for (let life = 0; life < 3; life++) {
      const uid = `uid-${life}`;
      const first = 11 + life * 1_000;
      for (let rv = first; rv < first + 500; rv++) {
        it.subscription.change(change(rv === first ? "Added" : "Modified", "hot", rv, { uid }));
        if (rv % 10 === 0) await it.clock.advance(1_000);
      }
      it.subscription.change(change("Deleted", "hot", first + 500, { uid }));
    }
    const told = (await rest(it)).filter(({ type, flags }) => type !== "Modified" || flags.reason === "backlog");
    const said = told.map(
      ({ type, object, flags }) => `${type} ${object.uid}${flags.reason ? ` ${flags.reason}` : ""}`,
    );
    const lives = [0, 1, 2].map((n) => [`Added uid-${n}`, `Modified uid-${n} backlog`, `Deleted uid-${n}`]);
    expect(said).toEqual(lives.flat());
  });

  it("is told again after a kill what went, where the newest state had not ended: no position passes it before", async () => {
    const it = await opened({ store: new SecretsStore(undefined, 0) });
    await feed(it, "hot", 11, 1_500);
    it.runner.deliveries.length = 0;
    it.runner.answer = ({ flags }) => (flags.reason === "backlog" ? undefined : done);
    await it.clock.advance(3_600_000);
    await quiet(it.runner);
    await others(it, 5_000);
    const from = it.runner.deliveries.find(({ flags }) => flags.gap)?.flags.gap?.from;
    const { disk } = it.store as MemoryStore;
    const next = await it.restart({ store: new SecretsStore(disk, 0) });
    expect([Number(from) >= 11, Number(next.subscription.resumeFrom) <= Number(from)]).toEqual([true, true]);
  });

  it.each([
    ["the newest state", 700, 700],
    ["all of it", 740, 0],
  ])(
    "has one event on record for all that went, which says so after a kill, where %s came last",
    async (_, first, more) => {
      const store = (disk?: MemoryDisk) => new SecretsStore(disk, Number.POSITIVE_INFINITY);
      const it = await opened({ store: store(), manifest: blocks });
      await feed(it, "hot", 11, first);
      // All of them are on record before they collapse.
      await it.clock.advance(120_000);
      if (more > 0) await feed(it, "hot", 11 + first, more);
      await feed(it, "hot1", 5_000, 100);
      await it.clock.advance(120_000);
      const { disk } = it.store as MemoryStore;
      expect([disk.spill.size === it.function.status().queued, disk.spill.size < 700]).toEqual([true, true]);
      it.runner.answer = () => done;
      it.runner.deliveries.length = 0;
      const next = await it.restart({ store: store(disk), manifest: blocks });
      await quiet(next.runner);
      const told = next.runner.deliveries.filter(({ object }) => object.name === "hot");
      const gaps = told.flatMap(({ flags, resourceVersion: to }) => (flags.gap ? [{ ...flags.gap, to }] : []));
      const untold = range(11, 10 + first + more).filter((rv) => !versions(told).includes(rv));
      expect([untold.length > 300, versions(told).at(-1)]).toEqual([true, 10 + first + more]);
      expect(untold.filter((rv) => !gaps.some(({ from, to }) => Number(from) < rv && rv < Number(to)))).toEqual([]);
    },
  );

  it("keeps the events of two triggers on it apart", async () => {
    const triggers = [trigger(), trigger({ name: "again" })];
    const it = await opened({ manifest: manifest({}, triggers) });
    const again = it.function.subscription("again", { selection: "all", namespace: "" });
    again.list("initial", undefined).end(resourceVersion("1"));
    for (let rv = 11; rv < 1_000; rv++) {
      for (const each of [it.subscription, again]) each.change(change(rv === 11 ? "Added" : "Modified", "hot", rv));
      if (rv % 10 === 0) await it.clock.advance(1_000);
    }
    const told = await rest(it);
    for (const name of ["settings", "again"]) {
      const last = told.findLast((each) => each.trigger === name);
      expect(last).toMatchObject({ resourceVersion: "999", flags: { reason: "backlog" } });
    }
  });

  it("leaves the others of its function their room on record, and holds no position up", async () => {
    const it = await opened({ manifest: blocks });
    await feed(it, "hot", 11, 300);
    await it.clock.advance(120_000);
    it.subscription.bookmark(resourceVersion("1000"));
    await it.clock.advance(1_000);
    expect(it.subscription.lowWaterMark).toBe("1000");
  });
});

it("nothing collapses while there is room, nor where the handler is quick", async () => {
  const it = await opened();
  await feed(it, "hot", 11, 150);
  expect(versions(await rest(it))).toEqual(range(11, 160));
  for (let rv = 1_000; rv < 3_000; rv++) {
    it.subscription.change(change("Modified", "hot", rv));
    if (rv % 100 === 0) await quiet(it.runner);
  }
  await quiet(it.runner);
  expect(versions(it.runner.deliveries).slice(-2_000)).toEqual(range(1_000, 2_999));
  expect(it.runner.deliveries.some(({ flags }) => flags.synthetic)).toBe(false);
});

it("the log, the history and a metric say of which object how many events collapsed", async () => {
  const it = await opened();
  await feed(it, "hot", 11, 1_500);
  const { filtered } = await it.function.object("settings", { namespace: "team-a", name: "hot" });
  expect(filtered[0]).toMatchObject({ type: "Modified", why: { type: "backlog", collapsed: filtered[0]?.count } });
  const counted = it.function.status().filtered.find(({ why }) => why === "backlog")?.count;
  const logged = it.warnings.filter(({ msg }) => msg === "backlog of an object collapsed");
  expect(counted).toBe(it.outcomes.get("dropped"));
  expect(counted).toBeGreaterThan(500);
  expect(logged[0]).toMatchObject({ function: "copy", trigger: "settings", object: "team-a/hot" });
  expect([logged.length > 0, logged.length < 5]).toEqual([true, true]);
});

/** A store like that on a volume: it takes all waiting events, as long as there is room. */
class VolumeStore extends MemoryStore {
  constructor() {
    super(undefined, { spillLimit: 1 << 20 });
  }
}

describe("a key with a backlog on a volume, at the bound of its function's disk", () => {
  const openedOnVolume = () => opened({ manifest: blocks, store: new VolumeStore() });

  it("holds up no other key of its function, and its function does not step aside", async () => {
    const it = await openedOnVolume();
    await feed(it, "hot", 11, 3_000, 50);
    expect([await others(it, 50_000), it.function.status().full]).toEqual([60, false]);
  });

  it("is told its first changes one by one, and then its newest state with the gap", async () => {
    const it = await openedOnVolume();
    await feed(it, "hot", 11, 3_000, 50);
    const told = await rest(it);
    const kept = versions(told).slice(0, -1);
    expect(kept).toEqual(range(11, 10 + kept.length));
    expect(kept.length).toBeGreaterThan(100);
    const last = told.at(-1);
    expect(last).toMatchObject({ type: "Modified", resourceVersion: "3010" });
    expect(last?.flags).toEqual({
      synthetic: true,
      reason: "backlog",
      gap: { from: String(kept.at(-1)), to: "3010" },
    });
    expect(it.function.status()).toMatchObject({ spilled: 0, queued: 0 });
  });
});
