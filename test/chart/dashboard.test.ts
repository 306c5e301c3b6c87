import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dashboard, metricOf, metricsIn } from "../../deploy/dashboard/dashboard.ts";
import { knownMetrics } from "../../deploy/dashboard/known-metrics.ts";
import type { Body } from "../target/client.ts";
import { chart, namespace, release, render, renderAs } from "./helm.ts";

const enabled = ["--set", "grafanaDashboard.enabled=true"];
const mapOf = (objects: readonly Body[]): Body | undefined =>
  objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name.endsWith("-dashboard"));
const jsonOf = (map: Body | undefined) => JSON.parse(String(Object.values(map?.data ?? {})[0]));

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}
const targetsOf = (board: { panels: { targets: Target[] }[] }) => board.panels.flatMap(({ targets }) => targets);

test("the chart's dashboard is what the script makes of the runtime's metrics", async () => {
  expect(JSON.parse(readFileSync(join(chart, "files/dashboard.json"), "utf8"))).toEqual(await dashboard());
});

test("no panel names a metric that the runtime does not have, and a panel may name each series of a histogram", async () => {
  const known = await knownMetrics();
  const board = JSON.parse(readFileSync(join(chart, "files/dashboard.json"), "utf8"));
  const named = targetsOf(board).flatMap(({ expr }) => metricsIn(expr));
  expect(named.filter((series) => !metricOf(series, known))).toEqual([]);
  expect(named.length).toBeGreaterThan(15);
  const has = (series: string) => metricOf(series, known) !== undefined;
  expect(["watchfire_event_wait_seconds_bucket", "watchfire_events_total", "watchfire_leader"].every(has)).toBe(true);
  expect(["watchfire_events_total_bucket", "watchfire_event_total", "watchfire_leader_sum"].some(has)).toBe(false);
});

test("each line's name has only labels that its query keeps", async () => {
  for (const { expr, legendFormat } of targetsOf(jsonOf(mapOf(await render(...enabled))))) {
    const [, by] = /\bby \(([\w, ]+)\)/.exec(expr) ?? [];
    const kept = by?.split(", ") ?? ["pod"];
    const used = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
    expect(
      used.filter((label) => !kept.includes(label ?? "")),
      expr,
    ).toEqual([]);
  }
});

test("each query selects the series of its release alone", async () => {
  const board = jsonOf(mapOf(await render(...enabled)));
  const selected = `job="${release}",namespace="${namespace}"}`;
  for (const { expr } of targetsOf(board)) {
    expect(expr).not.toContain("$release");
    expect(expr.split(selected)).toHaveLength(metricsIn(expr).length + 1);
  }
});

test("dashboards of two releases have two names, and the labels by which Grafana finds them", async () => {
  const [one, other] = [mapOf(await render(...enabled)), mapOf(await renderAs("second", ...enabled))];
  expect(one?.metadata.labels?.grafana_dashboard).toBe("1");
  for (const field of ["uid", "title"]) expect(jsonOf(one)[field]).not.toBe(jsonOf(other)[field]);
  expect(Object.keys(one?.data ?? {})).not.toEqual(Object.keys(other?.data ?? {}));
  expect(jsonOf(one).uid.length).toBeLessThanOrEqual(40);
});

test("without the value there is no dashboard", async () => {
  expect(mapOf(await render())).toBeUndefined();
});

test("panels do not overlap", async () => {
  const { panels } = jsonOf(mapOf(await render(...enabled)));
  const places = panels.map(({ gridPos: { x, y } }: { gridPos: { x: number; y: number } }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(panels.length);
});
