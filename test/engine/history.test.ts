import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { EngineLog } from "../../runtime/engine/delivery/observer.ts";
import { History, Ring, type TracedEvent } from "../../runtime/engine/history/history.ts";
import { change, DispatchFixture, failure, manifest, quiet, trigger } from "./fixture.ts";

const silent: EngineLog = { info: () => {}, warn: () => {}, error: () => {} };

const event = (key: string): TracedEvent => ({
  objects: { trigger: { name: "settings" } },
  key,
  type: "Added",
  meta: { resourceVersion: resourceVersion("1") },
  id: "u/1/Added",
});

it("a ring gives the last entries, newest first, and never more than its limit", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.integer({ min: 1, max: 9 }), (entries, limit) => {
      const ring = new Ring<number>(limit);
      for (const entry of entries) ring.push(entry);
      expect([...ring]).toEqual(entries.slice(-limit).reverse());
    }),
  );
});

describe("a function's history", () => {
  it("keeps the last 200 filtered events, and counts all, however many there were", () => {
    const history = new History("f", silent);
    for (let n = 0; n < 1_000; n++) history.held(event(`a/${n}`), { type: "events" }, n);
    expect([...history.filtered].map(({ key }) => key)).toEqual(Array.from({ length: 200 }, (_, n) => `a/${999 - n}`));
    expect(history.count()).toEqual([{ trigger: "settings", why: "events", count: 1_000, last: 999 }]);
  });

  it("counts what was held back by trigger and reason, whichever came between", () => {
    const history = new History("f", silent);
    const [shared, other] = [{ type: "events" }, { type: "condition", condition: "web" }] as const;
    const held = [shared, other, shared, shared, { ...other }, shared];
    for (const name of ["one", "two"]) {
      for (const [index, why] of held.entries())
        history.held({ ...event("team-a/a"), objects: { trigger: { name } } }, why, index);
    }
    expect(new Set(history.count())).toEqual(
      new Set(
        ["one", "two"].flatMap((trigger) => [
          { trigger, why: "events", count: 4, last: 5 },
          { trigger, why: "condition", condition: "web", count: 2, last: 4 },
        ]),
      ),
    );
  });

  it("stays small where names and messages are large", () => {
    const history = new History("f", silent);
    const message = "x".repeat(100_000);
    for (let n = 0; n < 200; n++) history.held(event("a/b"), { type: "conditionError", condition: "c", message }, n);
    history.held(event("n".repeat(100_000)), { type: "events" }, 200);
    const error = { name: "Error", message, stack: message };
    for (let n = 0; n < 200; n++) history.ran(event("a/b"), 1, { type: "failed", durationMs: 1, error }, n);
    expect(JSON.stringify([...history.filtered, ...history.runs]).length).toBeLessThan(400 * 500);
  });

  it("tells a trace-level log of each filtered event with its reason", () => {
    const lines: object[] = [];
    const log = { ...silent, trace: (fields: object) => lines.push(fields), isLevelEnabled: () => true };
    new History("f", log).held(event("a/b"), { type: "conditionError", condition: "c", message: "hunter2" }, 0);
    expect(lines).toEqual([
      {
        function: "f",
        trigger: "settings",
        object: "a/b",
        type: "Added",
        resourceVersion: "1",
        why: "conditionError",
        condition: "c",
      },
    ]);
  });
});

const open = async (over: Parameters<typeof trigger>[0]) =>
  (await DispatchFixture.open({ manifest: manifest({}, [trigger(over)]) })).listed();

const filteredOf = (fixture: DispatchFixture) => fixture.dispatcher.status()[0]?.filtered;

describe("the reason of a filtered event is the rule that held it back", () => {
  it.each([
    ["events", { events: ["Deleted"] }, {}],
    ["changedFields", { changedFields: [["spec", "v"]] }, {}],
    ["condition", { matchConditions: [{ name: "big", expression: "object.spec.v > 7" }] }, { condition: "big" }],
    ["conditionError", { matchConditions: [{ name: "odd", expression: "object.no.v > 7" }] }, { condition: "odd" }],
  ] as const)("%s", async (why, over, more) => {
    const fixture = await open(over);
    fixture.subscription.change(change("Added", "a", 5, { spec: { v: 1 } }));
    await quiet(fixture.runner);
    fixture.subscription.change(change("Modified", "a", 6, { spec: { v: 1, other: 1 } }));
    await quiet(fixture.runner);
    const count = 2 - fixture.runner.told.length;
    expect(filteredOf(fixture)).toMatchObject([{ trigger: "settings", why, count, ...more }]);
  });

  it("initialEvents: Skip is the reason of those that were there at the deployment", async () => {
    const fixture = await DispatchFixture.open({ manifest: manifest({}, [trigger({ initialEvents: "Skip" })]) });
    await fixture.list(9, [change("Added", "a", 5)], "initial");
    expect(filteredOf(fixture)).toMatchObject([{ why: "initialEvents", count: 1 }]);
  });
});

