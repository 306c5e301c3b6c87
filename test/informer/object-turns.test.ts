import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Clock } from "../../runtime/base/clock.ts";
import { ObjectTurns } from "../../runtime/informer/scan/object-turns.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** A clock that advances by 1 ms with each piece of work. */
function working() {
  let done = 0;
  const clock: Clock = Object.assign(new VirtualClock(), { monotonic: () => done });
  function* work(pieces: number): Generator<void> {
    for (let piece = 1; piece <= pieces; piece++) {
      done++;
      if (piece < pieces) yield;
    }
  }
  return { clock, work, done: () => done };
}

test("the long work of many takes no more of a turn of the event loop than that of one, and all get on", async () => {
  const { clock, work, done } = working();
  const all = Array.from({ length: 20 }, () => new ObjectTurns(clock));
  for (const each of all) each.run(work(30));
  const perTurn: number[] = [];
  for (let before = 0; all.some(({ busy }) => busy); before = done()) {
    perTurn.push(done() - before);
    await nextTurn();
  }
  expect(done()).toBe(20 * 30);
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(10);
});

test("work that finds time is done at once, and what comes behind unfinished work waits for it", async () => {
  await nextTurn();
  const { clock, work } = working();
  const order: string[] = [];
  const turns = new ObjectTurns(clock);
  turns.run(work(5));
  turns.queue(() => order.push("first"));
  expect([turns.busy, order]).toEqual([undefined, ["first"]]);
  turns.run(work(30));
  turns.queue(() => order.push("second"));
  expect(order).toEqual(["first"]);
  await turns.busy;
  expect(order).toEqual(["first", "second"]);
});

test("cancelled work is not done, and holds up nobody", async () => {
  await nextTurn();
  const { clock, work, done } = working();
  const [cancelled, other] = [new ObjectTurns(clock), new ObjectTurns(clock)];
  cancelled.run(work(50));
  other.run(work(50));
  cancelled.cancel();
  const before = done();
  await other.busy;
  expect([cancelled.busy, done() - before]).toEqual([undefined, 50]);
});
