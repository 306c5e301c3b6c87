import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { CompilerPacing, paceTierUp } from "../../runtime/v8/compiler-pacing.ts";

const run = promisify(execFile);
const patient = "--invocation-count-for-turbofan=30000";
const busy = "--invocation-count-for-turbofan=3000";

test("V8 is told of a busy process once, and once that it has time to spare again", () => {
  const flags: string[] = [];
  const tierUp = new CompilerPacing((each) => flags.push(each));
  for (const isBusy of [false, true, true, false, false]) tierUp.look(isBusy);
  expect(flags).toEqual([patient, busy, patient]);
});

test("a loop that is busy for two fifths of the last 200 ms compiles at once, and any other waits", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const spent = { idle: 0, active: 0 };
  const utilization = vi.spyOn(performance, "eventLoopUtilization").mockImplementation((now, before) => {
    const idle = (now?.idle ?? spent.idle) - (before?.idle ?? 0);
    const active = (now?.active ?? spent.active) - (before?.active ?? 0);
    return { idle, active, utilization: active / (idle + active) };
  });
  const pass = (ms: number, share: number) => {
    spent.active += ms * share;
    spent.idle += ms * (1 - share);
    vi.advanceTimersByTime(ms);
  };
  try {
    const looks: boolean[] = [];
    pass(1000, 1);
    const end = paceTierUp({ look: (isBusy) => looks.push(isBusy) });
    for (const share of [0.39, 0.41, 0.39]) pass(200, share);
    end();
    pass(200, 1);
    expect(looks).toEqual([false, true, false]);
  } finally {
    utilization.mockRestore();
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
