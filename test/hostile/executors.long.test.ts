import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import type { Launch } from "../../runtime/sandbox/host/link.ts";
import { residentBytes } from "../../runtime/v8/resident-memory.ts";
import { fixtureForTest, SandboxFixture } from "../sandbox/fixture.ts";
import { lookMs, watchLoopLag } from "../tools/loop-lag.ts";

const program = join(import.meta.dirname, "executors", "executor.program.ts");

/** The first executor is a hostile process on the real pipe; later ones are genuine. Records when it was killed. */
function hostileFirst(misdeed: string, seen: { endedAt?: number }): Launch {
  let first = true;
  const honest = launchChild();
  return (listener) => {
    if (!first) return honest(listener);
    first = false;
    return launchChild({ flags: [], args: [program, misdeed] })({
      ...listener,
      opened: () => listener.opened(),
      data: (chunk) => listener.data(chunk),
      ended: (reason, detail) => {
        seen.endedAt = performance.now();
        listener.ended(reason, detail);
      },
    });
  };
}

/** JSON that is larger than a pipe's buffer. */
const largeAnswer = JSON.stringify("x".repeat(2 ** 20));

const isAlive = (pid: number): boolean => {
  try {
    // An ended process that has not been reaped has no memory.
    return residentBytes(pid) > 0;
  } catch {
    return false;
  }
};

const table: string[] = [];

describe("an executor that a guest has taken over is killed, and harms nobody else, when it sends", () => {
  it.each([
    ["random bytes", "breach"],
    ["a frame of 4 GiB", "breach"],
    ["a header longer than its frame", "breach"],
    ["a frame that trickles in", "silent"],
    ["a functionId it never had", "breach"],
    ["an exit without an entry", "breach"],
    ["calls without end", "breach"],
    ["questions without end", "breach"],
    ["a question of another function's event", "breach"],
    ["a question of an event that it was not sent", "breach"],
    ["a question of the API server", "breach"],
    ["a question longer than a guest's", "breach"],
    ["questions whose answers it does not read", "breach"],
    ["entries without end", "breach"],
    ["a million heartbeats a second", "breach"],
    ["a million entries and exits a second", "breach"],
    ["the return of an event that it had begun", "breach"],
    ["a return that nobody asked for", "breach"],
    ["a frame of the parent's", "breach"],
    ["JSON as deep as a frame", "breach"],
    ["a header as deep as a frame", "breach"],
    ["an outbox as deep as a frame", "breach"],
    ["an outbox as deep as its head may be", "breach"],
    ["fields of a log line as deep as a frame", "breach"],
    ["as many log lines as there may be", "breach"],
    ["more metrics than a guest sends", "breach"],
    ["a call nested as deep as a frame", "breach"],
    ["an event that it was not sent", "breach"],
    ["the leaving of an event that it had begun", "breach"],
    ["the leaving of more events than came", "breach"],
    ["an entry with fields that none has", "breach"],
    ["a heartbeat with a body", "breach"],
    ["a log line of quotation marks", "breach"],
    ["log lines of quotation marks, each as long as one may be", "breach"],
    ["calls whose answers it does not read", "breach"],
    ["doom, and stays", "stuck"],
    ["silence", "silent"],
    ["memory without end", "memory"],
  ])("%s", async (misdeed, reason) => {
    const seen: { endedAt?: number } = {};
    const fixture = fixtureForTest({ launch: hostileFirst(misdeed, seen) });
    const answers = misdeed.endsWith("whose answers it does not read");
    fixture.answer = () => (answers ? { ok: true, json: largeAnswer } : new Promise(() => {}));
    await fixture.load("f", "export default () => {};");
    const memoryBefore = residentBytes(process.pid);
    const lag = watchLoopLag();
    const asks = misdeed === "the return of an event that it had begun";
    const outcome = await run(fixture.sandbox, fixture.delivery("f"), () => {
      if (asks) fixture.sandbox.recall("f");
    });
    // An outcome that an executor invents harms only its own function. The parent itself reports one of these.
    expect(["interrupted", "failed"]).toContain(outcome.type);
    await expect.poll(() => fixture.deaths, { timeout: 10_000 }).toMatchObject([{ reason }]);
    const grownMiB = (residentBytes(process.pid) - memoryBefore) / 2 ** 20;
    const diedAt = seen.endedAt ?? Number.NaN;
    // Only calls that its own event may make were made in its name, and never more than a guest can make.
    expect(fixture.calls.every((call) => call.caller.function === "f")).toBe(true);
    expect(fixture.calls.length).toBeLessThanOrEqual(128);
    expect((await fixture.run("f")).type).toBe("ok");
    const servedMs = performance.now() - diedAt;
    const lagMs = lag.stop();
    table.push(
      `${misdeed.padEnd(38)} ${reason.padEnd(7)} serving again after ${servedMs.toFixed(0)} ms, lag ${lagMs.toFixed(0)} ms, memory + ${grownMiB.toFixed(0)} MiB`,
    );
    process.stdout.write(`${table.at(-1)}\n`);
    expect(lagMs).toBeLessThan(50 + lookMs);
    expect(grownMiB).toBeLessThan(200);
  });

  it("doom and stays, once and again: none of its kind outlives the sandbox", async () => {
    const pids: number[] = [];
    const launch: Launch = (listener) => {
      const link = launchChild({ flags: [], args: [program, "doom, and stays"] })(listener);
      pids.push(link.pid ?? Number.NaN);
      return link;
    };
    const fixture = new SandboxFixture({ launch });
    await fixture.load("f", "export default () => {};");
    for (let death = 0; death < 3; death++) await fixture.run("f");
    const known = (await fixture.sandbox.executors()).map(({ pid }) => pid);
    expect(pids.filter(isAlive).every((pid) => known.includes(pid))).toBe(true);
    await fixture.close();
    await expect.poll(() => pids.filter(isAlive), { timeout: 5000 }).toEqual([]);
  });

  it.each(["calls without end", "as many log lines as there may be"])(
    "%s, in the name of an attempt that is charged with it",
    async (misdeed) => {
      const fixture = fixtureForTest({ launch: hostileFirst(misdeed, {}) });
      fixture.answer = () => new Promise(() => {});
      await fixture.load("f", "export default () => {};");
      expect(await fixture.run("f")).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_KILLED" } });
      await expect.poll(() => fixture.deaths).toEqual([{ reason: "breach", culprits: ["f"] }]);
      expect(fixture.sandbox.status("f")?.kills).toBe(1);
    },
  );

  it("heartbeats and no answer, long after every deadline", async () => {
    // Time runs four times as fast, because the timeout of an answer is long.
    const clock = {
      ...systemClock,
      monotonic: () => 4 * performance.now(),
      after: (delayMs: number, ...rest: [() => void, { unref?: boolean }?]) => systemClock.after(delayMs / 4, ...rest),
    };
    const fixture = new SandboxFixture({ launch: hostileFirst("heartbeats and no answer", {}), clock });
    try {
      await fixture.load("f", "export default () => {};");
      expect((await fixture.run("f", { timeoutMs: 1 })).type).not.toBe("ok");
      expect(fixture.deaths[0]).toMatchObject({ reason: "silent" });
    } finally {
      await fixture.close();
    }
  });
});
