import { Quantity } from "@watchfire/cel";
import { isObject, type Json, type JsonObject, setMember } from "./json.ts";
import type { Schema } from "./schema.ts";

/**
 * Returns an object of a built-in kind as Go reads and writes it: without empty maps and lists (those that are required stay),
 * quantities in their canonical form, maps in order, base64 without line breaks, and "" or "0" for a null in a map of texts or
 * quantities.
 */
export function canonical(schema: Schema, object: JsonObject): JsonObject {
  const kept: JsonObject = {};
  const { additionalProperties: rest } = schema;
  const entries = Object.entries(object);
  // Go writes the keys of a map in order.
  if (typeof rest === "object") entries.sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, value] of entries) {
    const property = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    const field = property ?? (typeof rest === "object" ? rest : undefined);
    const own = field ? canonicalValue(field, value, property === undefined) : value;
    if (field && property && isOmitted(field, own) && !schema.required?.includes(name)) continue;
    setMember(kept, name, own);
  }
  return kept;
}

function canonicalValue(schema: Schema, value: Json, isInMap: boolean): Json {
  if (Array.isArray(value)) {
    if (schema.format === "byte") return Buffer.from(value.map(Number)).toString("base64");
    const { items } = schema;
    return items ? value.map((item) => canonicalValue(items, item, false)) : value;
  }
  if (isObject(value)) return canonical(schema, value);
  if (value === null && isInMap) return schema.format === "quantity" ? "0" : schema.type === "string" ? "" : null;
  if (value === null) return null;
  if (schema.format === "quantity") return canonicalQuantity(String(value), isInMap);
  return schema.format === "byte" && typeof value === "string" ? value.replace(/[\r\n]/g, "") : value;
}

/** Whether Go leaves a field out: an empty list, or an empty map. A structure without fields stays. */
function isOmitted(schema: Schema, value: Json): boolean {
  if (Array.isArray(value)) return value.length === 0 && schema.items !== undefined;
  return isObject(value) && typeof schema.additionalProperties === "object" && Object.keys(value).length === 0;
}

const whole = 10n ** 9n;
const milli = 10n ** 6n;
const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** The text that the real server stores for a quantity: no fraction, and the largest suffix that allows it. */
function canonicalQuantity(text: string, isResource: boolean): Json {
  if (!Quantity.isQuantity(text)) return text;
  const { billionths } = Quantity.parse(text);
  const sign = billionths < 0n ? "-" : "";
  const size = billionths < 0n ? -billionths : billionths;
  // Amounts of resources, such as CPU, are rounded up to a thousandth.
  const amount = isResource ? ((size + milli - 1n) / milli) * milli : size;
  if (amount === 0n) return "0";
  if (text.endsWith("i") && amount >= 1024n * whole && amount % whole === 0n) {
    const [number, steps] = divided(amount / whole, 1024n, binarySuffixes.length - 1);
    return `${sign}${number}${binarySuffixes[steps]}`;
  }
  const [number, steps] = divided(amount, 1000n, decimalSuffixes.length - 1);
  const exponent = 3 * (steps - 3);
  if (!/[eE][+-]?\d/.test(text)) return `${sign}${number}${decimalSuffixes[steps]}`;
  return exponent === 0 ? `${sign}${number}` : `${sign}${number}e${exponent}`;
}

function divided(amount: bigint, by: bigint, most: number): [number: bigint, steps: number] {
  let number = amount;
  let steps = 0;
  while (steps < most && number % by === 0n) {
    number /= by;
    steps++;
  }
  return [number, steps];
}

/** Sorts the members of every object within a value, as the real server does in custom resources. */
export function inOrder(value: Json): Json {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  const ordered: JsonObject = {};
  for (const name of Object.keys(value).sort()) setMember(ordered, name, inOrder(value[name] ?? null));
  return ordered;
}

/** The metadata of any kind without maps and lists that are empty. */
export function withoutEmpty<T extends object>(metadata: T): T {
  const entries = Object.entries(metadata).filter(
    ([, value]) => typeof value !== "object" || value === null || Object.keys(value).length > 0,
  );
  return Object.fromEntries(entries) as T;
}
