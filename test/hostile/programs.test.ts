import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../runtime/dispatch/delivery.ts";
import { Stage } from "../sandbox/stage.ts";

/** A program's first lines say how it has to end (a code, or an error's name, or `ok`) and how soon. */
interface Program {
  readonly name: string;
  readonly code: string;
  readonly endings: readonly string[];
  readonly withinMs: number;
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
  };
});

/** CPU, wall and memory limits of every program; the machine may be busy with other tests, so times get a margin. */
const limits = { cpuMs: 250, memoryMb: 32 };
const timeoutMs = 3000;
const marginMs = 4000;
const innocents = 10;

const endingOf = (outcome: Outcome): string =>
  outcome.type === "failed" || outcome.type === "permanent" ? (outcome.error.code ?? outcome.error.name) : outcome.type;

describe("a hostile handler harms only its own attempts:", () => {
  let stage: Stage;
  let stopped = false;
  let traffic: Promise<void>[] = [];
  const outcomes: Record<string, number> = {};
  const latencies: number[] = [];
  const lags: number[] = [];
  const table: string[] = [];

  beforeAll(async () => {
    stage = new Stage({ executors: 1 });
    for (let index = 0; index < innocents; index++) {
      await stage.load(`innocent-${index}`, "export default (event) => event.object.metadata.name.length;", limits);
    }
    traffic = Array.from({ length: innocents }, async (_, index) => {
      while (!stopped) {
        const startedAt = performance.now();
        const outcome = await stage.run(`innocent-${index}`, { timeoutMs: 30_000 });
        latencies.push(performance.now() - startedAt);
        const ending = endingOf(outcome);
        outcomes[ending] = (outcomes[ending] ?? 0) + 1;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    traffic.push(
      (async () => {
        while (!stopped) {
          const startedAt = performance.now();
          await new Promise((resolve) => setTimeout(resolve, 10));
          lags.push(performance.now() - startedAt - 10);
        }
      })(),
    );
  });

  afterAll(async () => {
    stopped = true;
    await Promise.all(traffic);
    await stage.close();
    process.stdout.write(`${table.join("\n")}\n`);
  });

  it.each(programs)("$name", async (program) => {
    stage.logs.length = 0;
    const deathsBefore = stage.deaths.length;
    latencies.length = 0;
    await stage.load(program.name, program.code, limits);
    const startedAt = performance.now();
    let outcome = await stage.run(program.name, { timeoutMs });
    // An executor's death that leaves several suspects: they run again, alone.
    for (let tries = 0; outcome.type === "interrupted" && tries < 3; tries++) {
      outcome = await stage.run(program.name, { timeoutMs });
    }
    const tookMs = performance.now() - startedAt;
    const ending = endingOf(outcome);
    const slowest = Math.max(0, ...latencies);
    const killed = stage.deaths.slice(deathsBefore).map((death) => death.reason);
    table.push(
      `${program.name.padEnd(30)} ${ending.padEnd(24)} ${tookMs.toFixed(0).padStart(5)} ms  executors lost: ${killed.join(",") || "none"}  innocents' slowest ${slowest.toFixed(0)} ms`,
    );
    expect(program.endings).toContain(ending);
    expect(tookMs).toBeLessThan(program.withinMs + marginMs);
    if (outcome.type === "failed" && outcome.error.code) {
      expect(outcome.error.stack).toMatch(new RegExp(`/${program.name}\\.ts:\\d+:\\d+`));
    }
    const written = stage.logs.reduce((sum, line) => sum + line.message.length, 0);
    expect(written).toBeLessThan(80_000);
    stage.sandbox.unload(program.name);
  });

  it("no innocent was charged with anything", () => {
    expect(outcomes.ok).toBeGreaterThan(innocents);
    expect(Object.keys(outcomes).filter((ending) => ending !== "ok" && ending !== "interrupted")).toEqual([]);
    expect(stage.deaths.flatMap((death) => death.culprits).filter((name) => name.startsWith("innocent"))).toEqual([]);
    const states = Array.from({ length: innocents }, (_, index) => stage.sandbox.status(`innocent-${index}`)?.kills);
    expect(states).toEqual(states.map(() => 0));
  });

  it("the parent stayed responsive", () => {
    const sorted = lags.sort((a, b) => a - b);
    table.push(
      `parent's lag: p99 ${(sorted[Math.floor(sorted.length * 0.99)] ?? 0).toFixed(1)} ms of ${sorted.length}`,
    );
    expect(sorted[Math.floor(sorted.length * 0.5)]).toBeLessThan(50);
  });
});
