import { expect, it } from "vitest";
import { noStates } from "../../deploy/dashboard/known-metrics.ts";
import { type Gauges, Metrics } from "../../runtime/observe/metrics.ts";

const page = (states: Partial<Gauges>, metrics = new Metrics()) => metrics.text({ ...noStates, ...states });

/** The lines of a page with this beginning. */
const shown = async (standings: Gauges["standings"], beginning: string): Promise<string[]> =>
  (await page({ standings })).split("\n").filter((line) => line.startsWith(beginning));

it("of each function it is told whether it is ready, and why not; one that is gone leaves no series", async () => {
  const standings: { name: string; ready: boolean; reason?: string }[] = [
    { name: "broken", ready: false, reason: "BuildFailed" },
    { name: "changed", ready: true, reason: "ChangeRefused" },
    { name: "sound", ready: true },
  ];
  expect(await shown(() => standings, "watchfire_function_rea")).toEqual([
    'watchfire_function_ready{function="broken"} 0',
    'watchfire_function_ready{function="changed"} 1',
    'watchfire_function_ready{function="sound"} 1',
    'watchfire_function_reason{function="broken",reason="BuildFailed"} 1',
    'watchfire_function_reason{function="changed",reason="ChangeRefused"} 1',
  ]);
  standings.splice(0, 2);
  expect(await shown(() => standings, "watchfire_function_rea")).toEqual([
    'watchfire_function_ready{function="sound"} 1',
  ]);
});

it("a name that two files declare has one series, that of the one that is not ready", async () => {
  const standings = [
    { name: "twice", ready: true },
    { name: "twice", ready: false, reason: "ManifestRefused" },
    { name: "twice", ready: true },
  ];
  expect(await shown(() => standings, "watchfire_function_rea")).toEqual([
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
    expect(await shown(() => standings, "watchfire_function_rea")).toEqual([
      'watchfire_function_ready{function="f"} 1',
      'watchfire_function_reason{function="f",reason="ChangeRefused"} 1',
    ]);
  }
});

it("sources that differ in a selector or in what is transferred have a series each, and no series occurs twice", async () => {
  const spec = { apiVersion: "v1", kind: "Pod", namespace: "shop" };
  const specs = [
    spec,
    { ...spec, labelSelector: "app=web" },
    { ...spec, fieldSelector: "status.phase=Failed" },
    { ...spec, representation: "metadata" as const },
  ];
  const metrics = new Metrics();
  for (const each of specs) {
    metrics.sources.listed(each, 1, 5);
    metrics.sources.received(each, "Added", 100);
  }
  const lines = (await page({ sources: () => specs.map((each) => ({ spec: each, state: "watching" })) }, metrics))
    .split("\n")
    .filter((line) => /^watchfire_(?:source|watch)/.test(line));
  const series = lines.map((line) => line.slice(0, line.lastIndexOf(" ")));
  expect(series.filter((each) => each.startsWith("watchfire_source_state"))).toHaveLength(specs.length);
  expect(new Set(series).size).toBe(series.length);
});

it("the versions of the runtime and of Node are on the page", async () => {
  const [line = ""] = await shown(() => [], "watchfire_build_info");
  expect(line).toMatch(/^watchfire_build_info\{version="\d+\.\d+\.\d+[^"]*",node="\d+\.\d+\.\d+"\} 1$/);
});
