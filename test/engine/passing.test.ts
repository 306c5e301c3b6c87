import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { MatchConditions } from "../../runtime/engine/filter/conditions.ts";
import { Subscribers } from "../../runtime/engine/state/subscribers.ts";
import { Members } from "../../runtime/informer/fanout/members.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, manifest, quiet, trigger } from "./fixture.ts";

const asking = (expression: string) => ({
  manifest: manifest({}, [trigger({ matchConditions: [{ name: "own", expression }] })]),
});
/** A condition that first requires a text, which the quick scan can check. */
const demanding = asking("object.spec.of == 'x'");
/** The same condition, in a form that the quick scan does not recognise. */
const judging = asking("object.spec.of in ['x']");

type Step =
  | { readonly type: "write"; readonly name: string; readonly of: string | undefined }
  | { readonly type: "bookmark" | "kill" | "list" | "reconnect" | "wait" };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        type: fc.constant("write" as const),
        name: fc.constantFrom("a", "b", "c"),
        of: fc.constantFrom("x", "y", undefined),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constantFrom(...(["bookmark", "list", "reconnect", "wait"] as const)) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("kill" as const) }) },
  ),
  { maxLength: 30 },
);

/** Each reading takes a millisecond, so that long work is done in slices. */
class CountingClock extends VirtualClock {
  private looks = 0;

  override monotonic(): number {
    return super.monotonic() + ++this.looks;
  }
}

/** Delivers everything to the function as a stream does to a subscriber that changes may skip. */
function streamTo({ subscription }: DispatchFixture, position?: string): Members {
  const members = new Members();
  const at = position ? resourceVersion(position) : (subscription.resumeFrom ?? resourceVersion("1"));
  members.join({ subscriber: subscription, at }, true);
  members.cover(at);
  return members;
}

/**
 * Returns a function's deliveries, and its stored state at the end of all steps. `streams`: a stream sends the changes.
 */
async function lives(given: typeof demanding, life: readonly Step[], streams = false) {
  let it = await (await DispatchFixture.open(given)).listed();
  const source = () => (streams ? streamTo(it) : it.subscription);
  let from = source();
  const objects = new Map<string, Change>();
  const past: Change[] = [];
  let rv = 10;
  for (const step of life) {
    if (step.type === "write") {
      const stands = objects.get(step.name);
      // Without a value, the object is deleted in its previous state.
      if (step.of === undefined && !stands) continue;
      const type = step.of === undefined ? "Deleted" : stands ? "Modified" : "Added";
      const of = step.of ?? JSON.parse(String(stands?.body)).spec.of;
      const uid = stands?.meta.uid ?? `uid-${step.name}-${rv}`;
      const written = change(type, step.name, ++rv, { uid, spec: { of } });
      if (type === "Deleted") objects.delete(step.name);
      else objects.set(step.name, written);
      past.push(written);
      from.change(written);
    } else if (step.type === "bookmark") from.bookmark(resourceVersion(String(rv)));
    else if (step.type === "list") {
      if (from instanceof Members) from.leave(it.subscription);
      await it.list(rv, [...objects.values()]);
      from = source();
    } else if (step.type === "reconnect") {
      if (!(from instanceof Members)) continue;
      from.uncover(resourceVersion(String(rv)));
      from.cover(resourceVersion(String(rv)));
    } else if (step.type === "wait") await it.clock.advance(1_000);
    else {
      await quiet(it.runner);
      it = await it.restart(given);
      const resumed = Number(it.subscription.resumeFrom ?? 0);
      from = source();
      for (const each of past) if (Number(each.meta.resourceVersion) > resumed) from.change(each);
    }
    await quiet(it.runner);
  }
  from.bookmark(resourceVersion(String(rv + 1)));
  await it.clock.advance(6_000);
  const [view] = await it.store.views();
  const rows: string[] = [];
  await it.store.known(view?.id ?? 0, (key, { resourceVersion: at, deleted }) => rows.push(`${key}@${at} ${deleted}`));
  const isKilled = life.some(({ type }) => type === "kill");
  return {
    told: it.runner.told,
    rows: rows.sort(),
    mark: view?.cursors[0]?.lowWaterMark,
    filtered: isKilled ? "counted again" : it.outcomes.get("filtered"),
  };
}

