import { isObject, type Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { durationSeconds } from "./formats.ts";

/** Names that CEL keeps for itself, but for which Kubernetes lets a rule say `__namespace__`. */
const reserved = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

/** A property's name as a rule writes it; undefined for a name that no rule can write. */
export function escapeName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*$/.test(name)) return undefined;
  return name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
}

/** How a duration is made; the library makes them by evaluating `duration("90s")`. */
type MakeDuration = (text: string) => unknown;

/** A value as rules see it under its schema: integers as bigint, times as Date, properties by their escaped names. */
export function celValue(value: Json, schema: Schema | undefined, makeDuration: MakeDuration): unknown {
  if (typeof value === "bigint") return schema?.type === "number" ? Number(value) : value;
  if (typeof value === "number") return isInteger(value, schema) ? BigInt(value) : value;
  if (typeof value === "string") return formatted(value, schema, makeDuration);
  if (Array.isArray(value)) return value.map((item) => celValue(item, schema?.items, makeDuration));
  if (!isObject(value)) return value;
  const { properties, additionalProperties: rest } = schema ?? {};
  const seen: Record<string, unknown> = {};
  for (const [name, child] of Object.entries(value)) {
    const own = properties && Object.hasOwn(properties, name) ? properties[name] : undefined;
    const known = own ? escapeName(name) : name;
    const type = own ?? (typeof rest === "object" ? rest : undefined);
    if (known !== undefined) seen[known] = celValue(child, type, makeDuration);
  }
  return seen;
}

function isInteger(value: number, schema: Schema | undefined): boolean {
  return Number.isSafeInteger(value) && schema?.type !== "number";
}

function formatted(value: string, schema: Schema | undefined, makeDuration: MakeDuration): unknown {
  switch (schema?.format) {
    case "date-time":
    case "date":
      return new Date(value);
    case "duration":
      return makeDuration(`${durationSeconds(value) ?? 0}s`);
    case "byte":
      return Uint8Array.from(Buffer.from(value, "base64"));
    default:
      return value;
  }
}
