import { expect, it } from "vitest";
import { runFleet } from "./world.ts";

// SEED=7 runs one world again; SEEDS=10000 runs that many.
const { SEED, SEEDS = "60" } = process.env;
const first = SEED === undefined ? 1 : Number(SEED);
const count = SEED === undefined ? Number(SEEDS) : 1;

it(`the laws of delivery hold end to end in fleets with seeds ${first} to ${first + count - 1}`, {
  timeout: 60_000 + count * 2_000,
}, async () => {
  const failures: string[] = [];
  let deliveries = 0;
  for (let seed = first; seed < first + count; seed++) {
    const fleet = await runFleet(seed);
    deliveries += fleet.deliveries;
    for (const law of fleet.broken.slice(0, 3)) failures.push(`SEED=${seed} ${law}`);
  }
  expect(failures.slice(0, 20)).toEqual([]);
  expect(deliveries).toBeGreaterThan(count * 5);
});
