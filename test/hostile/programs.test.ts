import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { residentBytes } from "../../runtime/v8/resident-memory.ts";
import { SandboxFixture } from "../sandbox/fixture.ts";
import { until } from "../tools/until.ts";
import { Innocents } from "./innocents.ts";

/**
 * A hostile program. Its first lines state the allowed outcomes (a code, an error's name, or `ok`) and the time limit.
 */
interface Program {
  readonly name: string;
  readonly code: string;
  readonly endings: readonly string[];
  readonly withinMs: number;
  /** True if one of its operations can outlast its limit; the program states this in a comment line. */
  readonly isUnstoppable: boolean;
}

const folder = join(import.meta.dirname, "programs");
const programs = readdirSync(folder).map((file): Program => {
  const code = readFileSync(join(folder, file), "utf8");
  const [, endings = ""] = /^\/\/ ends with: (.*)$/m.exec(code) ?? [];
  const withinMs = Number(/^\/\/ within: (\d+) ms$/m.exec(code)?.[1]);
  return {
    name: file.replace(".ts", ""),
    code,
    endings: endings.split(" "),
    withinMs,
    isUnstoppable: /^\/\/ unstoppable$/m.test(code),
  };
});

/** CPU, wall-clock and memory limits of every program. Other tests may use the machine, so times have a margin. */
const limits = { cpuMs: 250, memoryMb: 32 };
const timeoutMs = 3000;
const marginMs = 4000;
/**
 * Limit of the executor's CPU time for one attempt of a program over its budget, independent of the machine's load: the budget,
 * 100 ms for V8 to end it, and 50 ms for the watchdog. The same amount again is for the collector's threads, the innocents, and
 * the program's own share while two isolates run.
 */
const cpuBoundMs = 2 * (limits.cpuMs + 100 + 50);
/** A program that cannot be interrupted ends with its process: one more second, on at most two threads. */
const unstoppableBoundMs = cpuBoundMs + 2000;
/** Allowed resident memory over an executor's cap, in bytes: what can be allocated between two checks. */
const overshoot = 100 * 2 ** 20;
const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

const endingOf = (outcome: Outcome): string =>
  outcome.type === "failed" || outcome.type === "permanent" ? (outcome.error.code ?? outcome.error.name) : outcome.type;

/** CPU time of the processes so far, in milliseconds. Ticks are 10 ms on every Linux that Node supports. */
function cpuMs(pids: readonly (number | undefined)[]): number {
  let sum = 0;
  for (const pid of pids) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
      sum += 10 * (Number(fields[11]) + Number(fields[12]));
    } catch {
      // it is gone
    }
  }
  return sum;
}

/**
 * Resolves once an uninterruptible program has ended, or has taken its executor down, so that half a core is idle again.
 */
async function quiet(pids: readonly (number | undefined)[]): Promise<void> {
  let last = { at: performance.now(), cpu: cpuMs(pids) };
  await until("the executors are quiet", 20_000, async () => {
    const now = { at: performance.now(), cpu: cpuMs(pids) };
    if (now.at - last.at < 100) return false;
    const isQuiet = now.cpu - last.cpu < (now.at - last.at) / 2;
    last = now;
    return isQuiet;
  });
}

