import { expect, it } from "vitest";
import { type Gauges, Metrics } from "../../runtime/observe/metrics.ts";

/** The lines of a page with this beginning. */
const shown = async (metrics: Metrics, beginning: string): Promise<string[]> =>
  (await metrics.text()).split("\n").filter((line) => line.startsWith(beginning));

function metricsOf(standings: Gauges["standings"]): Metrics {
  const metrics = new Metrics();
  metrics.watch({
    ...{ functions: () => [], unloaded: () => [], standings, parked: () => [] },
    ...{ reads: () => [], cache: () => ({ bytes: 0, limit: 0, suspensions: [] }), sources: () => [] },
  });
  return metrics;
}

it("of each function it is told whether it is ready, and why not; one that is gone leaves no series", async () => {
  const standings: { name: string; ready: boolean; reason?: string }[] = [
    { name: "broken", ready: false, reason: "BuildFailed" },
    { name: "changed", ready: true, reason: "ChangeRefused" },
    { name: "sound", ready: true },
  ];
  const metrics = metricsOf(() => standings);
  expect(await shown(metrics, "watchfire_function_rea")).toEqual([
    'watchfire_function_ready{function="broken"} 0',
    'watchfire_function_ready{function="changed"} 1',
    'watchfire_function_ready{function="sound"} 1',
    'watchfire_function_reason{function="broken",reason="BuildFailed"} 1',
    'watchfire_function_reason{function="changed",reason="ChangeRefused"} 1',
  ]);
  standings.splice(0, 2);
  expect(await shown(metrics, "watchfire_function_rea")).toEqual(['watchfire_function_ready{function="sound"} 1']);
});

it("a name that two files declare has one series, that of the one that is not ready", async () => {
  const standings = [
    { name: "twice", ready: true },
    { name: "twice", ready: false, reason: "ManifestRefused" },
    { name: "twice", ready: true },
  ];
  expect(
    await shown(
      metricsOf(() => standings),
      "watchfire_function_rea",
    ),
  ).toEqual([
    'watchfire_function_ready{function="twice"} 0',
    'watchfire_function_reason{function="twice",reason="ManifestRefused"} 1',
  ]);
});

it("a shard that is ready and has a reason is told of, before and after one that has none", async () => {
  const none = { name: "f", ready: true };
  const refused = { ...none, reason: "ChangeRefused" };
  for (const standings of [
    [none, refused],
    [refused, none],
  ]) {
    const metrics = metricsOf(() => standings);
    expect(await shown(metrics, "watchfire_function_rea")).toEqual([
      'watchfire_function_ready{function="f"} 1',
      'watchfire_function_reason{function="f",reason="ChangeRefused"} 1',
    ]);
  }
});
