import { expect, test } from "vitest";
import { Jobs } from "../../../runtime/control/redeliver/jobs.ts";
import { settle, VirtualClock } from "../../virtual-clock.ts";

test("whoever asks for what takes long is told how far it is in less than the endpoints' patience, and asks on", async () => {
  const clock = new VirtualClock();
  const errands = new Jobs(clock);
  const work = Promise.withResolvers<void>();
  const first = errands.begin("greet", async (tally) => {
    tally.set("told", 3);
    await work.promise;
    tally.set("told", 5).set("waits", 1);
  });
  await clock.advance(14_000);
  expect(await first).toEqual({ told: 3, left: [], errand: "1" });
  await expect(errands.ask("other", "1")).rejects.toThrow("WF_RUNTIME_NOT_REDELIVERED");
  const second = errands.ask("greet", "1");
  work.resolve();
  await settle();
  expect(await second).toEqual({ told: 5, left: [{ why: "waits", count: 1 }] });
});

test("why it failed is told to whoever asks", async () => {
  const errands = new Jobs(new VirtualClock());
  await expect(errands.begin("greet", () => Promise.reject(new Error("no list")))).rejects.toThrow("no list");
});