describe("a hostile handler harms only its own attempts:", () => {
  let fixture: SandboxFixture;
  let innocents: Innocents;
  const charged = new Set<string>();
  const table: string[] = [];

  beforeAll(async () => {
    fixture = new SandboxFixture({ executors: 1 });
    innocents = await Innocents.start(fixture, limits);
  });

  afterAll(async () => {
    await innocents.stop();
    await fixture.close();
    process.stdout.write(`${table.join("\n")}\n`);
  });

  it.each(programs)("$name", async (program) => {
    fixture.logs.length = 0;
    fixture.notes.length = 0;
    const deathsBefore = fixture.deaths.length;
    innocents.forget();
    await fixture.load(program.name, program.code, limits);
    const pids = (await fixture.sandbox.executors()).map(({ pid }) => pid);
    let peak = 0;
    let parentPeak = 0;
    const sampler = setInterval(() => {
      for (const pid of pids) peak = Math.max(peak, residentBytes(pid));
      parentPeak = Math.max(parentPeak, residentBytes(process.pid));
    }, 10);
    const startedAt = performance.now();
    let outcome: Outcome;
    let tries = 0;
    let costMs: number;
    do {
      const before = cpuMs(pids);
      outcome = await fixture.run(program.name, { timeoutMs });
      costMs = cpuMs(pids) - before;
      // An attempt that no function is charged with is repeated, alone.
    } while (outcome.type === "interrupted" && ++tries < 4);
    const tookMs = performance.now() - startedAt;
    const ending = endingOf(outcome);
    if (outcome.type === "failed") charged.add(program.name);
    await Promise.all([innocents.seen(100), quiet(pids)]);
    clearInterval(sampler);
    const deaths = fixture.notes.map(({ reason, functions }) => `${reason} by ${functions.join() || "no replica"}`);
    table.push(
      `${program.name.padEnd(29)} ${ending.padEnd(22)} ${tookMs.toFixed(0).padStart(5)} ms, cpu ${costMs.toFixed(0).padStart(4)} ms  rss executor ${megabytes(peak).toString().padStart(3)} parent ${megabytes(parentPeak).toString().padStart(3)} MiB  innocents' p99 ${innocents.p99().toFixed(0).padStart(3)} ms  charged: ${outcome.type === "failed" ? program.name : "none"}  lost: ${deaths.join("; ") || "none"}`,
    );
    process.stdout.write(`${table.at(-1)}\n`);
    expect(program.endings).toContain(ending);
    expect(tookMs).toBeLessThan(program.withinMs + marginMs);
    if (ending === "WF_SANDBOX_CPU_BUDGET" && !program.isUnstoppable && fixture.deaths.length === deathsBefore) {
      expect(costMs).toBeLessThan(cpuBoundMs);
    } else if (ending !== "WF_SANDBOX_DEADLINE") expect(costMs).toBeLessThan(unstoppableBoundMs);
    // The memory cap of the shared executor: its own 200 MiB, four times one isolate, and the ten others.
    expect(peak).toBeLessThan((200 + 4 * limits.memoryMb + 10 * limits.memoryMb) * 2 ** 20 + overshoot);
    if (outcome.type === "failed" && outcome.error.code) {
      expect(outcome.error.stack).toMatch(new RegExp(`/${program.name}\\.ts:\\d+:\\d+`));
    }
    const written = fixture.logs.reduce((sum, line) => sum + line.message.length, 0);
    expect(written).toBeLessThan(80_000);
    fixture.sandbox.unload(program.name);
  });

  it("no other function was charged with anything, and none of their events was lost", async () => {
    await innocents.stop();
    expect(innocents.begun).toBeGreaterThan(programs.length * 100);
    // Each event has one outcome: it succeeded, if necessary after interruptions.
    expect(innocents.endings).toEqual({ ok: innocents.begun });
    // A function that shared an executor with a program which took uncounted memory is named together with it, because either
    // could be the cause.
    const named = fixture.deaths.map(({ culprits }) => culprits);
    expect(named.filter((names) => names.length > 0 && names.every((name) => innocents.names.includes(name)))).toEqual(
      [],
    );
    expect(innocents.names.map((name) => fixture.sandbox.status(name)?.kills)).toEqual(innocents.names.map(() => 0));
  });

  it("the parent stayed responsive", () => {
    const lag = innocents.lag();
    table.push(`parent's lag: median ${lag.median.toFixed(1)} ms, p99 ${lag.p99.toFixed(1)} ms`);
    expect(lag.p99).toBeLessThan(50);
  });
});
