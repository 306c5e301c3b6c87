import { describe, expect, it } from "vitest";
import { defineHandler, InvalidError } from "../../sdk/index.ts";
import { runFixture, runHandler } from "../../sdk/testing.ts";

const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "demo" } };

const once = defineHandler(async (event, ctx) => {
  if (await ctx.state.get(event.id)) return;
  await ctx.state.set(event.id, { at: 1, of: "x" });
  for (const key of await ctx.state.keys("old-")) await ctx.state.delete(key);
  if (event.object.data) throw new Error("no");
});

describe("a handler's own state in a unit test", () => {
  it("begins with the given entries, and is returned as it is after the run", async () => {
    const run = await runHandler(once, { object }, { state: { "old-1": 1, kept: [2] } });
    expect(run).toMatchObject({ outcome: "ok", calls: [] });
    expect(run.state).toEqual({ kept: [2], test: { at: 1, of: "x" } });
    expect((await runHandler(once, { object }, { state: { test: 1 } })).state).toEqual({ test: 1 });
  });

  it("is as before if the handler fails", async () => {
    const run = await runHandler(once, { object: { ...object, data: {} } as never }, { state: { "old-1": 1 } });
    expect([run.outcome, run.state]).toEqual(["failed", { "old-1": 1 }]);
  });

  it("refuses a value that JSON cannot hold", async () => {
    const run = await runHandler(async (_, ctx) => ctx.state.set("a", undefined), { object });
    expect(run.error).toBeInstanceOf(InvalidError);
  });

  it.each([
    ["a BigInt", 1n, "value is a BigInt"],
    ["NaN in an array", { at: [1, Number.NaN] }, "value.at[1] is NaN, which JSON does not have"],
    ["an infinite number", Number.POSITIVE_INFINITY, "value is Infinity"],
    ["a Map", { seen: new Map() }, "value.seen is a Map; store Object.fromEntries(…)"],
    ["a Set", new Set(), "value is a Set; store an array"],
    ["a Date", { at: new Date(0) }, "value.at is a Date; store its toISOString()"],
    ["a function", { call: () => 1 }, "value.call is a function"],
    ["a gap in an array", [undefined], "value[0] is undefined"],
  ])("refuses %s, and names its place, instead of storing something else", async (_, value, why) => {
    const run = await runHandler(async (_, ctx) => ctx.state.set("k", value), { object }, { state: { k: 1 } });
    expect(run.error).toBeInstanceOf(InvalidError);
    expect((run.error as Error).message).toContain(`WF_STATE_VALUE: state.set "k": ${why}`);
    expect(run.state).toEqual({ k: 1 });
  });

  it("refuses a value that contains itself, and takes one that occurs twice", async () => {
    const shared = { a: 1 };
    const endless: Record<string, unknown> = {};
    endless.again = { endless };
    const twice = await runHandler(async (_, ctx) => ctx.state.set("k", [shared, shared]), { object });
    expect(twice.state).toEqual({ k: [{ a: 1 }, { a: 1 }] });
    const run = await runHandler(async (_, ctx) => ctx.state.set("k", endless), { object });
    expect((run.error as Error).message).toContain("value.again.endless contains itself");
  });

  it("takes an object with a member that is undefined, which JSON leaves out", async () => {
    const run = await runHandler(async (_, ctx) => ctx.state.set("k", { a: undefined, b: null }), { object });
    expect(run.outcome).toBe("ok");
  });

  it("is compared whole with what a fixture expects, whatever the order of fields", async () => {
    const fixture = { event: { type: "Modified", object }, state: { "old-1": 1, kept: 2 } };
    const after = { kept: 2, test: { of: "x", at: 1 } };
    expect(await runFixture(once as never, { ...fixture, expect: { state: after, calls: [] } })).toEqual([]);
    expect(await runFixture(once as never, { ...fixture, expect: { state: { kept: 3 } } })).toEqual([
      { what: "state.kept", expected: "3", actual: "2" },
      { what: "state.test", expected: "nothing", actual: '{"at":1,"of":"x"}' },
    ]);
  });

  it("has its calls compared if a fixture names one of them", async () => {
    const calls = ["get", "set", "keys", "delete"].map((name) => ({ call: `state.${name}` }));
    const fixture = { event: { type: "Modified", object }, state: { "old-1": 1 } };
    expect(await runFixture(once as never, { ...fixture, expect: { calls } })).toEqual([]);
    expect(await runFixture(once as never, { ...fixture, expect: { calls: calls.slice(1) } })).toHaveLength(1);
  });
});
