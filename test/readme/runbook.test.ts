import { expect, it } from "vitest";
import { parse } from "yaml";
import { errorCodes } from "../../runtime/base/errors.ts";
import { reasons } from "../../runtime/control/function-status/reason.ts";
import { metricsOf } from "./metrics-table.ts";
import { read } from "./sections.ts";

const page = read("runtime/docs/runbook.md");
const errors = read("runtime/docs/runbook-errors.md");
const metrics = await metricsOf();

/** The rows of a section's table, as lists of cells. */
function rowsOf(section: string, text = page): string[][] {
  const part = text.split(`\n## ${section}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = part.split("\n").filter((line) => line.startsWith("| "));
  return rows
    .slice(2)
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").replaceAll("`", "")));
}

/** Rooms whose failures a developer sees before anything runs on a cluster. */
const beforehand = /^WF_(?:CLI|MANIFEST|BUNDLE|TYPES|FILTER|DEV)_/;

it("the runbook has a row for every code that a running system shows, and none for another", () => {
  const codes = Object.keys(errorCodes).filter((code) => !beforehand.test(code));
  expect(rowsOf("Errors", errors).map(([code]) => code)).toEqual(codes);
});

it("it has a row for every reason that /status gives", () => {
  expect(
    rowsOf("Reasons")
      .map(([reason]) => reason)
      .sort(),
  ).toEqual(reasons.toSorted());
});

it("it says of every alert what it means, what to look at and what to do", () => {
  const [rules = ""] = /(?<=```yaml\n)[\s\S]*?(?=```)/.exec(page) ?? [];
  const alerts = parse(rules).groups.flatMap((group: { rules: { alert: string }[] }) => group.rules);
  expect(rowsOf("Alerts").map(([alert]) => alert)).toEqual(alerts.map(({ alert }: { alert: string }) => alert));
  for (const row of rowsOf("Alerts")) for (const cell of row) expect(cell, row[0]).not.toBe("");
});

it("its alerts are those of the chart, for the series of every release", () => {
  const [yaml = ""] = /(?<=```yaml\n)[\s\S]*?(?=```)/.exec(page) ?? [];
  const unselected = (expr: string) => expr.replaceAll("{$release}", "").replaceAll(",$release", "");
  const chart: { alert: string; expr: string; for?: string }[] = parse(read("deploy/chart/files/alerts.yaml"));
  const rules = chart.map(({ alert, expr, for: time }) => ({
    alert,
    expr: unselected(expr),
    ...(time && { for: time }),
  }));
  expect(parse(yaml).groups[0].rules).toEqual(rules);
});

it("it names no metric and no label's value that is not there", () => {
  const known = new Set(metrics.map(({ name }) => name));
  const named = [...`${page}${errors}`.matchAll(/watchfire_\w*[a-z]/g)].map(([name]) => name);
  expect(
    [...new Set(named)].filter((name) => !known.has(name) && !/^watchfire_(?:process|nodejs|user)$/.test(name)),
  ).toEqual([]);
  const states = read("runtime/informer/fanout/observer.ts");
  for (const state of ["backoff", "forbidden", "missing", "degraded"]) expect(states).toContain(`| "${state}"`);
});
