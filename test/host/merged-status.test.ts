import fc from "fast-check";
import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import type { FunctionStatus } from "../../runtime/engine/function-dispatch.ts";
import { mergedStatus, withStill } from "../../runtime/host/merged-status.ts";
import { describeRefused } from "../../runtime/host/status.ts";
import { counts } from "./counts.ts";

/** A shard that has dropped events for one reason, with their number and the time of the last. */
const shard = (count: number, last: number): FunctionStatus => ({
  ...counts,
  function: "hot",
  parentSeconds: new Map([["conditions", count]]),
  filtered: [{ trigger: "settings", why: "changedFields", count, last }],
});

test("what shards held back for one reason is one count, with the time of the newest", () => {
  const some = fc.record({ count: fc.integer({ min: 1, max: 200 }), last: fc.integer({ min: 0, max: 2e12 }) });
  fc.assert(
    fc.property(fc.array(some, { minLength: 1, maxLength: 5 }), (shards) => {
      const [merged] = mergedStatus(shards.map(({ count, last }) => shard(count, last)));
      const count = shards.reduce((sum, each) => sum + each.count, 0);
      const last = Math.max(...shards.map((each) => each.last));
      expect(merged?.filtered).toEqual([{ trigger: "settings", why: "changedFields", count, last }]);
      expect(merged?.parentSeconds).toEqual(new Map([["conditions", count]]));
    }),
  );
});

test("a function of which one shard stands still is not ready and says why, with the counts of its other shards", () => {
  const fault = new WatchfireError("WF_CHECKPOINT_CORRUPT", { what: "its snapshot is gone" });
  const works = (name: string) => {
    const { reason: _, message: __, code: ___, ...report } = describeRefused({ name, file: "", faults: [fault] });
    return { ...report, ready: true, queued: 3 };
  };
  const still = { ready: false, reason: "CheckpointFailing", code: fault.code, message: fault.message };
  const told = withStill(
    [works("hot"), works("copy")],
    new Map([
      ["hot", fault],
      ["audit", fault],
    ]),
  );
  expect(told).toMatchObject([
    { name: "hot", queued: 3, ...still },
    { name: "copy", queued: 3, ready: true },
    { name: "audit", ...still },
  ]);
  // A store that cannot be read has no counts.
  expect(told[2]).not.toHaveProperty("queued");
  expect(told[1]?.code).toBeUndefined();
});
