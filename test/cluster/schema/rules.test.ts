import { describe, expect, it } from "vitest";
import { fieldErrorText, type Json, type JsonObject, validate } from "../../../runtime/cluster/schema/index.ts";
import { schemaOf, structural, widgetOf } from "./widget.ts";

/** The violations of `spec.value` under its type and one rule. */
function broken(type: JsonObject, rule: JsonObject, value: Json, old?: Json): string[] {
  const schema = structural(schemaOf({ ...type, "x-kubernetes-validations": [rule] }));
  return validate(schema, widgetOf({ value }), old === undefined ? undefined : widgetOf({ value: old })).map(
    fieldErrorText,
  );
}
const int: JsonObject = { type: "integer" };
const string: JsonObject = { type: "string", maxLength: 50 };
const range: JsonObject = { type: "object", properties: { min: int, max: int } };

describe("rules in CEL", () => {
  it("break with their message, or with themselves", () => {
    expect(broken(int, { rule: "self > 1", message: "too small" }, 1)).toEqual([
      "spec.value: Invalid value: 1: too small",
    ]);
    expect(broken(int, { rule: "self > 1" }, 1)).toEqual(["spec.value: Invalid value: 1: failed rule: self > 1"]);
    expect(broken(int, { rule: "self > 1" }, 2)).toEqual([]);
  });

  it("say why by messageExpression, reason and fieldPath", () => {
    expect(
      broken(string, { rule: "self != 'x'", messageExpression: "'not ' + self", reason: "FieldValueForbidden" }, "x"),
    ).toEqual(["spec.value: Forbidden: not x"]);
    expect(
      broken(range, { rule: "self.min < self.max", message: "min < max", fieldPath: ".min" }, { min: 2, max: 1 }),
    ).toEqual(["spec.value.min: Invalid value: min < max"]);
  });

  it("that read oldSelf run only on updates", () => {
    const rule = { rule: "self == oldSelf", message: "immutable" };
    expect(broken(string, rule, "a")).toEqual([]);
    expect(broken(string, rule, "a", "a")).toEqual([]);
    expect(broken(string, rule, "b", "a")).toEqual(['spec.value: Invalid value: "b": immutable']);
  });

  it("with optionalOldSelf run on creation, too", () => {
    const rule = { rule: "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", optionalOldSelf: true };
    expect(broken(int, rule, 0)).toEqual([]);
    expect(broken(int, rule, 1)).toHaveLength(1);
    expect(broken(int, rule, 2, 1)).toEqual([]);
    expect(broken(int, rule, 1, 2)).toHaveLength(1);
  });

  it("compare an item of a list that is a map with the stored item of its key", () => {
    const items = {
      type: "object",
      required: ["n"],
      properties: { n: { type: "string" }, v: { ...int, "x-kubernetes-validations": [{ rule: "self >= oldSelf" }] } },
    };
    const schema = structural(
      schemaOf({ type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], items }),
    );
    const old = widgetOf({
      value: [
        { n: "a", v: 5 },
        { n: "b", v: 1 },
      ],
    });
    const now = widgetOf({
      value: [
        { n: "b", v: 2 },
        { n: "a", v: 4 },
      ],
    });
    expect(validate(schema, now, old).map(({ path }) => path)).toEqual(["spec.value[1].v"]);
  });

  it.each<[string, JsonObject, Json, boolean]>([
    ["self < timestamp('2026-01-01T00:00:00Z')", { type: "string", format: "date-time" }, "2025-12-31T23:59:59Z", true],
    ["self <= duration('90s')", { type: "string", format: "duration" }, "2m", false],
    ["quantity(self).isLessThan(quantity('1Gi'))", string, "900Mi", true],
    ["quantity(self).compareTo(quantity('1')) == 0", string, "1000m", true],
    ["self.all(k, self[k] > 0)", { type: "object", additionalProperties: int }, { "a/b": 1, c: 0 }, false],
    ["self.isSorted() && self.sum() == 6", { type: "array", items: int }, [1, 2, 3], true],
    ["self.min() == 1 && self.max() == 3", { type: "array", items: int }, [3, 1], true],
    [
      "has(self.__namespace__) && self.a__dash__b == 1",
      { type: "object", properties: { namespace: string, "a-b": int } },
      { namespace: "x", "a-b": 1 },
      true,
    ],
    ["url(self).getHost() == 'a.b:80' && isURL(self)", string, "http://a.b:80/x", true],
    ["url(self).getHostname() == 'a.b'", string, "http://a.b/x", true],
    ["self.find('[0-9]+') == '12'", string, "a12", true],
    ["self.max - self.min == 1", range, { min: 1, max: 2 }, true],
    ["type(self) == int || self == 'http'", { "x-kubernetes-int-or-string": true }, "http", true],
    ["self / 2 == 1", int, 3, true],
    ["self / 2.0 == 1.5", { type: "number" }, 3, true],
  ])("%s of %j", (rule, type, value, holds) => {
    expect(broken(type, { rule }, value).length === 0).toBe(holds);
  });

  it("that fail to run break, and say at what", () => {
    expect(broken(range, { rule: "self.min < self.max" }, { min: 1 })).toEqual([
      'spec.value: Invalid value: "object": no such key: max evaluating rule: self.min < self.max',
    ]);
  });

  it("of a whole resource see of its metadata the name alone", () => {
    const source = {
      ...schemaOf(int),
      "x-kubernetes-validations": [{ rule: "self.metadata.name == 'w'", message: "name" }],
    };
    const schema = structural(source);
    expect(validate(schema, widgetOf({ value: 1 }))).toEqual([]);
    expect(validate(schema, { ...widgetOf({}), metadata: { name: "x" } }).map(fieldErrorText)).toEqual([
      "<nil>: Invalid value: name",
    ]);
  });

  it("are not run on an object whose shape is wrong", () => {
    const [type, unchecked, ...more] = broken(int, { rule: "self > 1" }, "x");
    expect(type).toContain("must be of type integer");
    expect(unchecked).toMatch(/^<nil>: .*some validation rules were not checked/);
    expect(more).toEqual([]);
  });
});
