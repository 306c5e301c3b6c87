import { describe, expect, it } from "vitest";
import { change, failure, quiet } from "../fixture.ts";
import { byLabel, open, owned, reconciler } from "./fixture.ts";

describe("a key", () => {
  it("is not woken by an object without such an owner, which is filtered with that reason", async () => {
    const fixture = await open();
    fixture.pods.change(change("Added", "web", 11));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries).toEqual([]);
    expect(Object.fromEntries(fixture.outcomes)).toEqual({ filtered: 1 });
    const { filtered } = await fixture.function.object("pods", { namespace: "team-a", name: "web" });
    expect(filtered.map(({ why }) => why.type)).toEqual(["key"]);
  });

  it("is shown to a person who asks whom a change would wake: where the object is, where it leaves, or why nowhere", async () => {
    const fixture = await open({ manifest: reconciler({}, byLabel) });
    fixture.pods.change(change("Added", "pod", 12, { spec: { of: "a" } }));
    await fixture.clock.advance(1_000);
    const wakes = async (of: unknown, trigger = "pods") => {
      const seen = change("Modified", "pod", 13, { spec: { of } });
      return (await fixture.function.object(trigger, { namespace: "team-a", name: "pod" }, seen)).wakes;
    };
    expect(await wakes("a")).toEqual({ now: { keys: ["team-a/a"] }, left: [] });
    expect(await wakes(["b", "team-b/c"])).toEqual({ now: { keys: ["team-a/b", "team-b/c"] }, left: ["team-a/a"] });
    expect(await wakes([])).toMatchObject({ now: { heldBack: { type: "key" } }, left: ["team-a/a"] });
    expect(await wakes(7)).toMatchObject({ now: { heldBack: { type: "keyError" } } });
    expect(await wakes("a", "settings")).toEqual({ now: { keys: ["team-a/pod"] }, left: [] });
    expect((await fixture.function.object("pods", { namespace: "team-a", name: "pod" })).wakes).toBeUndefined();
  });

  it("has runs that are told of each object that wakes it, to a person who asks", async () => {
    const fixture = await open({ manifest: reconciler({ onFailure: "Block" }) });
    fixture.runner.answer = () => failure("not yet");
    fixture.subscription.change(change("Added", "shop", 11));
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    for (const [trigger, name] of [
      ["settings", "shop"],
      ["pods", "web"],
    ] as const) {
      const { runs: past, lane } = await fixture.function.object(trigger, { namespace: "team-a", name });
      expect(past[0]).toMatchObject({ key: "team-a/shop", outcome: "failed", error: "Error: not yet" });
      expect(lane).toMatchObject({ retrying: true, requeued: false, running: false });
    }
    const other = await fixture.function.object("pods", { namespace: "team-a", name: "other" });
    expect([other.runs, other.lane]).toEqual([[], undefined]);
  });
});