describe("changes that lack what a function demands", () => {
  it("pass it with the same deliveries, rows, positions and counts as where each is judged", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (life) => {
        expect(await lives(demanding, life)).toEqual(await lives(judging, life));
      }),
      { numRuns: 60 },
    );
  });

  it("pass it in the same way where its stream does not tell it of them", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (life) => {
        expect(await lives(demanding, life, true)).toEqual(await lives(judging, life));
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    ["the function is told of them", false],
    ["a stream hands them to it", true],
  ])("are judged where the object is still to be told of by a list, where %s", async (_, streams) => {
    const clock = new CountingClock();
    const it = await DispatchFixture.open({ ...demanding, clock });
    const items = (prefix: string, rv: number) =>
      Array.from({ length: 200 }, (_, index) => change("Added", `${prefix}${index}`, rv, { spec: { of: "x" } }));
    const known = items("known", 5);
    await it.list(9, known, "initial");
    await clock.advance(1_000);
    // New objects may have to wait for the end of a list that could delete many.
    const found = items("new", 15);
    const receiver = it.subscription.list("relist", undefined);
    for (const item of [...known, ...found]) receiver.item(item);
    receiver.end(resourceVersion("19"));
    const from = streams ? streamTo(it, "19") : it.subscription;
    for (const { meta } of found) from.change(change("Deleted", meta.name, 20, { spec: { of: "y" } }));
    from.bookmark(resourceVersion("21"));
    do await clock.advance(1_000);
    while (it.subscription.congested || it.function.status().queued > 0);
    await clock.advance(6_000);
    const [view] = await it.store.views();
    const alive: string[] = [];
    await it.store.known(view?.id ?? 0, (key, { deleted }) => deleted || alive.push(key));
    expect(alive.filter((key) => key.includes("new"))).toEqual([]);
  });

  it("leave the position and the history at the newest of them over a reconnect", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    const from = streamTo(it);
    const pass = (rv: number) => from.change(change("Modified", "a", rv, { spec: { of: "y" } }));
    for (const rv of [11, 12, 13]) pass(rv);
    from.uncover(resourceVersion("13"));
    from.cover(resourceVersion("13"));
    pass(14);
    await it.clock.advance(1_000);
    expect(it.subscription.resumeFrom).toBe("14");
    const { filtered } = await it.function.object("settings", { namespace: "team-a", name: "a" });
    expect([...filtered].map(({ resourceVersion }) => resourceVersion)).toContain("14");
  });

  it("are read of the field that is named, whatever characters its name has", () => {
    const fields = ["object.spec.a.b == 'x'", "object.spec[\"a\\nb\"] == 'x'"].map(
      (expression) => new MatchConditions([{ name: "own", expression }]).demanded?.field,
    );
    expect(new Set(fields).size).toBe(2);
  });

  it.each([0, 5])("pass none that has closed after %i of them: its position and its counts stay", async (before) => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    const from = streamTo(it);
    const pass = (rv: number) => from.change(change("Modified", "a", rv, { spec: { of: "y" } }));
    for (let rv = 11; rv < 11 + before; rv++) pass(rv);
    it.subscription.close();
    const closed = it.subscription.cursor();
    expect(it.outcomes.get("filtered") ?? 0).toBe(before);
    for (let rv = 21; rv < 26; rv++) pass(rv);
    await it.clock.advance(6_000);
    expect(it.subscription.cursor()).toEqual(closed);
    expect(it.outcomes.get("filtered") ?? 0).toBe(before);
  });

  it("of another shard are no shard's to count", async () => {
    const shard = {
      number: 1,
      sharding: "2 by name",
      isFirst: false,
      owns: (key: string) => key.endsWith("a"),
      mayOwnIn: () => true,
    };
    const it = await (await DispatchFixture.open({ ...demanding, shard })).listed();
    const from = streamTo(it);
    for (let rv = 11; rv < 31; rv++) from.change(change("Modified", rv % 2 ? "a" : "b", rv, { spec: { of: "y" } }));
    await it.clock.advance(1_000);
    expect(it.outcomes.get("filtered")).toBe(10);
  });

  it("count as filtered with their reason, within a second, and a position passes them", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    for (let rv = 11; rv < 111; rv++) it.subscription.change(change("Modified", "a", rv, { spec: { of: "y" } }));
    await it.clock.advance(1_000);
    expect(Object.fromEntries(it.outcomes)).toEqual({ filtered: 100 });
    expect(it.function.status().filtered).toMatchObject([{ why: "condition", condition: "own", count: 100 }]);
    expect(it.subscription.lowWaterMark).toBe("1");
    it.subscription.change(change("Modified", "a", 111, { spec: { of: "y" } }));
    await it.clock.advance(1_000);
    expect(it.subscription.lowWaterMark).toBe("110");
    expect(it.subscription.resumeFrom).toBe("111");
  });

  it("are told apart by whichever field is demanded, one after the other", () => {
    const conditions = (expression: string) => new MatchConditions([{ name: "own", expression }]);
    const [one, other] = [conditions("object.a == 'x'"), conditions("object.b == 'x'")];
    const text = { body: Buffer.from('{"a":"x","b":"y"}') };
    expect([one, other, one].map((each) => each.plainRefusal(text) !== undefined)).toEqual([false, true, false]);
  });

  it("do not pass whoever came to know the object since it was asked", () => {
    const holders = new Subscribers<string>();
    expect(holders.has("a/b", "one")).toBe(false);
    holders.add("a/b", "one");
    expect([holders.has("a/b", "one"), holders.has("a/b", "other")]).toEqual([true, false]);
    holders.delete("a/b", "one");
    expect(holders.has("a/b", "one")).toBe(false);
  });

  it("come before whatever follows them: a change that is told, and a list", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    const inOrder = async (name: string) => {
      await it.clock.advance(1_000);
      const { filtered, runs } = await it.function.object("settings", { namespace: "team-a", name });
      const all = [...filtered, ...runs].toSorted((one, other) => one.order - other.order);
      return all.map(({ resourceVersion }) => resourceVersion);
    };
    it.subscription.change(change("Modified", "a", 11, { spec: { of: "y" } }));
    it.subscription.change(change("Modified", "a", 12, { spec: { of: "x" } }));
    await quiet(it.runner);
    expect(await inOrder("a")).toEqual(["11", "12"]);
    it.subscription.change(change("Modified", "b", 13, { spec: { of: "y" } }));
    await it.list(14, [change("Added", "b", 14, { spec: { of: "y" } })]);
    expect(await inOrder("b")).toEqual(["13", "14"]);
  });

  it("are counted within a quarter of a second, once each, whatever is told between them", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    await it.clock.advance(1_000);
    for (const [rv, of] of ["y", "x", "y", "y", "x", "y"].entries()) {
      it.subscription.change(change("Added", `n${rv}`, 11 + rv, { spec: { of } }));
    }
    await quiet(it.runner);
    await it.clock.advance(250);
    expect([it.outcomes.get("filtered"), it.outcomes.get("ok")]).toEqual([4, 2]);
    await it.clock.advance(1_000);
    expect(it.outcomes.get("filtered")).toBe(4);
  });

  it("have the right number in the history, however often they were counted before", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    for (const [from, to] of [
      [11, 13],
      [13, 14],
    ] as const) {
      for (let rv = from; rv < to; rv++) it.subscription.change(change("Modified", "a", rv, { spec: { of: "y" } }));
      await it.clock.advance(1_000);
    }
    const { filtered } = await it.function.object("settings", { namespace: "team-a", name: "a" });
    expect(filtered.map(({ resourceVersion, count }) => [resourceVersion, count])).toEqual([
      ["13", 1],
      ["12", 2],
    ]);
  });

  it("are counted where the function closes before that", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    await it.clock.advance(1_000);
    it.subscription.change(change("Modified", "a", 11, { spec: { of: "y" } }));
    it.subscription.close();
    expect(it.outcomes.get("filtered")).toBe(1);
  });

  it("take no position back behind a bookmark, though their resourceVersions have no order", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    it.subscription.change(change("Modified", "a", "early", { spec: { of: "y" } }));
    it.subscription.bookmark(resourceVersion("late"));
    await it.clock.advance(1_000);
    expect([it.subscription.resumeFrom, it.subscription.lowWaterMark]).toEqual(["late", "late"]);
  });

  it("of before a restore end no doubt that a power loss left: what is told after it comes flagged, also from the next process", async () => {
    const first = await (await DispatchFixture.open(demanding)).listed();
    first.disk.end = "power-loss";
    const it = await first.restart(demanding);
    it.subscription.serverIsAt(resourceVersion("12"));
    it.subscription.change(change("Modified", "a", 14, { spec: { of: "y" } }));
    it.subscription.rewound();
    it.subscription.serverIsAt(resourceVersion("9"));
    await it.store.close(await it.drain());
    const next = await it.restart(demanding);
    await next.list(9, [change("Added", "a", 8, { spec: { of: "x" } })], "rv-rewind");
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@8 !"]);
  });

  it("do not pass a function that has stepped aside", async () => {
    const it = await (await DispatchFixture.open(demanding)).listed();
    it.subscription.close();
    it.subscription.change(change("Modified", "a", 11, { spec: { of: "y" } }));
    await it.clock.advance(1_000);
    expect(it.outcomes.size).toBe(0);
  });
});
