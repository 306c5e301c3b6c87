import { describe, expect, it } from "vitest";
import { runScopedWorld } from "./scoped-world.ts";
import { runAskingWorld, runHotWorld, runShardWorld, runWorld } from "./world.ts";

// SEED=7 runs one world of each kind again; SEEDS=10000 runs that many.
const { SEED, SEEDS = "200" } = process.env;
const first = SEED === undefined ? 1 : Number(SEED);
const count = SEED === undefined ? Number(SEEDS) : 1;

describe("the laws of delivery", () => {
  it.each([
    ["faults, kills and reloads", runWorld, count],
    ["requeues, errands and new code", runAskingWorld, Math.ceil(count / 2)],
    ["a hot key and little room", runHotWorld, count],
    ["one shard of three, faults, kills and reloads", runShardWorld, Math.ceil(count / 5)],
    ["namespaces that come and go, restored backups and conditions", runScopedWorld, count],
  ] as const)(
    `in worlds with %s hold for seeds from ${first} on`,
    { timeout: 60_000 + count * 500 },
    async (_, run, count) => {
      const failures: string[] = [];
      let deliveries = 0;
      for (let seed = first; seed < first + count; seed++) {
        const world = await run(seed);
        deliveries += world.deliveries;
        for (const law of world.broken.slice(0, 3)) failures.push(`SEED=${seed} ${law}`);
      }
      expect(failures.slice(0, 20)).toEqual([]);
      expect(deliveries).toBeGreaterThan(count * 5);
    },
  );

  it("are asked of events that stand for others, in many worlds", async () => {
    let collapsed = 0;
    for (let seed = 1; seed <= 40; seed++) collapsed += (await runHotWorld(seed)).collapsed;
    expect(collapsed).toBeGreaterThan(40);
  });

  // In each of them, a lane that was reading from disk was cut in memory meanwhile.
  it.each([1003, 1943, 4532, 5380, 6086])("hold in the world of seed %i, which broke one", async (seed) => {
    expect((await runWorld(seed)).broken).toEqual([]);
  });
});
