import { describe, expect, test } from "vitest";
import { chartDefaults } from "../../readme/bounds/table.ts";
import { generated, kinds, seed } from "./kinds.ts";
import { feltBeside } from "./neighbours.ts";

const seconds = 4;
/** The timeout of the chart's probe, in milliseconds. */
const probeMs = 5_000;
/**
 * Limit of the delay in milliseconds. It is generous, because other tests run at the same time and ten manifests differ from one;
 * `npm run greedy` measures precisely on an idle machine.
 */
const promptMs = 2_000;

process.stdout.write(`the generated manifests are of seed ${seed}: SEED=${seed} makes them again\n`);

describe("beside functions that are greedy within every limit", () => {
  test.each(Object.keys(kinds))(
    "for %s, another is told of all that changes, `/livez` answers the chart's probe, and what the chart gives is enough",
    async (name) => {
      const { told, changes, p50, livez, memory, disk } = await feltBeside(kinds[name] ?? { functions: {} }, seconds);
      expect({
        lost: Math.max(0, changes - told),
        isPrompt: p50 < promptMs || name === generated,
        isLive: livez < probeMs,
        fits: memory < chartDefaults.memory && disk < chartDefaults.volume,
      }).toEqual({ lost: 0, isPrompt: true, isLive: true, fits: true });
    },
    120_000,
  );
});
