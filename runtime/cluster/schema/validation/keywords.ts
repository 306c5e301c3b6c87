import { isNumber } from "../../exact-json.ts";
import type { FieldError } from "../field-error.ts";
import { goFloat, isFloat } from "../go-text.ts";
import { isObject, type Json, type JsonObject, jsonEqual } from "../json.ts";
import type { Schema } from "../schema.ts";
import {
  fieldPath,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
  typeName,
  unplaced,
  wrongType,
} from "./errors.ts";
import { inRange, matchesFormat } from "./formats.ts";
import { compilePattern } from "./pattern.ts";

/** Checks a value against the schema's own keywords. Its children and its rules are not checked. */
export function checkKeywords(value: Json, schema: Schema, path: string): FieldError[] {
  const errors = [checkType, checkRange, checkEnum].flatMap((check) => check(value, schema, path));
  if (typeof value === "string") errors.push(...checkString(value, schema, path));
  else if (isNumber(value)) errors.push(...checkNumber(value, schema, path));
  else if (Array.isArray(value)) errors.push(...checkArray(value, schema, path));
  else if (isObject(value)) errors.push(...checkObject(value, schema, path));
  return errors;
}

function checkType(value: Json, schema: Schema, path: string): FieldError[] {
  const wanted = allowedTypes(schema);
  if (!wanted || (value === null && schema.nullable)) return [];
  const actual = typeName(value);
  if (wanted.includes(actual) || (actual === "integer" && wanted.includes("number"))) return [];
  if (actual === "number" && schema.type === "integer" && schema.format) {
    return [wrongType(path, "float64", schema.format)];
  }
  return [wrongType(path, actual, wanted.join(","))];
}

/** Reports a number outside the range of its type and format. */
function checkRange(value: Json, schema: Schema, path: string): FieldError[] {
  return isNumber(value) && !inRange(value, schema) ? [outOfRange(schema, path)] : [];
}

function allowedTypes(schema: Schema): string[] | undefined {
  if (schema["x-kubernetes-int-or-string"]) return ["integer", "string"];
  if (schema.builtIn && schema.format === "quantity") return ["string", "number"];
  return schema.type && [schema.type];
}

function outOfRange(schema: Schema, path: string): FieldError {
  const format = schema.format ? `with format ${schema.format}` : "(default format)";
  return unplaced(`Checked value must be of type ${schema.type} ${format} in ${path}`);
}

function checkEnum(value: Json, schema: Schema, path: string): FieldError[] {
  if (!schema.enum || schema.enum.some((allowed) => jsonEqual(allowed, value))) return [];
  // Go writes the empty string for a field that was not set.
  return schema.builtIn && value === "" ? [] : [notSupported(path, value, schema.enum)];
}

function checkString(value: string, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const length = [...value].length;
  if (schema.maxLength !== undefined && length > schema.maxLength) errors.push(tooLong(path, schema.maxLength));
  if (schema.minLength !== undefined && length < schema.minLength) {
    errors.push(invalid(path, value, `${path} in body should be at least ${schema.minLength} chars long`));
  }
  if (schema.pattern !== undefined) {
    const pattern = compilePattern(schema.pattern);
    if (pattern instanceof Error) {
      errors.push(invalid(path, value, `${path} in body should match '${schema.pattern}', but pattern is invalid`));
    } else if (!pattern.test(value)) {
      errors.push(invalid(path, value, `${path} in body should match '${schema.pattern}'`));
    }
  }
  const ofString = schema.type === "string" || schema.type === undefined;
  if (schema.format && ofString && !matchesFormat(value, schema.format)) {
    errors.push(wrongType(path, value, schema.format));
  }
  return errors;
}

/** Checks the limits of a number. An int64 is compared exactly, also with a limit that is a float64. */
function checkNumber(value: number | bigint, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { maximum, minimum, multipleOf } = schema;
  const shown = (bound: number) => (isFloat(value) ? goFloat(bound) : String(bound));
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
    errors.push(invalid(path, value, `${path} in body should be a multiple of ${shown(multipleOf)}`));
  }
  if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
    const bound = schema.exclusiveMaximum ? "less than" : "less than or equal to";
    errors.push(invalid(path, value, `${path} in body should be ${bound} ${shown(maximum)}`));
  }
  if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
    const bound = schema.exclusiveMinimum ? "greater than" : "greater than or equal to";
    errors.push(invalid(path, value, `${path} in body should be ${bound} ${shown(minimum)}`));
  }
  return errors;
}

function isMultiple(value: number | bigint, of: number): boolean {
  if (Number.isInteger(of) && (typeof value === "bigint" || Number.isSafeInteger(value))) {
    return BigInt(value) % BigInt(of) === 0n;
  }
  const times = Number(value) / of;
  const size = Math.abs(times);
  return size <= Number.MAX_SAFE_INTEGER && Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, size);
}

function checkArray(value: readonly Json[], schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    errors.push(invalid(path, value.length, `${path} in body should have at least ${schema.minItems} items`));
  }
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    errors.push(tooMany(path, value.length, schema.maxItems));
  }
  return errors;
}

function checkObject(value: JsonObject, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const count = Object.keys(value).length;
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    errors.push(invalid(path, count, `${path} in body should have at least ${schema.minProperties} properties`));
  }
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    errors.push(tooMany(path, count, schema.maxProperties));
  }
  for (const name of schema.required ?? []) {
    if (isMissing(value, schema, name)) errors.push(required(fieldPath(path, name)));
  }
  return errors;
}

/**
 * True if a required field is missing. For a built-in kind the real server decides in code, and requires far less than the schema
 * lists: no list, no number and nothing in a status. It treats an empty string as missing.
 */
function isMissing(value: JsonObject, schema: Schema, name: string): boolean {
  const absent = !Object.hasOwn(value, name);
  if (!schema.builtIn) return absent;
  const field = schema.properties?.[name];
  if (field?.type === "array" || field?.type === "integer" || field?.type === "boolean") return false;
  return absent ? !isObject(field?.default) : field?.default === "" && value[name] === "";
}
