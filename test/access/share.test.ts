import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { LoopTime } from "../../runtime/engine/account/loop-time.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { accessTo, caller, everything, manifestOf } from "./api-server.ts";

const get = { ref: { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", name: "settings" } };

async function setUp() {
  const clock = new VirtualClock();
  const time = new LoopTime(clock);
  const accounts = { f: time.account("f"), g: time.account("g") };
  const to = await accessTo({ time, manifest: { permissions: [everything] } });
  to.functions.set("g", manifestOf({ permissions: [everything] }));
  const call = (name: string) =>
    to.access.call({ ...caller, function: name }, "kube.get", JSON.stringify(get), to.attempt.signal);
  return { ...to, clock, accounts, call };
}

test("the parent's part of a call is on its function's account, by the size of what is asked and answered", async () => {
  const { accounts, call } = await setUp();
  expect((await call("f")).ok).toBe(true);
  expect(accounts.f.spent.get("calls")).toBeGreaterThan(0);
  expect(accounts.g.spent.get("calls")).toBeUndefined();
});

test("the reading of a call that is refused for its arguments is on its function's account", async () => {
  const time = new LoopTime(systemClock);
  const account = time.account("f");
  const { access, attempt } = await accessTo({ time });
  const args = JSON.stringify({ ref: {}, type: "json", patch: new Array(5_000).fill(0) });
  expect((await access.call({ ...caller, function: "f" }, "kube.patch", args, attempt.signal)).ok).toBe(false);
  expect(account.spent.get("calls")).toBeGreaterThan(0);
});

test("calls of a function that is over its share wait for its turn, and nobody else's do", async () => {
  const { clock, accounts, call } = await setUp();
  expect((await call("f")).ok).toBe(true);
  accounts.f.charge("logs", 25);
  await clock.advance(100);
  accounts.f.charge("logs", 25);
  let isDone = false;
  const waits = call("f").then(() => {
    isDone = true;
  });
  expect((await call("g")).ok).toBe(true);
  expect([isDone, accounts.f.isOverShare]).toEqual([false, true]);
  for (let ms = 0; ms < 40; ms++) await clock.advance(1);
  await waits;
});

test("a call that waits for its function's turn is not made once its attempt is over", async () => {
  const { clock, accounts, attempt, call, received } = await setUp();
  await call("f");
  const before = received.length;
  accounts.f.charge("logs", 60);
  const reply = call("f");
  await new Promise(setImmediate);
  attempt.abort();
  for (let ms = 0; ms < 40; ms++) await clock.advance(1);
  expect(await reply).toMatchObject({ ok: false, error: { type: "TimeoutError" } });
  expect(received.length).toBe(before);
});

test("a call that is refused is on its function's account, and is answered in its turns once the function is over its share", async () => {
  const { clock, accounts, access, attempt } = await setUp();
  const refused = (name: string) => access.call({ ...caller, function: name }, "no.such", "{}", attempt.signal);
  expect((await refused("f")).ok).toBe(false);
  expect(accounts.f.spent.get("calls")).toBeGreaterThan(0);
  let count = 0;
  let isOver = false;
  const loop = async () => {
    while (!isOver) {
      await refused("f");
      count++;
    }
  };
  const loops = Array.from({ length: 64 }, loop);
  await clock.advance(100);
  count = 0;
  await clock.advance(1_000);
  // At most as many as their charged time allows; the remaining time of a slice belongs to the others.
  expect(count).toBeLessThan(0.9 * (1_000 / 0.1));
  expect(count).toBeGreaterThan(100);
  expect((await refused("g")).ok).toBe(false);
  isOver = true;
  await clock.advance(100);
  await Promise.all(loops);
});
