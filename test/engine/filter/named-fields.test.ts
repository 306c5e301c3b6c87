import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expressionLimit, Meter } from "../../../runtime/cel/meter.ts";
import { type ConditionError, MatchConditions } from "../../../runtime/engine/filter/conditions.ts";
import { parseValues } from "../../../runtime/engine/filter/exact-json.ts";
import { Expression } from "../../../runtime/engine/filter/expression.ts";
import type { ObjectText } from "../../../runtime/engine/filter/raw-fields.ts";
import { ObjectScanner } from "../../../runtime/informer/scan/object-scan.ts";
import { jsonTexts } from "./json-texts.ts";

/** Each reads the object and its previous state in a different way. */
const expressions = [
  "object.a == 1",
  "object.a == 'x'",
  "'a' == object.b.a && object.a == 1",
  "has(object.a.b) && object.a.b != null",
  "!has(object.b) || type(object.b) == map && object.b.size() > 1",
  "object.b.a.a.b.a == 'x'",
  "object.?b.?a.orValue(2) == 2",
  "object['ü'].a == object.a",
  'object[?"0"].hasValue()',
  "object.b.exists(k, k == 'a')",
  "object.b.all(object, object == 'a')",
  "object.__proto__.a == 1 || has(object.b.__proto__)",
  "object.a[0] == 1",
  "object.b['a'][object.a] == 1",
  "'a' in object.b && object.b.a == object['b']['a']",
  "object == oldObject",
  "object.size() == 2",
  "oldObject == null || object.a != oldObject.a",
  "has(oldObject.b.a) && oldObject.b.a == object.b.b",
  "true",
];

/** As many names as one object is searched for, and more. */
const many = Array.from({ length: 20 }, (_, index) => `has(object.b.n${index})`).join(" || ");

function verdict(texts: readonly string[], object: string, old: string | undefined) {
  const conditions = new MatchConditions(texts.map((expression, index) => ({ name: `c${index}`, expression })));
  const oldBody = old === undefined ? "none" : Buffer.from(old);
  const judge = (text: ObjectText) => {
    const told: ConditionError[] = [];
    const refusal = conditions.refusal(text, oldBody, { onError: (error) => told.push(error) });
    const plain = conditions.plainRefusal(text);
    if (plain) expect(refusal).toBe(plain);
    return { holds: refusal === undefined, told };
  };
  const body = Buffer.from(object);
  const scanner = new ObjectScanner();
  scanner.scan(body, 0, body.length);
  const verdict = judge({ body });
  // A separate buffer, because the same one would be read only once.
  expect(judge({ body: Buffer.from(object), members: scanner.members(0) })).toEqual(verdict);
  return verdict;
}

/** Returns the outcome of one expression on both whole objects. */
function outcome(text: string, object: string, old: string | undefined) {
  const meter = new Meter(expressionLimit);
  return new Expression(text).evaluate(meter, parseValues(object), () => (old === undefined ? null : parseValues(old)));
}

describe("the fields that conditions name", () => {
  it("give every condition the outcome that the whole objects give it, whatever other conditions name", () => {
    const chosen = fc.uniqueArray(fc.constantFrom(...expressions, many), { minLength: 1, maxLength: 3 });
    const isObject = (json: string) => json.startsWith("{");
    const objects = jsonTexts.filter(isObject);
    // A partially stored object would be uncertain if it has no value.
    const olds = fc.option(
      objects.map((json) => json.replace("{", '{"spec":1,').replace(",  }", "}")),
      { nil: undefined },
    );
    fc.assert(
      fc.property(chosen, objects, olds, (texts, object, old) => {
        const outcomes = texts.map((text) => outcome(text, object, old));
        const { holds, told } = verdict(texts, object, old);
        expect(holds).toBe(outcomes.every(({ type }) => type === "holds"));
        if (outcomes.some(({ type }) => type === "fails")) return;
        const messages = outcomes.flatMap((each) => ("message" in each ? [each.message] : []));
        expect(told.map(({ message }) => message)).toEqual(messages);
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ["object.a.b == 'x' && object.c > 1", true],
    ["'x' == object.a.b", true],
    ["object.a.b == 'y'", false],
    ["object.a.c == 'x'", false],
    ["object.a == 'x'", false],
    ["object.c > 1 && object.a.b == 'x'", false],
    ["object.a.b == 'x' || object.c > 1", false],
  ])("that are texts other than %s asks for are seen by a quick look: %s", (expression, isSeen) => {
    const conditions = new MatchConditions([{ name: "c", expression }]);
    const refusal = conditions.plainRefusal({ body: Buffer.from('{"a":{"b":"y"},"c":2}') });
    expect(refusal).toEqual(isSeen ? { type: "condition", condition: "c" } : undefined);
  });

  it("are all that is parsed", () => {
    const body = (secret: string) =>
      JSON.stringify({ metadata: { name: "x", labels: { app: "web" } }, spec: { n: 1, secret }, status: { secret } });
    const parsed: string[] = [];
    const { parse } = JSON;
    JSON.parse = (text: string) => {
      parsed.push(text);
      return parse(text);
    };
    try {
      const texts = ["object.metadata.labels.app == 'web'", "has(object.spec.n)", "object.spec.n == oldObject.spec.n"];
      expect(verdict(texts, body("new"), body("old")).holds).toBe(true);
    } finally {
      JSON.parse = parse;
    }
    const [first, old] = ['{"metadata":{"labels":{"app":"web"}},"spec":{"n":1}}', '{"spec":{"n":1}}'];
    expect(parsed).toEqual([first, old, first, old]);
  });
});
