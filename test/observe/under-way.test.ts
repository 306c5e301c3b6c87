import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { UnderWay } from "../../runtime/observe/under-way.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";

const away = new WatchfireError("WF_CHECKPOINT_NATS_AWAY", { what: "the commit was not acknowledged" });

test("what cannot be saved is answered as taken and not done yet, with why, before the endpoints let go; and it goes on", async () => {
  const clock = new VirtualClock();
  const underWay = new UnderWay(clock, () => away);
  const work = Promise.withResolvers<void>();
  let done = false;
  const answer = underWay.answer("the drop", async () => {
    await work.promise;
    done = true;
  });
  answer.catch(() => undefined);
  await clock.advance(14_000);
  await expect(answer).rejects.toMatchObject({
    code: "WF_RUNTIME_PENDING",
    message: expect.stringMatching(
      /^WF_RUNTIME_PENDING: the drop is accepted .* WF_CHECKPOINT_NATS_AWAY: the commit was/,
    ),
  });
  work.resolve();
  await settle();
  expect(done).toBe(true);
});

test("what is done or refused in time is answered as that, also while nothing can be saved", async () => {
  const clock = new VirtualClock();
  const underWay = new UnderWay(clock, () => away);
  expect(await underWay.answer("the drop", async () => 7)).toBe(7);
  await expect(underWay.answer("the drop", () => Promise.reject(new Error("no letter")))).rejects.toThrow("no letter");
  expect(clock.timers).toBe(0);
});

test("of requests that go on behind their answers there are a hundred: one more is refused before it begins", async () => {
  const clock = new VirtualClock();
  const underWay = new UnderWay(clock, () => away);
  const work = Promise.withResolvers<void>();
  const answers = Array.from({ length: 100 }, () => underWay.answer("the drop", () => work.promise));
  let begun = false;
  const more = async () => {
    begun = true;
  };
  await expect(underWay.answer("the drop", more)).rejects.toMatchObject({ code: "WF_RUNTIME_BUSY" });
  expect(begun).toBe(false);
  work.resolve();
  await Promise.all(answers);
  await underWay.answer("the drop", more);
  expect(begun).toBe(true);
});

test("what is refused before it begins leaves its place to others, however often it is asked", async () => {
  const underWay = new UnderWay(new VirtualClock(), () => undefined);
  const standby = () => {
    throw new WatchfireError("WF_LEASE_STANDBY", { what: "the dead letters are with another" });
  };
  for (let asked = 0; asked <= 100; asked++)
    await expect(underWay.answer("the drop", standby)).rejects.toMatchObject({ code: "WF_LEASE_STANDBY" });
  expect(await underWay.answer("the drop", async () => 7)).toBe(7);
});
