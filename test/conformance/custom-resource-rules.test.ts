import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { type Definition, defineWidgets, widgetDefinition } from "../target/crd.ts";
import { admin, unique } from "../target/fixture.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const linesOf = (file: string): readonly string[] =>
  readFileSync(new URL(file, import.meta.url), "utf8")
    .trim()
    .split("\n");

const string = (maxLength: number) => ({ type: "string", maxLength });
const integer = { type: "integer" };
const list = (items: object, maxItems = 50) => ({ type: "array", maxItems, items });

/** `self` in the rules of `rules.txt`. */
const properties = {
  s: string(60),
  s2: string(300),
  us: { type: "string" },
  n: integer,
  d: { type: "number" },
  b: { type: "boolean" },
  l: list({
    type: "object",
    properties: { a: string(20), n: integer, k: list({ type: "object", properties: { z: string(90) } }, 30) },
  }),
  sl: list(string(20)),
  il: list(integer),
  set: { ...list(string(20), 40), "x-kubernetes-list-type": "set" },
  m: { type: "object", maxProperties: 50, additionalProperties: string(20) },
  mo: {
    type: "object",
    maxProperties: 50,
    additionalProperties: { type: "object", properties: { p: string(9) } },
  },
  q: { "x-kubernetes-int-or-string": true, maxLength: 20 },
  t: { type: "string", format: "date-time" },
  u: { type: "string", format: "duration" },
  namespace: string(60),
  "a-b": string(9),
  o: { type: "object", properties: { p: string(9), l: list(string(5), 7) } },
  by: { type: "string", format: "byte", maxLength: 40 },
  e: { type: "string", enum: ["abc", "defgh"] },
};

/**
 * A rule, and the answer to a definition with it: accepted, refused, or the factor by which it exceeds the cost limit.
 */
interface RuleCase {
  readonly answer: string;
  readonly rule: string;
}

const cases = linesOf("rules.txt").map((line): RuleCase => {
  const [, answer, rule] = /^(taken|refused|more than 100x|[\d.]+x) +(.*)$/.exec(line) ?? [];
  if (answer === undefined || rule === undefined) throw new Error(`no case: ${line}`);
  return { answer, rule };
});

/**
 * A property with a rule, its value and its previous value. `answer`: the rule holds, is broken, or is broken with these causes.
 */
interface ValueCase {
  readonly schema: object;
  readonly rule: object & { readonly rule: string };
  readonly value: unknown;
  readonly old?: unknown;
  readonly answer: string;
}

const values = linesOf("rule-values.jsonl").map((line): ValueCase => JSON.parse(line));

/** A version whose spec has these properties. */
const version = (spec: object) => ({
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
});

/**
 * The answer to a definition whose list of 200,000 items has the rule on each item, so that a unit of its cost is a fiftieth of
 * the budget.
 */
const answerTo = (rule: string): Promise<string> =>
  answerToSchema(list({ type: "object", properties, "x-kubernetes-validations": [{ rule }] }, 200_000));

async function answerToSchema(schema: object): Promise<string> {
  const spec = { type: "object", properties: { value: schema } };
  const body = widgetDefinition(`${unique("g")}.my.domain`, { versions: [version(spec)] });
  const { status, body: answer } = await admin.reply("POST", definitions, { body, query: { dryRun: "All" } });
  if (status === 201) return "taken";
  expect(status, answer.message).toBe(422);
  const [, factor] = /rule cost exceeds budget by factor of (more than 100x|[\d.]+x)/.exec(answer.message) ?? [];
  return factor ?? "refused";
}

const size = 50;
const partsOf = (all: readonly unknown[]): readonly number[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => index * size);

describe("a rule of a custom resource", () => {
  test.each(partsOf(cases))("is taken, or refused for what it says or costs (from line %i on)", async (from) => {
    const part = cases.slice(from, from + size);
    const answers = await Promise.all(
      part.map(async ({ rule, answer }) => ({ rule, answer, found: await answerTo(rule) })),
    );
    expect(answers.filter(({ answer, found }) => answer !== found)).toEqual([]);
  });
});

test.each([" || ", " && "])("a rule of a custom resource may be a long chain of%sand a long list", async (operator) => {
  const chain = Array.from({ length: 400 }, (_, index) => `self == 'a${index}'`).join(operator);
  const items = Array.from({ length: 1500 }, (_, index) => `'a${index}'`).join();
  const rules = [{ rule: chain }, { rule: `self in [${items}]` }];
  expect(await answerToSchema({ type: "string", maxLength: 9, "x-kubernetes-validations": rules })).toBe("taken");
});