it("an attempt that ended is in the history with its outcome, and one event's attempts are counted", async () => {
  const fixture = await open({});
  let attempts = 0;
  fixture.runner.answer = () => (++attempts === 1 ? failure("first") : { type: "ok", durationMs: 3 });
  fixture.subscription.change(change("Added", "a", 5));
  await quiet(fixture.runner);
  await fixture.clock.advance(2_000);
  await quiet(fixture.runner);
  const { runs, filtered, known } = await fixture.function.object("settings", { namespace: "team-a", name: "a" });
  expect(runs).toMatchObject([
    { attempt: 2, outcome: "ok", type: "Added", error: undefined },
    { attempt: 1, outcome: "failed", error: "Error: first" },
  ]);
  expect(filtered).toEqual([]);
  expect(known).toEqual({ resourceVersion: "5", deleted: false });
});

it("an event that waited while the one before it ran is filtered after that one's attempt, also on record", async () => {
  const fixture = await open({ changedFields: [["spec", "v"]] });
  fixture.runner.answer = () => undefined;
  fixture.subscription.change(change("Added", "a", 5, { spec: { v: 1 } }));
  await quiet(fixture.runner);
  fixture.subscription.change(change("Modified", "a", 6, { spec: { v: 1, other: 1 } }));
  await fixture.clock.advance(1_000);
  await fixture.runner.end("a");
  const { runs, filtered } = await fixture.function.object("settings", { namespace: "team-a", name: "a" });
  expect([runs.length, filtered.length]).toEqual([1, 1]);
  expect(filtered[0]?.order).toBeGreaterThan(runs[0]?.order ?? 0);
  expect(filtered[0]?.at).toBeGreaterThanOrEqual(runs[0]?.at ?? Number.POSITIVE_INFINITY);
});

describe("what the next event of an object would come to", () => {
  const object = { namespace: "team-a", name: "a" };
  const seen = (spec: object) => change("Added", "a", 9, { spec });

  it("is told with each condition's answer, and counts as no evaluation", async () => {
    const fixture = await open({
      matchConditions: [
        { name: "big", expression: "object.spec.v > 7" },
        { name: "odd", expression: "object.spec.no == 1" },
        { name: "named", expression: "object.metadata.name == 'a'" },
        { name: "grew", expression: "object.spec.v > oldObject.spec.v" },
      ],
    });
    const { next } = await fixture.function.object("settings", object, seen({ v: 1 }));
    expect(next?.heldBack).toEqual({ type: "condition", condition: "big" });
    expect(next?.answers.map(({ condition, answer }) => [condition, answer.type])).toEqual([
      ["big", "fails"],
      ["odd", "error"],
      ["named", "holds"],
      ["grew", "error"],
    ]);
    expect(fixture.dispatcher.status()[0]?.conditionErrors).toEqual([]);
  });

  it("is what the filter then decides", async () => {
    const rules = {
      changedFields: [["spec", "v"]],
      matchConditions: [{ name: "big", expression: "object.spec.v > 7" }],
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ v: fc.nat(15), w: fc.nat(1) }), { minLength: 1, maxLength: 6 }),
        async (specs) => {
          const fixture = await open(rules);
          let rv = 10;
          for (const spec of specs) {
            const { next } = await fixture.function.object("settings", object, seen(spec));
            const before = fixture.runner.told.length;
            fixture.subscription.change(change(next?.type ?? "Added", "a", ++rv, { spec }));
            await quiet(fixture.runner);
            expect(fixture.runner.told.length > before).toBe(next?.heldBack === undefined);
            const { filtered } = await fixture.function.object("settings", object);
            if (next?.heldBack) expect(filtered[0]).toMatchObject({ why: next.heldBack, type: next.type });
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  it("compares with the state before, where a condition does", async () => {
    const rises = [{ name: "rises", expression: "object.spec.v > oldObject.spec.v" }];
    const fixture = await open({ matchConditions: rises, events: ["Modified"] });
    fixture.subscription.change(change("Added", "a", 11, { spec: { v: 5 } }));
    await quiet(fixture.runner);
    const next = async (v: number) => (await fixture.function.object("settings", object, seen({ v }))).next;
    expect((await next(4))?.heldBack).toEqual({ type: "condition", condition: "rises" });
    expect((await next(6))?.heldBack).toBeUndefined();
  });
});
