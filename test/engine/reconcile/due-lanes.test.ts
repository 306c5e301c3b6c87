import { expect, test } from "vitest";
import { type Due, DueLanes } from "../../../runtime/engine/work/due-lanes.ts";
import { Dice } from "../../laws/random.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const item = (name: string) => ({ name, dueAt: 0, place: -1 });

function opened() {
  const clock = new VirtualClock();
  const came: string[] = [];
  const due = new DueLanes<Due & { name: string }>(clock, (items) => {
    for (const { name } of items) came.push(`${name}@${clock.monotonic()}`);
  });
  return { clock, due, came };
}

test("each item comes at its time, once, whatever is added and removed meanwhile", async () => {
  const dice = new Dice(7);
  const { clock, due, came } = opened();
  const expected: string[] = [];
  const all = Array.from({ length: 500 }, (_, number) => item(`${number}`));
  const delays = new Map(all.map((each, number) => [each, 1 + ((number * 7919) % 1_000)]));
  for (const [each, delay] of delays) due.add(each, delay);
  for (const [each, delay] of delays) {
    if (dice.chance(0.5)) due.remove(each);
    else expected.push(`${each.name}@${delay}`);
  }
  await clock.advance(1_000);
  expect(came.toSorted()).toEqual(expected.toSorted());
  const times = came.map((each) => Number(each.split("@")[1]));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

test("an item that was removed may wait again", async () => {
  const { clock, due, came } = opened();
  const one = item("one");
  due.add(one, 10);
  due.remove(one);
  due.remove(one);
  due.add(one, 20);
  await clock.advance(30);
  expect(came).toEqual(["one@20"]);
});

test("one timer waits for all items, and none once it has stopped", () => {
  const { clock, due } = opened();
  for (let number = 0; number < 100; number++) due.add(item(`${number}`), 1_000 - number);
  expect(clock.timers).toBe(1);
  due.stop();
  expect(clock.timers).toBe(0);
});

test("an item that is due in two months comes then", async () => {
  const { clock, due, came } = opened();
  const days = 24 * 60 * 60 * 1_000;
  due.add(item("far"), 60 * days);
  await clock.advance(60 * days - 1_000);
  expect(came).toEqual([]);
  await clock.advance(1_000);
  expect(came).toEqual([`far@${60 * days}`]);
});

test("of items that are due at once no more than 512 come in a turn", async () => {
  const turns: number[] = [];
  const clock = new VirtualClock();
  const due = new DueLanes(clock, (items) => turns.push(items.length));
  for (let number = 0; number < 1_200; number++) due.add(item(`${number}`), 10);
  await clock.advance(10);
  expect(turns).toEqual([512, 512, 176]);
});
