import { isObject, type Json } from "./json.ts";

/** Formats a value as Go's `%v` does in the API server's messages: `map[image:j name:e]`. */
export function goText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (isObject(value)) {
    const names = Object.keys(value).sort();
    return `map[${names.map((name) => `${name}:${goText(value[name] ?? null)}`).join(" ")}]`;
  }
  if (value === null) return "<nil>";
  return isFloat(value) ? goFloat(value) : String(value);
}

/** True if Go holds the number as a float64 because it is not an int64. */
export function isFloat(value: Json): value is number {
  return typeof value === "number" && !Number.isSafeInteger(value);
}

/** Formats a float64 as Go's `%v` does: with an exponent below 0.0001 and from a million on. */
export function goFloat(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-4 && size < 1e6)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** The name of a JSON value's type in Go's decoder. */
export function goKind(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value === "bigint" ? "number" : typeof value;
}
