import { expect, test } from "vitest";
import { LoopTime } from "../../runtime/engine/account/loop-time.ts";
import { concernOf } from "../../runtime/engine/intake/passing.ts";
import type { KnownObjects } from "../../runtime/engine/state/known-objects.ts";
import type { Shard } from "../../runtime/engine/state/sharding.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, trigger } from "./fixture.ts";

const shard: Shard = { number: 0, sharding: "2 by name", isFirst: true, owns: () => false, mayOwnIn: () => true };

test("what a shard's `key` takes to tell whose a change is goes on the function's account", () => {
  let now = 0;
  const clock = new VirtualClock();
  // Each reading of the clock is a millisecond after the previous one.
  clock.monotonic = () => now++;
  const time = new LoopTime(clock).account("f");
  const key = { type: "expression", expression: "object.metadata.name" } as const;
  const view = { trigger: { ...trigger(), key }, stateAfterQueue: () => undefined, alive: () => undefined };
  expect(concernOf(view as unknown as KnownObjects, shard, time)(change("Added", "a", 11))).toBe(false);
  expect(time.spent.get("keys")).toBeGreaterThan(0);
});

test("a change whose `key` is for all objects concerns each shard", () => {
  const time = new LoopTime(new VirtualClock()).account("f");
  const view = { trigger: { ...trigger(), key: { type: "all" } } };
  expect(concernOf(view as unknown as KnownObjects, shard, time)(change("Added", "a", 11))).toBe(true);
});
