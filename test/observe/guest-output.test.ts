import { expect, test } from "vitest";
import { LoopTime } from "../../runtime/engine/account/loop-time.ts";
import { accounted } from "../../runtime/observe/guest-output.ts";
import { caller } from "../access/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("what a handler's lines and figures take of the parent's time is on its function's account, also where they cannot be written", () => {
  let now = 0;
  const clock = new VirtualClock();
  clock.monotonic = () => now;
  const time = new LoopTime(clock);
  const account = time.account("f");
  const output = accounted(
    {
      log: () => {
        now += 3;
        throw new Error("no room");
      },
      metric: () => {
        now += 4;
      },
    },
    time,
  );
  expect(() => output.log(caller, "info", "m", {})).toThrow("no room");
  output.metric(caller, "increment", "m", 1, {});
  output.metric({ ...caller, function: "gone" }, "increment", "m", 1, {});
  expect(account.spent).toEqual(new Map([["logs", expect.closeTo(0.007)]]));
});

test("a line is on the account before it is cleaned, by its length, and where it is refused by less", () => {
  const time = new LoopTime(new VirtualClock());
  const account = time.account("f");
  const ignore = { log: () => {}, metric: () => {} };
  const [open, shut] = [accounted(ignore, time), accounted({ ...ignore, admits: () => false }, time)];
  expect(open.admits?.(caller, "log", 20_000)).toBe(true);
  const read = account.spent.get("logs") ?? 0;
  expect(read).toBeGreaterThan(0.000_1);
  expect(shut.admits?.(caller, "log", 20_000)).toBe(false);
  const refused = (account.spent.get("logs") ?? 0) - read;
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThan(read);
});

test("an error of a handler is on the account by its length", () => {
  const time = new LoopTime(new VirtualClock());
  const account = time.account("f");
  accounted({ log: () => {}, metric: () => {} }, time).admits?.(caller, "error", 8_000);
  expect(account.spent).toEqual(new Map([["errors", expect.closeTo(0.000_16)]]));
});
