import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ClusterError } from "../../runtime/cluster/cluster-error.ts";
import { WorkQueue } from "../../runtime/cluster/controllers/queue.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("a key whose write the disk refused is worked on again a second later, and holds no other up", async () => {
  const clock = new VirtualClock();
  const worked: string[] = [];
  let isFull = true;
  const queue = new WorkQueue((key) => {
    worked.push(key);
    if (isFull && key === "a") throw new ClusterError("FILE_REFUSED", { what: "the disk is full" });
  }, clock);
  queue.add("a");
  queue.add("b");
  await nextTurn();
  await nextTurn();
  expect(worked).toEqual(["a", "b"]);
  await clock.advance(1_000);
  expect(worked).toEqual(["a", "b", "a"]);
  isFull = false;
  await clock.advance(10_000);
  expect(worked).toEqual(["a", "b", "a", "a"]);
});
