import { expect, it } from "vitest";
import { loadSpec } from "./manifest.ts";

const watch = "  triggers: [{ watch: { apiVersion: v1, kind: Pod } }]";

it.each(["All", "Latest", "Reconcile"])("a quiet time goes with mode %s", async (mode) => {
  const { functions, faults } = await loadSpec(`${watch}\n  delivery: { mode: ${mode}, debounce: 2s }`);
  expect(faults).toEqual([]);
  expect(functions[0]?.delivery.debounceMs).toBe(2000);
});

it("a quiet time of more than a minute, and one of schedules alone, is refused", async () => {
  const long = await loadSpec(`${watch}\n  delivery: { debounce: 61s }`);
  expect(long.faults.map(({ message }) => message).join()).toContain("at most 60s");
  const timed = await loadSpec("  triggers: [{ schedule: { every: 1m } }]\n  delivery: { debounce: 2s }");
  expect(timed.faults.map(({ code, detail }) => [code, detail.path])).toEqual([
    ["WF_MANIFEST_INVALID_VALUE", "spec.delivery.debounce"],
  ]);
});
