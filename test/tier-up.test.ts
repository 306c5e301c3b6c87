import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { paceTierUp, TierUp } from "../runtime/tier-up.ts";

const run = promisify(execFile);
const patient = "--invocation-count-for-turbofan=30000";
const busy = "--invocation-count-for-turbofan=3000";

test("V8 is told of a busy process once, and once that it has time to spare again", () => {
  const flags: string[] = [];
  const tierUp = new TierUp((each) => flags.push(each));
  for (const isBusy of [false, true, true, false, false]) tierUp.look(isBusy);
  expect(flags).toEqual([patient, busy, patient]);
});

test("a loop that is busy for two fifths of its time compiles at once, and an idle one waits", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const looks: boolean[] = [];
    const utilization = vi.spyOn(performance, "eventLoopUtilization");
    const of = (share: number) => ({ idle: 1 - share, active: share, utilization: share });
    utilization.mockReturnValue(of(0.39));
    paceTierUp({ look: (isBusy: boolean) => looks.push(isBusy) } as unknown as TierUp);
    vi.advanceTimersByTime(200);
    utilization.mockReturnValue(of(0.4));
    vi.advanceTimersByTime(200);
    utilization.mockRestore();
    expect(looks).toEqual([false, true]);
  } finally {
    vi.useRealTimers();
  }
});

test("V8 takes a function of 10,000 calls in a busy process, and leaves it alone in one with time to spare", async () => {
  const program = join(import.meta.dirname, "tier-up.program.ts");
  const { stdout } = await run(process.execPath, ["--single-threaded", "--trace-opt", program]);
  const [before = "", after = ""] = stdout.split("busy\n");
  const taken = /completed compiling .*JSFunction hot .*TURBOFAN/;
  expect(before).toMatch(/completed compiling .*JSFunction hot .*MAGLEV/);
  expect(before).not.toMatch(taken);
  expect(after).toMatch(taken);
});
