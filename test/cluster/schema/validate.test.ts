import { describe, expect, it } from "vitest";
import {
  builtInSchema,
  fieldErrorText,
  invalidMessage,
  type JsonObject,
  validate,
} from "../../../runtime/cluster/schema/index.ts";
import { schemaOf, structural, widget, widgetOf } from "./widget.ts";

const faults = (spec: JsonObject, old?: JsonObject): string[] =>
  validate(widget, widgetOf({ name: "a", ...spec }), old && widgetOf({ name: "a", ...old })).map(fieldErrorText);

/** The faults of `spec.value` under the keywords. */
const valueFaults = (keywords: JsonObject, value: JsonObject[string]): string[] =>
  validate(structural(schemaOf(keywords)), widgetOf({ value })).map(fieldErrorText);

describe("validation of custom resources", () => {
  it("finds nothing in an object that the schema allows", () => {
    const ports = [{ name: "p", number: 1, protocol: "TCP" }];
    expect(faults({ replicas: 10, port: "http", mode: "A", note: null, since: "2026-01-02T03:04:05Z", ports })).toEqual(
      [],
    );
  });

  it.each<[string, JsonObject, string]>([
    [
      "a wrong type",
      { replicas: "3" },
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
    ],
    [
      "a fraction for an int-or-string",
      { port: 1.5 },
      'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
    ],
    [
      "a value beyond its bounds",
      { replicas: 11 },
      "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
    ],
    ["a short string", { name: "" }, 'spec.name: Invalid value: "": spec.name in body should be at least 1 chars long'],
    ["a long string", { name: "abcdefghijk" }, "spec.name: Too long: may not be more than 10 bytes"],
    ["a pattern", { name: "A" }, "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]*$'"],
    ["an enum", { mode: "C" }, 'spec.mode: Unsupported value: "C": supported values: "A", "B"'],
    [
      "a format",
      { since: "today" },
      'spec.since: Invalid value: "today": spec.since in body must be of type date-time: "today"',
    ],
    [
      "a null that is not allowed in a list",
      { plain: [null] },
      'spec.plain[0]: Invalid value: "null": spec.plain[0] in body must be of type string: "null"',
    ],
    ["a long list", { tags: ["a", "b", "c", "d"] }, "spec.tags: Too many: 4: must have at most 3 items"],
    ["a value twice in a set", { tags: ["a", "b", "a"] }, 'spec.tags[2]: Duplicate value: "a"'],
    [
      "a key twice in a list that is a map",
      { ports: [{ name: "p" }, { name: "p", number: 2 }] },
      'spec.ports[1]: Duplicate value: {"name":"p"}',
    ],
    ["an embedded resource without a kind", { child: { apiVersion: "v1" } }, "spec.child.kind: Required value"],
  ])("tells of %s in the API server's words", (_, spec, text) => {
    expect(faults(spec)).toEqual([text]);
  });

  it("tells of a required field that is absent", () => {
    expect(validate(widget, widgetOf({})).map(fieldErrorText)).toEqual(["spec.name: Required value"]);
  });

  it.each<[JsonObject, number, boolean]>([
    [{ oneOf: [{ minimum: 5 }, { maximum: 2 }] }, 3, false],
    [{ oneOf: [{ minimum: 5 }, { maximum: 2 }] }, 6, true],
    [{ oneOf: [{ minimum: 1 }, { maximum: 9 }] }, 5, false],
    [{ anyOf: [{ minimum: 1 }, { maximum: 9 }] }, 5, true],
    [{ anyOf: [{ minimum: 6 }, { maximum: 4 }] }, 5, false],
    [{ allOf: [{ minimum: 1 }, { maximum: 4 }] }, 5, false],
    [{ not: { enum: [5] } }, 5, false],
    [{ not: { enum: [5] } }, 6, true],
    [{ minimum: 5, exclusiveMinimum: true }, 5, false],
    [{ multipleOf: 3 }, 9, true],
    [{ multipleOf: 3 }, 10, false],
    [{ format: "int32" }, 2 ** 31, false],
    [{ format: "int64" }, 2 ** 31, true],
  ])("with %j takes %d: %s", (keywords, value, allowed) => {
    expect(valueFaults({ type: "integer", ...keywords }, value).length === 0).toBe(allowed);
  });

  it("allows what is stored and unchanged, though the schema forbids it now", () => {
    const old = { name: "a", mode: "OLD", plain: [] };
    expect(faults({ mode: "OLD", replicas: 2 }, old)).toEqual([]);
    expect(faults({ mode: "NEW" }, old)).toHaveLength(1);
  });

  it("joins several faults in one message, and one without brackets", () => {
    const errors = validate(widget, widgetOf({ mode: "C" }));
    expect(invalidMessage("Widget", "example.com", "w", errors)).toBe(
      'Widget.example.com "w" is invalid: [spec.mode: Unsupported value: "C": supported values: "A", "B", spec.name: Required value]',
    );
    expect(invalidMessage("Pod", "", "p", errors.slice(0, 1))).toMatch(/^Pod "p" is invalid: spec\.mode: /);
  });
});

describe("validation of built-in kinds", () => {
  const check = (group: string, version: string, kind: string, object: JsonObject): string[] => {
    const schema = builtInSchema(group, version, kind);
    return schema ? validate(schema, object).map((error) => `${error.type} ${error.path}`) : ["no schema"];
  };

  it("tells of wrong types and of what a kind cannot be without", () => {
    const container = { image: "i", env: [{ name: "A", value: 1 }] };
    expect(check("", "v1", "Pod", { spec: { containers: [container] } })).toEqual([
      "TypeInvalid spec.containers[0].env[0].value",
      "Required spec.containers[0].name",
    ]);
  });

  it("takes quantities, and ports by number or name", () => {
    const container = {
      name: "c",
      resources: { limits: { cpu: 1, memory: "1Gi" } },
      livenessProbe: { httpGet: { port: "http" } },
    };
    expect(check("", "v1", "Pod", { spec: { containers: [container] } })).toEqual([]);
  });

  it("asks for nothing that the API server's own clients leave out", () => {
    expect(check("authentication.k8s.io", "v1", "TokenRequest", { spec: {} })).toEqual([]);
    expect(check("apps", "v1", "DaemonSet", { spec: { selector: {}, template: {} }, status: {} })).toEqual([]);
  });
});
