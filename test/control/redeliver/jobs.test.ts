import { expect, test } from "vitest";
import { Jobs } from "../../../runtime/control/redeliver/jobs.ts";
import { settle, VirtualClock } from "../../virtual-clock.ts";

test("whoever asks for what takes long is told how far it is in less than the endpoints' patience, and asks on", async () => {
  const clock = new VirtualClock();
  const jobs = new Jobs(clock);
  const work = Promise.withResolvers<void>();
  const first = jobs.begin("greet", async (tally) => {
    tally.set("queued", 3);
    await work.promise;
    tally.set("queued", 5).set("waits", 1);
  });
  await clock.advance(14_000);
  expect(await first).toEqual({ queued: 3, skipped: [], job: "1" });
  await expect(jobs.ask("other", "1")).rejects.toThrow("WF_RUNTIME_NOT_REDELIVERED");
  const second = jobs.ask("greet", "1");
  work.resolve();
  await settle();
  expect(await second).toEqual({ queued: 5, skipped: [{ why: "waits", count: 1 }] });
});

test("why it failed is told to whoever asks", async () => {
  const jobs = new Jobs(new VirtualClock());
  await expect(jobs.begin("greet", () => Promise.reject(new Error("no list")))).rejects.toThrow("no list");
});