describe("a pattern of a custom resource", () => {
  test.each([
    ["^(?i)(abort|warn)?$", "taken"],
    ["^(?P<name>[[:alpha:]]+)\\z", "taken"],
    ["^(?:[^:]+|\\pL{1,3}?)$", "taken"],
    ["^[a-z]{1,1000}$", "taken"],
    ["^[a-z]{1,1001}$", "refused"],
    ["a(?=b)", "refused"],
    ["(a)\\1", "refused"],
    ["[z-a]", "refused"],
    ["a**", "refused"],
  ])("%s is %s", async (pattern, answer) => {
    expect(await answerToSchema({ type: "string", pattern })).toBe(answer);
  });
});

describe("the rules of a custom resource", () => {
  const one = { type: "string", maxLength: 5, "x-kubernetes-validations": [{ rule: "self.matches('^[a-z]+$')" }] };
  /**
   * Each property's rule costs 7 for each of 1,200,000 items: 8.4 of the 100 million allowed for all rules together.
   */
  const objectOf = (count: number) => ({
    type: "object",
    properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, list(one, 1_200_000)])),
  });
  test.each<[string, object, string]>([
    ["cost what a bounded list allows", list(list(one, 1000), 1000), "taken"],
    ["cost what fits into a request, where a list has no bound", { type: "array", items: one }, "taken"],
    ["cost too much together", objectOf(12), "refused"],
    ["cost as much as they may together", objectOf(11), "taken"],
    [
      "have messages with a cost",
      { type: "string", "x-kubernetes-validations": [{ rule: "true", messageExpression: "'a'.replace('a', self)" }] },
      "taken",
    ],
    [
      "read no oldSelf of a list's items",
      list({ ...one, "x-kubernetes-validations": [{ rule: "self == oldSelf" }] }),
      "refused",
    ],
    [
      "are not told that oldSelf is optional where none reads it",
      { ...one, "x-kubernetes-validations": [{ rule: "self == 'a'", optionalOldSelf: true }] },
      "refused",
    ],
  ])("%s", async (_, schema, answer) => {
    expect(await answerToSchema(schema)).toBe(answer);
  });
});

describe("a rule of a custom resource, over a value and the one before,", () => {
  const nameOf = (index: number): string => `p${index}`;
  let widgets: Definition;
  beforeAll(async () => {
    const all = values.map(({ schema, rule }, index) => [
      nameOf(index),
      { ...schema, "x-kubernetes-validations": [rule] },
    ]);
    const spec = { type: "object", properties: Object.fromEntries(all) };
    widgets = await defineWidgets({ scope: "Cluster", versions: [version(spec)] });
  });

  async function answerTo({ value, old }: ValueCase, index: number): Promise<string> {
    const path = `/apis/${widgets.apiVersion}/widgets`;
    const widget = (own: unknown) => ({
      ...widgets.widget(`w${index}`, { [nameOf(index)]: own }),
    });
    const query = { dryRun: "All" };
    const stored = old === undefined ? undefined : await admin.post(path, widget(old));
    const { status, body } = stored
      ? await admin.reply("PUT", `${path}/w${index}`, {
          body: { ...widget(value), metadata: { name: `w${index}`, resourceVersion: stored.metadata.resourceVersion } },
          query,
        })
      : await admin.reply("POST", path, { body: widget(value), query });
    if (status < 300) return "holds";
    const causes: { readonly field: string; readonly message: string }[] = body.details?.causes ?? [];
    const all = causes.map(({ field, message }) => `${field}: ${message}`).join(" | ");
    return all.replaceAll(`spec.${nameOf(index)}`, "spec.v");
  }

  test.each(partsOf(values))("holds or breaks, and says why (from line %i on)", async (from) => {
    const part = values.slice(from, from + size);
    const answers = await Promise.all(
      part.map(async (each, index) => ({ ...each, found: await answerTo(each, from + index) })),
    );
    const isSame = (answer: string, found: string) => (answer === "breaks" ? found !== "holds" : answer === found);
    expect(answers.filter(({ answer, found }) => !isSame(answer, found))).toEqual([]);
  });
});
