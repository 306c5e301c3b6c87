import { expect, test } from "vitest";
import { noteworthy, QuietRate } from "../../runtime/history/noteworthy.ts";
import { endedRun, failure } from "./collected.ts";

const quietRuns = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => endedRun({ function: name }, `${name}-${n}`));
const countOf = (runs: readonly { readonly function: string }[], name: string) =>
  runs.filter((run) => run.function === name).length;

test("of more quiet runs than the rate allows, each function's newest are kept, in equal shares", () => {
  const kept = noteworthy(
    [...quietRuns("busy", 1000), ...quietRuns("calm", 20), ...quietRuns("other", 500)],
    [],
    new QuietRate(),
  );
  expect(countOf(kept, "calm")).toBe(20);
  expect(countOf(kept, "busy")).toBe(115);
  expect(countOf(kept, "other")).toBe(115);
  expect(kept.at(-1)?.object.name).toBe("other-499");
});

test("a run that failed, was repeated, called something or logged something is kept at any rate", () => {
  const failed = endedRun({ outcome: failure }, "failed");
  const repeated = endedRun({ attempt: 2 }, "repeated");
  const calling = endedRun({ calls: { calls: [], more: 0 } }, "calling");
  const logging = endedRun({}, "logging");
  const line = { number: 1, function: "greet", run: logging.id, line: "{}" };
  const kept = noteworthy([failed, repeated, calling, logging, ...quietRuns("busy", 1000)], [line], new QuietRate());
  expect(kept.slice(0, 4)).toEqual([failed, repeated, calling, logging]);
  expect(kept.length).toBe(4 + 250);
});

test("below the rate, all runs are kept", () => {
  const rate = new QuietRate();
  const runs = quietRuns("greet", 100);
  expect(noteworthy(runs, [], rate)).toBe(runs);
});

test("the rate is one of time, however often batches are written", () => {
  const rate = new QuietRate();
  expect(noteworthy(quietRuns("greet", 300), [], rate)).toHaveLength(250);
  rate.refill(10);
  expect(noteworthy(quietRuns("greet", 300), [], rate)).toHaveLength(5);
  rate.refill(10_000);
  expect(noteworthy(quietRuns("greet", 300), [], rate)).toHaveLength(250);
});
