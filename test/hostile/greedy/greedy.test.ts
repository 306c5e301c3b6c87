import { beforeAll, describe, expect, test } from "vitest";
import { kinds } from "./kinds.ts";
import { type Felt, feltBeside } from "./neighbours.ts";

const seconds = 15;
/** As the chart's probe has it, and as a person would call prompt; milliseconds. */
const promptMs = 250;
const livezMs = 1_000;
/** What a busy machine adds, as a multiple of what the function feels alone. */
const multiple = 5;

describe("beside functions that are greedy within every limit", () => {
  let alone: Felt;
  beforeAll(async () => {
    alone = await feltBeside({}, seconds);
  }, 120_000);

  test.each(Object.keys(kinds))(
    "for %s, another is told of all that changes, promptly, and `/livez` answers",
    async (name) => {
      const felt = await feltBeside(kinds[name] ?? {}, seconds);
      expect(felt.told).toBeGreaterThanOrEqual(felt.changes);
      expect(felt.p99).toBeLessThan(Math.max(promptMs, multiple * alone.p99));
      expect(felt.livez).toBeLessThan(Math.max(livezMs, multiple * alone.livez));
    },
    120_000,
  );
});
