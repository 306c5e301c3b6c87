import { describe, expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Shard } from "../../runtime/engine/state/sharding.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";
import { minute, schedule } from "./schedule/fixture.ts";

/** A shard of the keys that end in one of these letters. */
const shardOf = (letters: string, isFirst = false): Shard => ({
  number: isFirst ? 0 : 1,
  sharding: "2 by name",
  isFirst,
  owns: (key) => letters.includes(key.at(-1) ?? ""),
  mayOwnIn: () => true,
});

const open = (shard: Shard, over: DispatchOptions = {}) => DispatchFixture.open({ shard, ...over });

const knownIn = async ({ store }: DispatchFixture) => {
  const keys: string[] = [];
  for (const { id } of await store.views()) await store.known(id, (key) => keys.push(key));
  return keys.toSorted();
};

describe("a shard", () => {
  test("tells of its own objects alone, listed, changed and deleted, and keeps nothing of others", async () => {
    const one = await open(shardOf("a"));
    await one.list(10, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
    await quiet(one.runner);
    one.subscription.change(change("Modified", "b", 11));
    one.subscription.change(change("Modified", "a", 12));
    one.subscription.change(change("Deleted", "b", 13));
    await quiet(one.runner);
    await one.list(20, [change("Added", "b", 19)]);
    await quiet(one.runner);
    expect(one.runner.told).toEqual(["Added a@5", "Modified a@12", expect.stringMatching(/^Deleted a@/)]);
    expect((await knownIn(one)).filter((key) => key.endsWith("b"))).toEqual([]);
  });

  test("goes on from its position, which others' changes pass with the next bookmark", async () => {
    const one = await (await open(shardOf("a"))).listed();
    one.subscription.change(change("Added", "b", 11));
    one.subscription.bookmark(resourceVersion("30"));
    await quiet(one.runner);
    await one.dispatcher.drain(1_000);
    const next = await one.restart({ shard: shardOf("a") });
    expect(next.subscription.resumeFrom).toBe("30");
  });

  test("says of an object that another one has that it is elsewhere, be it there or gone", async () => {
    const one = await (await open(shardOf("a"))).listed();
    const isElsewhere = async (name: string, seen?: ReturnType<typeof change>) =>
      (await one.function.object("settings", { namespace: "team-a", name }, seen)).isElsewhere;
    expect([await isElsewhere("a"), await isElsewhere("b")]).toEqual([false, true]);
    const [a, b] = [change("Modified", "a", 11), change("Modified", "b", 12)];
    expect([await isElsewhere("a", a), await isElsewhere("b", b)]).toEqual([false, true]);
    const whole = await (await DispatchFixture.open()).listed();
    expect((await whole.function.object("settings", { namespace: "team-a", name: "b" })).isElsewhere).toBeUndefined();
  });

  test("redelivers its own objects alone", async () => {
    const one = await (await open(shardOf("a"))).listed();
    expect(one.function.concerns("settings", change("Added", "a", 11))).toBe(true);
    expect(one.function.concerns("settings", change("Added", "b", 11))).toBe(false);
  });

  test("runs schedules where it is the first, and in mode Reconcile for its own keys", async () => {
    const nightly = (mode: "All" | "Reconcile") => ({ ...manifest({ mode }), schedules: [schedule()] });
    const told = async (mode: "All" | "Reconcile", isFirst: boolean) => {
      const clock = new VirtualClock(Date.parse("2026-03-01T02:59:00Z"));
      const shard = shardOf("a", isFirst);
      const one = await (await open(shard, { clock, manifest: nightly(mode) })).listed();
      one.subscription.change(change("Added", "a", 11));
      one.subscription.change(change("Added", "b", 12));
      await quiet(one.runner);
      const isHere = mode === "Reconcile" || isFirst;
      expect(one.function.schedule("nightly").isElsewhere).toBe(!isHere);
      const before = one.runner.deliveries.length;
      await clock.advance(2 * minute);
      return one.runner.deliveries.slice(before).map(({ object }) => object.name);
    };
    expect(await told("All", true)).toEqual(["nightly"]);
    expect(await told("All", false)).toEqual([]);
    expect(await told("Reconcile", true)).toEqual(["a"]);
    expect(await told("Reconcile", false)).toEqual(["a"]);
  });
});

describe("a shard by namespace", () => {
  const reading = (...names: string[]) => manifest({}, [trigger({ namespaces: { type: "names", names } })]);
  const inTeamB = {
    ...shardOf("a"),
    mayOwnIn: (namespace: string) => namespace === "team-b",
    sharding: "2 by namespace",
  };

  test("takes what is in a namespace that is named later for news, though it had none before", async () => {
    const first = await open(inTeamB, { manifest: reading("team-a"), namespace: "elsewhere" });
    const loading = { usesOldObject: false, shard: inTeamB };
    const withNone = await first.dispatcher.function({ ...reading("team-a"), name: "none" }, loading);
    expect(withNone.status().ready).toBe(true);
    await first.clock.advance(1_000);
    const it = await first.restart({ shard: inTeamB, manifest: reading("team-a", "team-b"), namespace: "team-b" });
    await it.list(500, [change("Added", "a", 400, { namespace: "team-b" })], "initial");
    await quiet(it.runner);
    expect(it.runner.deliveries.map(({ flags }) => flags.initial ?? false)).toEqual([false]);
  });

  test("wants no changes of another shard's namespaces, unless they may wake keys of its own", async () => {
    const { subscription } = await open(inTeamB);
    expect(["team-a", "team-b"].map((each) => subscription.wants?.(each))).toEqual([false, true]);
    const key = { type: "expression", expression: "object.spec.of" } as const;
    const reconciler = manifest({ mode: "Reconcile" }, [trigger(), trigger({ name: "pods", kind: "Pod", key })]);
    const it = await open(inTeamB, { manifest: reconciler });
    expect(it.function.subscription("pods", { selection: "all", namespace: "" }).wants).toBe(undefined);
  });

  test("says of an object of another shard's namespace that it is elsewhere", async () => {
    const it = await open(inTeamB);
    const isElsewhere = async (namespace: string) =>
      (await it.function.object("settings", { namespace, name: "a" })).isElsewhere;
    expect(await isElsewhere("team-a")).toBe(true);
    expect(await isElsewhere("team-b")).toBe(false);
  });
});

describe("an object that wakes a key by its fields", () => {
  const children = trigger({ name: "pods", kind: "Pod", key: { type: "expression", expression: "object.spec.of" } });
  const reconciler = manifest({ mode: "Reconcile" }, [trigger(), children]);
  const pod = (type: "Added" | "Modified" | "Deleted", rv: number, of: string) =>
    change(type, "x", rv, { spec: { of } });

  const shards = () =>
    Promise.all(
      [shardOf("a", true), shardOf("b")].map(async (shard) => {
        const fixture = await (await open(shard, { manifest: reconciler })).listed();
        const pods = fixture.function.subscription("pods", { selection: "all", namespace: "" });
        pods.list("initial", undefined).end(resourceVersion("1"));
        await fixture.clock.advance(200);
        const ran = async () => {
          await quiet(fixture.runner);
          return fixture.runner.deliveries.splice(0).map(({ object }) => object.name);
        };
        return { fixture, pods, ran };
      }),
    );

  test("wakes it in the key's shard alone, and both shards as it moves from one to the other", async () => {
    const [a, b] = await shards();
    const tell = async (given: ReturnType<typeof pod>) => {
      for (const shard of [a, b]) shard?.pods.change(given);
      return [await a?.ran(), await b?.ran()];
    };
    expect(await tell(pod("Added", 11, "a"))).toEqual([["a"], []]);
    expect(await tell(pod("Modified", 12, "b"))).toEqual([["a"], ["b"]]);
    expect(await tell(pod("Modified", 13, "b"))).toEqual([[], ["b"]]);
    expect(await tell(pod("Modified", 14, "a"))).toEqual([["a"], ["b"]]);
    expect(await tell(pod("Deleted", 15, "a"))).toEqual([["a"], []]);
  });

  test("is elsewhere where it wakes none of the shard's keys; of one that is gone nobody knows", async () => {
    const [a] = await shards();
    const isElsewhere = async (seen?: ReturnType<typeof pod>) =>
      (await a?.fixture.function.object("pods", { namespace: "team-a", name: "x" }, seen))?.isElsewhere;
    expect([await isElsewhere(pod("Modified", 11, "a")), await isElsewhere(pod("Modified", 11, "b"))]).toEqual([
      false,
      true,
    ]);
    expect(await isElsewhere()).toBe(false);
  });

  test("wakes both where it moved while nobody watched", async () => {
    const [a, b] = await shards();
    for (const shard of [a, b]) shard?.pods.change(pod("Added", 11, "a"));
    expect([await a?.ran(), await b?.ran()]).toEqual([["a"], []]);
    for (const shard of [a, b]) {
      const list = shard?.pods.list("relist", resourceVersion("11"));
      list?.item(pod("Added", 20, "b"));
      list?.end(resourceVersion("21"));
    }
    expect([await a?.ran(), await b?.ran()]).toEqual([["a"], ["b"]]);
  });
});
