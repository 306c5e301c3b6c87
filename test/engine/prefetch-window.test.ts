import { describe, expect, it } from "vitest";
import type { Delivery, DeliveryListener } from "../../runtime/engine/delivery/delivery.ts";
import { change, DispatchFixture, done, manifest, quiet } from "./fixture.ts";

/** Counts the deliveries that the runner has received and not started. */
function given(it: DispatchFixture): () => number {
  const give = it.runner.give.bind(it.runner);
  let count = 0;
  it.runner.give = (delivery: Delivery, listener: DeliveryListener) => {
    count++;
    give(delivery, listener);
  };
  return () => count - it.runner.deliveries.length;
}

/** A function with that concurrency whose handlers end at once, after a thousand events. */
async function quick(concurrency: number) {
  const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency }) })).listed();
  for (let rv = 11; rv < 1_011; rv++) it.subscription.change(change("Added", `n${rv}`, rv));
  await quiet(it.runner);
  expect(it.runner.deliveries).toHaveLength(1_000);
  const waiting = given(it);
  it.runner.deliveries.length = 0;
  const burst = async (from = 2_000, count = 500) => {
    for (let rv = from; rv < from + count; rv++) it.subscription.change(change("Added", `n${rv}`, rv));
    await quiet(it.runner);
  };
  return { it, waiting, burst };
}

describe("what is sent ahead", () => {
  it("of a quick function is 256 events beyond those that run, on record in one commit", async () => {
    const { it, waiting, burst } = await quick(4);
    it.runner.answer = () => undefined;
    await burst();
    expect([it.runner.deliveries.length, waiting()]).toEqual([4, 256]);
    expect(it.function.status()).toMatchObject({ inFlight: 4, queued: 496 });
    expect([...it.disk.begun.values()].map(({ started }) => started.length)).toEqual([260]);
  });

  it("of a function whose events take long is nothing", async () => {
    const { it, waiting, burst } = await quick(4);
    it.runner.answer = () => new Promise((resolve) => it.clock.after(300, () => resolve(done)));
    await burst();
    for (let ended = 0; ended < 80; ended++) await it.clock.advance(300);
    expect(waiting()).toBe(0);
    expect(it.runner.deliveries.length).toBeGreaterThan(150);
  });

  it("is one event of a lane, however many of it wait", async () => {
    const { it, waiting } = await quick(4);
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 2_000));
    for (let rv = 2_001; rv < 2_050; rv++) it.subscription.change(change("Modified", "a", rv));
    await quiet(it.runner);
    expect([it.runner.deliveries.length, waiting()]).toEqual([1, 0]);
  });

  it("comes back unflagged and uncounted when the function is replaced, and runs on new code", async () => {
    const { it, waiting, burst } = await quick(1);
    it.runner.answer = () => undefined;
    await burst(2_000, 20);
    expect(waiting()).toBe(19);
    const swap = it.function.replace(manifest({ concurrency: 1 }), false, async () => {});
    await it.clock.advance(1_000);
    const recorded = [...it.disk.begun.values()].flatMap(({ started }) => started.map(({ key }) => key));
    expect(recorded).toEqual(["team-a/n2000"]);
    it.runner.answer = () => done;
    await it.runner.end("n2000");
    await swap;
    await quiet(it.runner);
    expect(it.runner.told).toEqual(
      Array.from({ length: 20 }, (_, index) => `Added n${2_000 + index}@${2_000 + index}`),
    );
    await it.clock.advance(1_000);
    expect(it.disk.begun.size).toBe(0);
  });

  it("comes flagged after a kill, with one attempt counted, and is not sent ahead again", async () => {
    const { it, burst } = await quick(4);
    it.runner.answer = () => undefined;
    await burst(2_000, 50);
    const next = await it.restart({ manifest: manifest({ concurrency: 4 }) });
    const waiting = given(next);
    next.runner.deliveries.length = 0;
    for (let rv = 2_000; rv < 2_050; rv++) next.subscription.change(change("Added", `n${rv}`, rv));
    await quiet(next.runner);
    expect(next.runner.told).toEqual([0, 1, 2, 3].map((n) => `Added n${2_000 + n}@${2_000 + n} #2 !`));
    expect(waiting() + next.runner.deliveries.length).toBe(4);
  });
});
