import { describe, expect, it } from "vitest";
import type { DryRunWrite } from "../../runtime/access/dry-run.ts";
import { OwnState } from "../../runtime/engine/own-state/own-state.ts";
import type { Caller, HostReply } from "../../runtime/sandbox/host-calls.ts";
import { type AccessSetup, accessTo, caller, errorOf } from "./api-server.ts";

/** Access, and two attempts of one function that overlap. */
async function setUp(setup: AccessSetup = {}) {
  const { access, attempt } = await accessTo(setup);
  const state = new OwnState("f", new Map([["a", "1"]]));
  const attempts: Caller[] = [0, 1].map(() => ({ ...caller, state }));
  const call = (index: number, operation: string, args: object | string): Promise<HostReply> =>
    access.call(
      attempts[index] as Caller,
      operation,
      typeof args === "string" ? args : JSON.stringify(args),
      attempt.signal,
    );
  return { state, attempts, call, attempt };
}

const json = (value: unknown): HostReply => ({ ok: true, json: JSON.stringify(value) });

describe("calls of ctx.state", () => {
  it("read entries and the attempt's own writes, and tell an absent entry from null", async () => {
    const { call } = await setUp();
    expect(await call(0, "state.get", { key: "a" })).toEqual(json({ value: 1 }));
    expect(await call(0, "state.set", { key: "b", value: null })).toEqual(json(null));
    expect(await call(0, "state.get", { key: "b" })).toEqual(json({ value: null }));
    expect(await call(0, "state.delete", { key: "a" })).toEqual(json(null));
    expect(await call(0, "state.get", { key: "a" })).toEqual(json({}));
    expect(await call(0, "state.keys", {})).toEqual(json(["b"]));
    expect(await call(1, "state.keys", {})).toEqual(json(["a"]));
    expect(await call(1, "state.keys", { prefix: "b" })).toEqual(json([]));
  });

  it("keep whole numbers beyond 2^53 as they are", async () => {
    const { call, attempts, state } = await setUp();
    await call(0, "state.set", '{"key":"n","value":[9007199254740993]}');
    expect(await call(0, "state.get", { key: "n" })).toEqual({ ok: true, json: '{"value":[9007199254740993]}' });
    attempts[0]?.staged?.end(true);
    expect(new Map(state).get("n")).toBe("[9007199254740993]");
  });

  it("are refused with the code, the size and what to do if they exceed the manifest's limit", async () => {
    const { call } = await setUp({ manifest: { stateBytes: 1_024 } });
    const error = errorOf(await call(0, "state.set", { key: "b", value: "x".repeat(2_000) }));
    expect(error).toMatchObject({ type: "InvalidError", status: 400 });
    expect(error.message).toMatch(/^WF_STATE_FULL: set "b" would make the state of f 2069 bytes, and 1024 are allowed/);
    expect(error.message).toContain("raise `resources.state`");
    expect(await call(0, "state.get", { key: "b" })).toEqual(json({}));
  });

  it.each([
    ["state.get", { key: "" }, "key"],
    ["state.set", { key: "x".repeat(513), value: 1 }, "key"],
    ["state.set", { key: "a" }, "ctx.state.delete removes an entry"],
    ["state.get", { key: "a", more: 1 }, "more"],
  ])("refuse %s %j", async (operation, args, said) => {
    const { call } = await setUp();
    expect(errorOf(await call(0, operation, args)).message).toContain(said);
  });

  it("in a dry run are shown, and change nothing", async () => {
    const unsent: DryRunWrite[] = [];
    const { call, attempts, state } = await setUp({ unsent: (each) => unsent.push(each) });
    await call(0, "state.set", { key: "b", value: 2 });
    await call(0, "state.delete", { key: "a" });
    attempts[0]?.staged?.end(true);
    expect(unsent).toEqual([
      { function: "f", method: "SET", to: "ctx.state b", body: "2" },
      { function: "f", method: "DELETE", to: "ctx.state a" },
    ]);
    expect([...state]).toEqual([["a", "1"]]);
  });

  it("of an attempt that has ended write nothing, so that they cannot follow its commit", async () => {
    const { call, attempts, attempt } = await setUp();
    const late = call(0, "state.set", { key: "b", value: 2 });
    attempt.abort();
    expect(errorOf(await late).type).toBe("TimeoutError");
    expect(attempts[0]?.staged).toBeUndefined();
  });
});
