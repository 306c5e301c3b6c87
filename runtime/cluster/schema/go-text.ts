import { isObject, type Json } from "./json.ts";

/** A value as Go's `%v` prints it, which the API server's messages hold: `map[image:j name:e]`. */
export function goText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (isObject(value)) {
    const names = Object.keys(value).sort();
    return `map[${names.map((name) => `${name}:${goText(value[name] ?? null)}`).join(" ")}]`;
  }
  if (value === null) return "<nil>";
  return isFloat(value) ? goFloat(value) : String(value);
}

/** Whether Go has the number as a float64: one that is no int64. */
export function isFloat(value: Json): value is number {
  return typeof value === "number" && !Number.isSafeInteger(value);
}

/** A float64 as Go's `%v` prints it: with an exponent below 0.0001 and from a million on. */
export function goFloat(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-4 && size < 1e6)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** A JSON value's kind as Go's decoder names it. */
export function goKind(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value === "bigint" ? "number" : typeof value;
}
