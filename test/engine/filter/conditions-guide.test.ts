import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { libraries } from "../../../runtime/cel/functions.ts";
import { expressionLimit, Meter, triggerLimit } from "../../../runtime/cel/meter.ts";
import { checkExpression } from "../../../runtime/engine/filter/check-expression.ts";
import { Expression } from "../../../runtime/engine/filter/expression.ts";
import { longestExpression } from "../../../runtime/manifest/condition-limits.ts";

/** The page for authors, then the reference. */
const guide = ["conditions.md", "cel.md"]
  .map((page) => readFileSync(resolve(import.meta.dirname, "../../../runtime/docs", page), "utf8"))
  .join("\n");
const blocks = (language: string): string[] =>
  [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, text = ""]) => text);

it("every expression of the guide to conditions holds for its object", () => {
  const object = JSON.parse(blocks("json")[0] ?? "");
  const expressions = blocks("cel").flatMap((block) => block.trim().split("\n"));
  expect(expressions.length).toBeGreaterThan(20);
  const outcomes = expressions.map((text) => [
    text,
    new Expression(text).evaluate(new Meter(20_000), object, () => null),
  ]);
  expect(outcomes).toEqual(expressions.map((text) => [text, { type: "holds" }]));
});

it("every condition of its manifest compiles", () => {
  const { matchConditions } = parse(blocks("yaml")[0] ?? "");
  for (const { expression } of matchConditions) expect(checkExpression(expression)).toBeUndefined();
});

it("it names every function that there is, and no limit but the one in force", () => {
  const names = libraries.flatMap(({ functions }) =>
    functions.map(([signature]) => /(\w+)\(/.exec(signature)?.[1] ?? ""),
  );
  const parts = /^get(?:Date|DayOf|FullYear|Milliseconds|Minutes|Month|Seconds)|^(?:bool|bytes|double|uint)$|Prefix$/;
  expect([...new Set(names)].filter((name) => !parts.test(name) && !guide.includes(name))).toEqual([]);
  for (const limit of [expressionLimit, triggerLimit, longestExpression])
    expect(guide).toContain(limit.toLocaleString("en"));
});

it("what it says is missing is refused", () => {
  for (const expression of [
    "authorizer.group('').allowed()",
    "[?object.x] == []",
    "{object.x: 1} == {}",
    "math.least(1, 2) == 1",
  ]) {
    expect(checkExpression(expression)).toBeDefined();
  }
});
