import { describe, expect, it } from "vitest";
import { fieldErrorText, type JsonObject, structuralSchema } from "../../../runtime/cluster/schema/index.ts";
import { schemaOf } from "./widget.ts";

const root = "spec.validation.openAPIV3Schema";
const at = `${root}.properties[spec].properties[value]`;
const faults = (schema: JsonObject): string[] => (structuralSchema(schema).errors ?? []).map(fieldErrorText);

const string = { type: "string" };
const rule = (...rules: JsonObject[]): JsonObject => ({ type: "integer", "x-kubernetes-validations": rules });

describe("a CRD's schema", () => {
  it.each<[string, JsonObject, string]>([
    ["a field without a type", {}, `${at}.type: Required value: must not be empty for specified object fields`],
    ["a reference", { $ref: "#/x" }, `${at}.$ref: Forbidden: $ref is not supported`],
    ["an array without items", { type: "array" }, `${at}.items: Required value: must be specified`],
    [
      "properties beside additionalProperties",
      { type: "object", properties: { a: string }, additionalProperties: string },
      `${at}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
    ],
    [
      "a type inside anyOf",
      { type: "object", anyOf: [{ type: "object" }] },
      `${at}.anyOf[0].type: Forbidden: must be empty to be structural`,
    ],
    [
      "preserve-unknown-fields: false",
      { type: "object", "x-kubernetes-preserve-unknown-fields": false },
      `${at}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`,
    ],
    [
      "a list that is a map without keys",
      { type: "array", "x-kubernetes-list-type": "map", items: { type: "object", properties: { a: string } } },
      `${at}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
    ],
    [
      "a key that an item may lack",
      {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: { type: "object", properties: { a: string } },
      },
      `${at}.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
    [
      "a default of the wrong type",
      { type: "string", default: 1 },
      `${at}.default: Invalid value: "integer":  in body must be of type string: "integer"`,
    ],
    [
      "a default with an unknown field",
      { type: "object", properties: { a: string }, default: { b: 1 } },
      `${at}.default: Invalid value: {"b":1}: must not have unknown fields`,
    ],
    [
      "a pattern that Go does not compile",
      { type: "string", pattern: "(?=a)" },
      `${at}.pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: \`(?=\``,
    ],
    [
      "an empty rule",
      rule({ rule: " " }),
      `${at}.x-kubernetes-validations[0].rule: Required value: rule is not specified`,
    ],
    [
      "a message of several lines",
      rule({ rule: "true", message: "a\nb" }),
      `${at}.x-kubernetes-validations[0].message: Invalid value: "a\\nb": must not contain line breaks`,
    ],
    [
      "optionalOldSelf without oldSelf",
      rule({ rule: "self > 1", optionalOldSelf: true }),
      `${at}.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
    ],
    [
      "a transition rule where items cannot be told apart",
      { type: "array", items: rule({ rule: "self >= oldSelf" }) },
      `${at}.items.x-kubernetes-validations[0].rule: Invalid value: "self >= oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within ${at}`,
    ],
  ])("with %s is refused in the API server's words", (_, value, text) => {
    expect(faults(schemaOf(value))).toEqual([text]);
  });

  it.each<[string, JsonObject, string]>([
    ["a syntax error", rule({ rule: "self >" }), "<input>:1:7: Syntax error"],
    ["an unknown variable", rule({ rule: "foo > 1" }), "<input>:1:1: undeclared reference to 'foo'"],
    [
      "a field that the schema does not declare",
      { type: "object", properties: { a: string }, "x-kubernetes-validations": [{ rule: "self.b == 'x'" }] },
      "<input>:1:5: undefined field 'b'",
    ],
    [
      "values of types that do not compare",
      { type: "object", properties: { a: string }, "x-kubernetes-validations": [{ rule: "self.a == 1" }] },
      "<input>:1:8: found no matching overload for '_==_' applied to '(string, int)'",
    ],
    ["a result that is no bool", rule({ rule: "self + 1" }), "cel expression must evaluate to a bool"],
    [
      "a message that is no string",
      rule({ rule: "true", messageExpression: "self" }),
      "messageExpression must evaluate to a string",
    ],
  ])("with a rule with %s is refused, and says where", (_, value, text) => {
    const [fault = "", ...more] = faults(schemaOf(value));
    expect(fault).toContain(text);
    expect(more).toEqual([]);
  });

  it.each<[string, JsonObject]>([
    [
      "an int-or-string that names its types",
      { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
    ],
    ["a field of any type", { "x-kubernetes-preserve-unknown-fields": true }],
    ["an enum of other types, a required field nobody declares", { type: "object", required: ["zz"], enum: [1] }],
    [
      "rules over times, maps, lists and int-or-string",
      {
        type: "object",
        properties: {
          at: { type: "string", format: "date-time" },
          map: { type: "object", maxProperties: 100, additionalProperties: { type: "integer" } },
          list: {
            type: "array",
            maxItems: 100,
            items: { type: "object", properties: { n: { ...string, maxLength: 50 } } },
          },
          port: { "x-kubernetes-int-or-string": true },
        },
        "x-kubernetes-validations": [
          { rule: "self.at > timestamp('2020-01-01T00:00:00Z') && self.map.all(k, self.map[k] > 0)" },
          { rule: "self.list.exists(x, x.n == 'a') || !has(self.port) || string(self.port) == 'x'" },
          { rule: "self.list.map(x, x.n).size() > 0 && quantity('1').isInteger()" },
        ],
      },
    ],
  ])("with %s is taken", (_, value) => {
    expect(faults(schemaOf(value))).toEqual([]);
  });

  it("is of an object, and says of metadata no more than the names", () => {
    expect(faults({})).toEqual([`${root}.type: Required value: must not be empty at the root`]);
    expect(faults({ type: "array", items: string })).toContain(
      `${root}.type: Invalid value: "array": must be object at the root`,
    );
    const labels = {
      type: "object",
      properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } },
    };
    expect(faults(labels)).toEqual([
      `${root}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
    ]);
  });

  it("is named by where it is", () => {
    const { errors } = structuralSchema({}, "spec.versions[1].schema.openAPIV3Schema");
    expect(errors?.map(({ path }) => path)).toEqual(["spec.versions[1].schema.openAPIV3Schema.type"]);
  });
});
