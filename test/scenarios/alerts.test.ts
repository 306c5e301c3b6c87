// Checks the alert rules of the runbook against the metrics of a healthy runtime.
import { expect, test } from "vitest";
import { parse } from "yaml";
import { read } from "../readme/sections.ts";
import { createTeam, install } from "./cluster.ts";

const [yaml = ""] = /(?<=```yaml\n)[\s\S]*?(?=```)/.exec(read("runtime/docs/runbook.md")) ?? [];
const rules: readonly { alert: string; expr: string }[] = parse(yaml).groups.flatMap(
  (group: { rules: object[] }) => group.rules,
);

/** The matchers between the braces of a selector; empty without braces. */
const matchersOf = (selector = "") => [...selector.matchAll(/(\w+)(=~?)"([^"]*)"/g)];

/** True if a line of the metrics page has this name, and labels that match the selector. */
function isSelected(line: string, name: string, selector: string | undefined): boolean {
  const [, found, labels = ""] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
  if (found !== name) return false;
  return matchersOf(selector).every(([, label, , pattern]) => new RegExp(`${label}="(?:${pattern})"`).test(labels));
}

test("each counter that a rule asks the increase of begins at 0 in a quiet runtime, and each gauge is on its page", async () => {
  const team = await createTeam();
  const runtime = await install();
  const condition = { name: "large", expression: "int(object.data.v) > 1000" };
  const watch = { ...team.watch(), matchConditions: [condition] };
  await runtime.define("follower", { watch, spec: { delivery: { onFailure: "Drop" } } });
  await runtime.define("latest", { watch: team.watch(), spec: { delivery: { mode: "Latest" } } });
  await runtime.start();
  const lines = (await (await fetch(`${runtime.url}/metrics`)).text()).split("\n");
  for (const { alert, expr } of rules) {
    const counters = [...expr.matchAll(/increase\((watchfire_\w+)(\{[^}]*\})?\[/g)];
    for (const [, name = "", selector] of counters) {
      const found = lines.filter((line) => isSelected(line, name, selector));
      expect([found.length > 0, found.every((line) => line.endsWith(" 0"))], `${alert}: ${name}`).toEqual([true, true]);
    }
    for (const [name] of expr.matchAll(/watchfire_\w+/g)) expect(lines.join("\n"), alert).toContain(`# TYPE ${name} `);
  }
  const dropped = lines.filter((line) => line.includes('outcome="dropped"'));
  expect(dropped.map((line) => /function="(\w+)".*type="(\w+)"/.exec(line)?.slice(1).join(" "))).toEqual(
    expect.arrayContaining(["follower Added", "follower Modified", "follower Deleted", "latest Modified"]),
  );
});

test("that no replica can be scraped alerts as well as that none works", () => {
  expect(rules.find(({ alert }) => alert === "WatchfireNoLeader")?.expr).toContain("or absent(watchfire_leader)");
});
