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
