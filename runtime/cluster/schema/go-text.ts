import { isObject, type Json } from "./json.ts";

/** A value as Go's `%v` prints it, which the API server's messages hold: `map[image:j name:e]`. */
export function goText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (isObject(value)) {
    const names = Object.keys(value).sort();
    return `map[${names.map((name) => `${name}:${goText(value[name] ?? null)}`).join(" ")}]`;
  }
  return value === null ? "<nil>" : String(value);
}

/** A JSON value's kind as Go's decoder names it. */
export function goKind(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}
