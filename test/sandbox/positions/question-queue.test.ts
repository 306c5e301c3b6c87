import { expect, it } from "vitest";
import { QuestionQueue } from "../../../runtime/sandbox/positions/question-queue.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const any = () => true;

function queueForTest() {
  const clock = new VirtualClock();
  return { clock, queue: new QuestionQueue<string>(clock) };
}

it("a function that has not used the thread is served before those that have, in each one's own order", () => {
  const { queue } = queueForTest();
  queue.charge("greedy", 500);
  queue.charge("busy", 100);
  for (const item of ["greedy 1", "busy 1", "busy 2", "calm 1"]) queue.add(item.split(" ")[0] ?? "", item, 1);
  const taken = Array.from({ length: 5 }, () => queue.take(any));
  expect(taken).toEqual(["calm 1", "busy 1", "busy 2", "greedy 1", undefined]);
});

it("what a function has used counts half after ten seconds", async () => {
  const { clock, queue } = queueForTest();
  queue.charge("early", 300);
  await clock.advance(20_000);
  queue.charge("late", 100);
  queue.add("late", "late", 1);
  queue.add("early", "early", 1);
  expect(queue.take(any)).toBe("early");
});

it("questions that do not fit now are passed over", () => {
  const { queue } = queueForTest();
  queue.add("a", "large", 1);
  queue.add("b", "small", 1);
  expect(queue.take((item) => item === "small")).toBe("small");
  expect(queue.take((item) => item === "small")).toBeUndefined();
  expect(queue.take(any)).toBe("large");
});

it("questions beyond 4 Mi characters go from the function that has most of them, and from no other", () => {
  const { queue } = queueForTest();
  queue.add("calm", "calm", 1000);
  const dropped = Array.from({ length: 40 }, (_, index) => queue.add("greedy", `greedy ${index}`, 2 ** 17)).flat();
  expect(dropped).toEqual(Array.from({ length: 9 }, (_, index) => `greedy ${index}`));
  expect(queue.add("calm", "calm 2", 2 ** 17)).toEqual(["greedy 9"]);
});

it("a function asks twenty times at once, and ten times each second after that", async () => {
  const { clock, queue } = queueForTest();
  const asked = () => Array.from({ length: 100 }, () => queue.mayAsk("f")).filter(Boolean).length;
  expect(asked()).toBe(20);
  await clock.advance(1000);
  expect(asked()).toBe(10);
});

it("a removed question is taken by nobody", () => {
  const { queue } = queueForTest();
  queue.add("f", "one", 1);
  queue.add("f", "two", 1);
  queue.remove("f", "one");
  expect([queue.take(any), queue.take(any), queue.size]).toEqual(["two", undefined, 0]);
});
