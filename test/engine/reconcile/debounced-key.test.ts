import { describe, expect, it } from "vitest";
import { change, type DispatchFixture, quiet } from "../fixture.ts";
import { open, owned, reconciler, runs, withPods } from "./fixture.ts";

describe("a debounced key", () => {
  const debounced = { manifest: reconciler({ debounceMs: 2_000 }) };
  const pass = async ({ clock, runner }: DispatchFixture, ms: number) => {
    await quiet(runner);
    await clock.advance(ms);
    await quiet(runner);
  };

  it("runs once when neither its object nor its children changed for the quiet time, for all of them", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    await pass(fixture, 1_000);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await pass(fixture, 1_999);
    expect(runs(fixture)).toEqual([]);
    await pass(fixture, 1);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop, Added pods web"]);
  });

  it("whose objects change on and on runs after ten times that", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    for (let rv = 12; rv < 32; rv++) {
      await pass(fixture, 1_000 - (rv === 31 ? 1 : 0));
      fixture.subscription.change(change("Modified", "shop", rv));
    }
    expect(runs(fixture)).toEqual([]);
    await pass(fixture, 1);
    expect(fixture.runner.deliveries).toHaveLength(1);
  });

  it("is not lost by a kill amid its quiet time", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    await pass(fixture, 1_000);
    const again = await withPods(await fixture.restart(debounced), false);
    again.subscription.change(change("Modified", "shop", 12));
    await pass(again, 10_000);
    expect(again.runner.deliveries.length).toBeGreaterThan(0);
  });
});
