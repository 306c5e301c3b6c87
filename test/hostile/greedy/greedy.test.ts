import { describe, expect, test } from "vitest";
import { kinds } from "./kinds.ts";
import { feltBeside } from "./neighbours.ts";

const seconds = 4;
/** As the chart's probe has it, in milliseconds. */
const probeMs = 5_000;
/** Other tests run meanwhile: how prompt it is shows on a machine of its own alone, by `npm run greedy`. */
const promptMs = 2_000;

describe("beside functions that are greedy within every limit", () => {
  test.each(Object.keys(kinds))(
    "for %s, another is told of all that changes, and `/livez` answers the chart's probe",
    async (name) => {
      const { told, changes, p50, livez } = await feltBeside(kinds[name] ?? {}, seconds);
      expect({ lost: Math.max(0, changes - told), isPrompt: p50 < promptMs, isLive: livez < probeMs }).toEqual({
        lost: 0,
        isPrompt: true,
        isLive: true,
      });
    },
    120_000,
  );
});
