import { Duration, double, reservedWords, Timestamp, UnorderedList, type Value } from "@watchfire/cel";
import { isObject, type Json, type JsonObject, setMember } from "../json.ts";
import type { Schema } from "../schema.ts";
import { durationSeconds } from "./formats.ts";
import { canonical } from "./list-types.ts";
import { fieldName } from "./rule-type.ts";

/** The metadata of a whole resource as rules see it: only the name. */
const metadata: Schema = {
  type: "object",
  properties: { name: { type: "string" }, generateName: { type: "string" } },
};

/**
 * Converts a value to the form that rules see under its schema: `UnstructuredToVal` in pkg/cel/common of k8s.io/apiserver. Times
 * and durations follow their format, numbers become doubles by their type, lists get the equality of their type, and properties
 * get the names that rules use.
 * @param whole true if the schema is that of a whole resource
 */
export function ruleValue(
  value: Json,
  schema: Schema | undefined,
  whole = schema?.["x-kubernetes-embedded-resource"] === true,
): Value {
  if (typeof value === "number" || typeof value === "bigint") {
    return schema?.type === "number" ? double(Number(value)) : value;
  }
  if (typeof value === "string") return formatted(value, schema);
  if (Array.isArray(value)) return listValue(value, schema);
  if (!isObject(value) || !schema) return value;
  const { additionalProperties: rest } = schema;
  return rest && !whole ? mapValue(value, rest) : objectValue(value, schema, whole);
}

function mapValue(value: JsonObject, rest: Schema | true): Value {
  const seen: JsonObject = {};
  const schema = typeof rest === "object" ? rest : undefined;
  for (const [name, child] of Object.entries(value)) setMember(seen, name, ruleValue(child, schema) as Json);
  return seen;
}

/**
 * Converts an object. A null counts as an absent field. An unknown field gets a name that no rule can write, so it matters only
 * when objects are compared.
 */
function objectValue(value: JsonObject, { properties = {} }: Schema, whole: boolean): Value {
  const seen: JsonObject = {};
  for (const [name, child] of Object.entries(value)) {
    if (whole && name === "metadata" && isObject(child)) {
      const { name: own, generateName } = child;
      const named = {
        ...(own === undefined ? {} : { name: own }),
        ...(generateName === undefined ? {} : { generateName }),
      };
      seen.metadata = ruleValue(named, metadata) as Json;
    } else if (!Object.hasOwn(properties, name)) {
      setMember(seen, whole && resourceNames.includes(name) ? name : ` ${name}`, child);
    } else if (child !== null) {
      const made = ruleValue(child, properties[name]) as Json;
      setMember(seen, fieldName(name) ?? ` ${name}`, made);
      if (reservedWords.has(name)) setMember(seen, name, made);
    }
  }
  return seen;
}

const resourceNames = ["apiVersion", "kind"];

function listValue(value: readonly Json[], schema: Schema | undefined): Value {
  const items = value.map((item) => ruleValue(item, schema?.items));
  const type = schema?.["x-kubernetes-list-type"];
  if (type === "set") return new UnorderedList(items, (item) => canonical(item as Json));
  if (type !== "map") return items;
  const keys = (schema?.["x-kubernetes-list-map-keys"] ?? []).map((name) => fieldName(name) ?? ` ${name}`);
  return new UnorderedList(items, (item) =>
    canonical(keys.map((key) => (isObject(item) && Object.hasOwn(item, key) ? (item[key] ?? null) : null))),
  );
}

function formatted(value: string, schema: Schema | undefined): Value {
  switch (schema?.["x-kubernetes-int-or-string"] ? undefined : schema?.format) {
    case "date-time":
    case "date":
      return timeOf(value);
    case "duration":
      return new Duration(BigInt(Math.round((durationSeconds(value) ?? 0) * 1e9)));
    case "byte":
      return Uint8Array.from(Buffer.from(value, "base64"));
    default:
      return value;
  }
}

/** Parses a time. The formats allow more than CEL reads: a date alone, `t`, `z` or a blank, and no zone at all. */
function timeOf(text: string): Timestamp {
  const [, day = "", clock = "T00:00:00", zone] = /^(\d{4}-\d\d-\d\d)(?:(?=[Tt ])([^Zz+-]*))?(.*)$/.exec(text) ?? [];
  return Timestamp.parse(`${day}${clock.replace(/^[t ]/, "T")}${zone?.toUpperCase() || "Z"}`);
}
