import { expect, it } from "vitest";
import { runReadsWorld } from "./world.ts";

// SEED=7 runs one world again; SEEDS=2000 runs that many.
const { SEED, SEEDS = "100" } = process.env;
const first = SEED === undefined ? 1 : Number(SEED);
const count = SEED === undefined ? Number(SEEDS) : 1;

it(`the cache shows the server's objects at its resourceVersion, and no handler runs before it has its event: seeds ${first} to ${first + count - 1}`, {
  timeout: 60_000 + count * 1000,
}, async () => {
  const failures: string[] = [];
  const sums = { runs: 0, waited: 0, lists: 0 };
  for (const seed of Array.from({ length: count }, (_, index) => first + index)) {
    const world = await runReadsWorld(seed);
    for (const name of ["runs", "waited", "lists"] as const) sums[name] += world[name];
    for (const law of world.broken.slice(0, 3)) failures.push(`SEED=${seed} ${law}`);
  }
  expect(failures.slice(0, 20)).toEqual([]);
  // Checks that the worlds were demanding enough.
  expect(sums.runs).toBeGreaterThan(10 * count);
  expect(sums.waited).toBeGreaterThan(count);
  expect(sums.lists).toBeGreaterThan(2 * count);
});
