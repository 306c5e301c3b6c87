import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { MarkEntry } from "../../runtime/engine/state/low-water-mark.ts";
import { holdOf, type LaneEvent } from "../../runtime/engine/work/event.ts";

/** V8's own garbage collection, which vitest's processes do not expose. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

test("a row that rests keeps nothing of the event that it holds the mark for, and settles it all the same", async () => {
  const settled: MarkEntry[] = [];
  const entry: MarkEntry = { resourceVersion: undefined, outstanding: 1, firm: false };
  const mark = { owner: { settle: (each: MarkEntry) => settled.push(each), isBacklog: () => false }, entry };
  const rest = () => {
    const event = { mark, body: Buffer.alloc(100_000) } as unknown as LaneEvent;
    return { hold: holdOf(event), event: new WeakRef(event) };
  };
  const { hold, event } = rest();
  await nextTurn();
  collector()();
  expect(event.deref()).toBeUndefined();
  hold?.ended();
  expect(settled).toEqual([entry]);
});
