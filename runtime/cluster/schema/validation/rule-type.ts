import { type DeclaredType, reservedWords } from "@watchfire/cel";
import type { Json } from "../json.ts";
import type { Schema } from "../schema.ts";

/** The type that rules see, with the minimum size of a value as JSON, in bytes. */
export interface RuleType extends DeclaredType {
  readonly element?: RuleType;
  readonly fields?: ReadonlyMap<string, RuleType>;
  readonly leastBytes: number;
}

/** `MaxRequestSizeBytes` of Kubernetes: staging/src/k8s.io/apiserver/pkg/apis/cel/config.go. */
const mostBytes = 3 * 1024 * 1024;
/** Bytes of an empty string, list or object as JSON. */
const empty = 2;

/** Sizes of formatted strings: pkg/cel/limits.go of k8s.io/apiserver. */
const formats: ReadonlyMap<string, Pick<RuleType, "name" | "leastBytes" | "mostElements">> = new Map([
  ["duration", { name: "google.protobuf.Duration", leastBytes: 3, mostElements: 32 }],
  ["date", { name: "google.protobuf.Timestamp", leastBytes: 12, mostElements: 12 }],
  ["date-time", { name: "google.protobuf.Timestamp", leastBytes: 21, mostElements: 32 }],
]);

const plain: Readonly<Record<string, RuleType>> = {
  boolean: { name: "bool", leastBytes: 4, mostElements: 0 },
  integer: { name: "int", leastBytes: 1, mostElements: 0 },
  number: { name: "double", leastBytes: 1, mostElements: 0 },
};
const text: RuleType = { name: "string", leastBytes: empty, mostElements: mostBytes - empty };
const resourceFields: readonly (readonly [string, RuleType])[] = [
  ["apiVersion", text],
  ["kind", text],
  [
    "metadata",
    {
      name: "object",
      leastBytes: empty,
      mostElements: 0,
      fields: new Map([
        ["generateName", text],
        ["name", text],
      ]),
    },
  ],
];

const known = new WeakMap<Schema, RuleType>();

/**
 * The type of a schema's values in rules, with the sizes that the schema allows: `SchemaDeclType` in pkg/cel/common/schemas.go of
 * k8s.io/apiserver. `undefined` if rules cannot refer to such a value.
 * @param whole true if the schema is that of a whole resource, whose type and name every rule sees
 */
export function ruleType(
  schema: Schema,
  whole = schema["x-kubernetes-embedded-resource"] === true,
): RuleType | undefined {
  const found = known.get(schema);
  if (found) return found;
  const made = typeOf(schema, whole);
  if (made) known.set(schema, made);
  return made;
}

function typeOf(schema: Schema, whole: boolean): RuleType | undefined {
  const { maxLength } = schema;
  if (schema["x-kubernetes-int-or-string"]) {
    return { name: "dyn", leastBytes: 1, mostElements: maxLength === undefined ? text.mostElements : maxLength * 4 };
  }
  if (whole || schema.type === "object") return objectType(schema, whole);
  if (schema.type === "array") {
    const element = schema.items && ruleType(schema.items);
    const most = schema.maxItems ?? Math.floor((mostBytes - empty) / ((element?.leastBytes ?? 0) + 1));
    return element && { name: "list", element, leastBytes: empty, mostElements: Math.max(0, most) };
  }
  if (schema.type !== "string") return plain[schema.type ?? ""];
  const format = formats.get(schema.format ?? "");
  if (format) return format;
  if (schema.format === "byte") return { ...text, name: "bytes", mostElements: maxLength ?? text.mostElements };
  if (maxLength !== undefined) return { ...text, mostElements: Math.max(0, maxLength) * 4 };
  return schema.enum?.length ? { ...text, mostElements: longestText(schema.enum) } : text;
}

const longestText = (values: readonly Json[]): number =>
  Math.max(0, ...values.map((value) => (typeof value === "string" ? Buffer.byteLength(value) : 0)));

function objectType(schema: Schema, whole: boolean): RuleType | undefined {
  const { additionalProperties: rest, required = [], maxProperties } = schema;
  if (rest && !whole) {
    const element = typeof rest === "object" ? ruleType(rest) : undefined;
    // An entry takes a key, a colon and a comma in addition to its value.
    const most = maxProperties ?? Math.floor((mostBytes - empty) / ((element?.leastBytes ?? 0) + 6));
    return element && { name: "map", element, leastBytes: empty, mostElements: Math.max(0, most) };
  }
  const fields = new Map<string, RuleType>();
  let leastBytes = empty;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const type = ruleType(property);
    if (!type) continue;
    const field = fieldName(name);
    if (field !== undefined) fields.set(field, type);
    if (required.includes(name) && property.default === undefined) {
      leastBytes += Buffer.byteLength(name) + type.leastBytes + 4;
    }
  }
  if (whole) for (const [name, type] of resourceFields) fields.set(name, type);
  return { name: "object", fields, leastBytes, mostElements: 0 };
}

/**
 * The name by which rules refer to a property: pkg/cel/escaping.go of k8s.io/apiserver. `undefined` if rules cannot refer to it.
 */
export function fieldName(name: string): string | undefined {
  if (reservedWords.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*$/.test(name)) return undefined;
  return name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
}

/**
 * How many values of at least this size fit into a request, which is the maximum number of times that a rule on it runs.
 */
export const mostTimes = (leastBytes: number): number => Math.floor(mostBytes / (leastBytes + 1));
