import { expect, test } from "vitest";
import { type FunctionCounters, MetricSeries } from "../../runtime/console/metric-series.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** Samples of counters that a test sets. */
function sampled() {
  const clock = new VirtualClock();
  const state: { counters: FunctionCounters[] } = { counters: [] };
  const series = new MetricSeries(() => state.counters, clock);
  const sample = (...counters: FunctionCounters[]) => {
    state.counters = counters;
    series.sample();
  };
  return { clock, series, sample, state };
}

test("a source's rate is that of its live changes in the last minute, and begins again with the source", async () => {
  const clock = new VirtualClock();
  let bytes = 0;
  const series = new MetricSeries(
    () => [],
    clock,
    () => [{ key: "a", bytes }],
  );
  const sample = async (total: number) => {
    bytes = total;
    series.sample();
    await clock.advance(10_000);
  };
  await sample(0);
  expect(series.bytesPerSecond("a")).toBeUndefined();
  await sample(1_000);
  expect(series.bytesPerSecond("a")).toBe(100);
  for (let n = 0; n < 7; n++) await sample(1_000);
  expect(series.bytesPerSecond("a")).toBe(0);
  await sample(500);
  expect(series.bytesPerSecond("a")).toBeUndefined();
  expect(series.bytesPerSecond("b")).toBeUndefined();
});

const of = (name: string, events: number, errors = 0, waiting = 0) => ({ name, events, errors, waiting });

test("a step has the events and errors since the sample before, and those that wait at its end", () => {
  const { series, sample } = sampled();
  sample(of("a", 100, 10, 5), of("b", 1));
  expect(series.describe({ points: 60 }).sum.events).toEqual([]);
  sample(of("a", 130, 11, 7), of("b", 1));
  sample(of("a", 130, 11, 0), of("b", 4));
  expect(series.describe({ points: 60 })).toMatchObject({
    stepMs: 10_000,
    sum: { events: [30, 3], errors: [1, 0], waiting: [7, 0] },
    functions: [
      { name: "a", events: [30, 0] },
      { name: "b", events: [0, 3] },
    ],
  });
  expect(series.describe({ function: "b", points: 1 }).functions).toMatchObject([{ name: "b", events: [3] }]);
});

test("a function that is there again, and counts that begin again, add nothing that did not happen in the step", () => {
  const { series, sample } = sampled();
  sample(of("a", 100));
  sample();
  sample(of("a", 120));
  sample(of("a", 3));
  expect(series.describe({ points: 60 }).functions[0]?.events).toEqual([0, 0, 0]);
});

test("an hour is kept, the oldest first, and a function that is gone for an hour is forgotten", () => {
  const { series, sample } = sampled();
  sample(of("a", 0), of("gone", 0));
  for (let n = 1; n <= 400; n++) sample(of("a", n * n));
  const { functions } = series.describe({ points: 360 });
  expect(functions.map(({ name }) => name)).toEqual(["a"]);
  expect([functions[0]?.events.length, functions[0]?.events[0], functions[0]?.events.at(-1)]).toEqual([360, 81, 799]);
});

test("it samples every ten seconds until it is closed", async () => {
  const { clock, series, state } = sampled();
  state.counters = [of("a", 0)];
  series.begin();
  await clock.advance(30_000);
  expect(series.describe({ points: 60 }).sum.events).toHaveLength(3);
  series.close();
  await clock.advance(60_000);
  expect(series.describe({ points: 60 }).sum.events).toHaveLength(3);
});
