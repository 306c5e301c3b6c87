import { describe, expect, it } from "vitest";
import { runReconcileWorld } from "./reconcile-world.ts";

// SEED=7 runs one world again; SEEDS=10000 runs that many.
const { SEED, SEEDS = "150" } = process.env;
const first = SEED === undefined ? 1 : Number(SEED);
const count = SEED === undefined ? Number(SEEDS) : 1;

describe("the laws of reconciling", () => {
  it(`hold for an owner and two kinds of children, with random writes, kills and lost history, for seeds ${first} to ${first + count - 1}`, {
    timeout: 60_000 + count * 500,
  }, async () => {
    const failures: string[] = [];
    let runs = 0;
    for (let seed = first; seed < first + count; seed++) {
      const world = await runReconcileWorld(seed);
      runs += world.runs;
      for (const law of world.broken.slice(0, 3)) failures.push(`SEED=${seed} ${law}`);
    }
    expect(failures.slice(0, 20)).toEqual([]);
    expect(runs).toBeGreaterThan(count * 20);
  });
});
