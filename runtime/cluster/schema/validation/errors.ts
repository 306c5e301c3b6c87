import { encodeJson } from "../../exact-json.ts";
import type { FieldError } from "../field-error.ts";
import { goFloat, isFloat } from "../go-text.ts";
import { isObject, type Json } from "../json.ts";
import type { ValidationRule } from "../schema.ts";

/** The path of a field below `path`. */
export function fieldPath(path: string, name: string): string {
  return path ? `${path}.${name}` : name;
}

/** The path as errors show it. An error of the whole object has an empty path. */
export function shown(path: string): string {
  return path || "<nil>";
}

/** `Invalid value: <value>: <detail>` */
export function invalid(path: string, value: Json | undefined, detail: string): FieldError {
  const text = value === undefined ? detail : `${goJson(value)}: ${detail}`;
  return { type: "Invalid", path: shown(path), message: `Invalid value: ${text}`, value };
}

/**
 * Formats JSON as Go does: inside a structure, though not in a lone string, characters that HTML interprets are escaped. A lone
 * float64 is formatted as by `%v`.
 */
function goJson(value: Json): string {
  if (isFloat(value)) return goFloat(value);
  const text = encodeJson(value);
  if (typeof value !== "object") return text;
  return text.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026");
}

/** An error of the validator as a whole, without a path. */
export function unplaced(detail: string): FieldError {
  return { type: "Invalid", path: "<nil>", message: `Invalid value: "": ${detail}` };
}

export function required(path: string, detail = ""): FieldError {
  return { type: "Required", path: shown(path), message: `Required value${detail && `: ${detail}`}` };
}

export function forbidden(path: string, detail: string): FieldError {
  return { type: "Forbidden", path: shown(path), message: `Forbidden: ${detail}` };
}

export function duplicate(path: string, value: Json): FieldError {
  return { type: "Duplicate", path: shown(path), message: `Duplicate value: ${encodeJson(value)}`, value };
}

export function notSupported(path: string, value: Json, supported: readonly Json[]): FieldError {
  const list = supported.map((item) => JSON.stringify(typeof item === "string" ? item : encodeJson(item)));
  const message = `Unsupported value: ${goJson(value)}: supported values: ${list.join(", ")}`;
  return { type: "NotSupported", path: shown(path), message, value };
}

/** The error for a value whose type is not `wanted`, or for a string whose format is not. */
export function wrongType(path: string, value: string, wanted: string): FieldError {
  const text = JSON.stringify(value);
  return {
    type: "TypeInvalid",
    path: shown(path),
    message: `Invalid value: ${text}: ${path} in body must be of type ${wanted}: ${text}`,
    value,
  };
}

export function tooLong(path: string, limit: number): FieldError {
  return { type: "TooLong", path: shown(path), message: `Too long: may not be more than ${limit} bytes` };
}

export function tooMany(path: string, count: number, limit: number): FieldError {
  return {
    type: "TooMany",
    path: shown(path),
    message: `Too many: ${count}: must have at most ${limit} items`,
    value: count,
  };
}

/** The error of a broken rule, for the reason that the rule declares. */
export function brokenRule(path: string, value: Json, reason: ValidationRule["reason"], detail: string): FieldError {
  if (reason === "FieldValueForbidden") return forbidden(path, detail);
  if (reason === "FieldValueRequired") return required(path, detail);
  if (reason === "FieldValueDuplicate") return duplicate(path, value);
  return invalid(path, isObject(value) || Array.isArray(value) ? undefined : value, detail);
}

/** The name of a value's type in messages. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint") return "integer";
  // A float64 counts as an integer if it is exact.
  if (typeof value === "number") return Number.isSafeInteger(value) ? "integer" : "number";
  return typeof value;
}
