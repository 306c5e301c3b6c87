import { expect, test } from "vitest";
import { checkExpression } from "../../../runtime/engine/filter/check-expression.ts";
import { compileBudget } from "../../../runtime/manifest/condition-limits.ts";
import { ruleFaults } from "../../../runtime/manifest/rules.ts";

/** A manifest's raw document, with these conditions in each of its triggers. */
const manifest = (triggers: number, expressions: readonly string[]) => ({
  spec: {
    triggers: Array.from({ length: triggers }, (_, index) => ({
      name: `t${index}`,
      watch: {
        apiVersion: "v1",
        kind: "ConfigMap",
        matchConditions: expressions.map((expression, at) => ({ name: `c${at}`, expression })),
      },
    })),
  },
});

const faultsOf = (document: object) => [...ruleFaults(document, checkExpression)].map(({ what }) => what);

/** RE2JS compiles this one in 20 ms. */
const slow = "object.metadata.name.matches('(?i)[\\\\pL\\\\pN\\\\pS\\\\pP]{1,990}')";

test("the patterns of one manifest are bounded together, before they are compiled", () => {
  const began = performance.now();
  const faults = faultsOf(manifest(100, Array(60).fill(slow)));
  expect(faults).toEqual(["the patterns of one manifest unfold to more than 10000 instructions of RE2 together"]);
  // All of them take two minutes.
  expect(performance.now() - began).toBeLessThan(20_000);
});

test("the expressions of one manifest are bounded together, before they are parsed", () => {
  const long = `object.data.a == '${"x".repeat(4_000)}'`;
  const fitting = Math.floor(compileBudget().characters / long.length / 2);
  expect(faultsOf(manifest(2, Array(fitting).fill(long)))).toEqual([]);
  expect(faultsOf(manifest(3, Array(fitting).fill(long)))).toEqual([
    `the expressions of one manifest have more than ${compileBudget().characters} characters together`,
  ]);
});

test("each manifest has a budget of its own", () => {
  const most = manifest(1, Array(10).fill(slow));
  expect([faultsOf(most), faultsOf(most)]).toEqual([[], []]);
});
