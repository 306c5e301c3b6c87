import type { FieldError } from "../field-error.ts";
import { isObject, type Json, type JsonObject, jsonEqual } from "../json.ts";
import type { Schema } from "../schema.ts";
import { childrenOf } from "./children.ts";
import { fieldPath, required, unplaced } from "./errors.ts";
import { checkKeywords } from "./keywords.ts";
import { checkListType } from "./list-types.ts";
import { checkRules, hasRules } from "./rules.ts";

/** The errors after which rules are not run, because an expression may rely on what they check. */
const blocking: readonly FieldError["type"][] = ["NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"];

/**
 * Validates an object against its schema and returns the errors. Unknown fields and defaults must already be handled. `old` is
 * the stored object of an update: transition rules compare with it, and a value that is unchanged stays allowed even if the
 * schema now forbids it. For a built-in kind, only what the schema expresses is checked: types, enums, and required fields.
 */
export function validate(schema: Schema, object: JsonObject, old?: JsonObject): FieldError[] {
  const errors = walk(object, old, schema, "");
  if (schema.builtIn) return errors;
  const lists = walkLists(object, old, schema, "");
  if (!hasRules(schema)) return [...errors, ...lists];
  if (errors.some((error) => blocking.includes(error.type))) {
    const detail =
      "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    return [...errors, ...lists, { type: "Invalid", path: "<nil>", message: `Invalid value: null: ${detail}` }];
  }
  return [...errors, ...lists, ...checkRules(schema, object, old)];
}

function walk(value: Json, old: Json | undefined, schema: Schema, path: string): FieldError[] {
  if (old !== undefined && jsonEqual(value, old)) return [];
  if (schema.builtIn && (value === null || path === "status")) return [];
  const errors: FieldError[] = [];
  for (const child of childrenOf(value, old, schema, path)) {
    errors.push(...walk(child.value, child.old, child.schema, child.path));
  }
  errors.push(...checkKeywords(value, schema, path));
  if (value !== null) errors.push(...checkCombinations(value, schema, path), ...checkEmbedded(value, schema, path));
  return errors;
}

/**
 * Checks list types in a separate pass after everything else, because their errors do not prevent the rules from running.
 */
function walkLists(value: Json, old: Json | undefined, schema: Schema, path: string): FieldError[] {
  if (old !== undefined && jsonEqual(value, old)) return [];
  const errors = Array.isArray(value) ? checkListType(value, schema, path) : [];
  for (const child of childrenOf(value, old, schema, path)) {
    errors.push(...walkLists(child.value, child.old, child.schema, child.path));
  }
  return errors;
}

function checkCombinations(value: Json, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const outcomes = (schemas: readonly Schema[]): FieldError[][] =>
    schemas.map((branch) => walk(value, undefined, branch, path));
  const name = JSON.stringify(path);
  if (schema.anyOf && !schema["x-kubernetes-int-or-string"]) {
    const results = outcomes(schema.anyOf);
    if (results.every((result) => result.length > 0)) {
      errors.push(unplaced(`${name} must validate at least one schema (anyOf)`), ...(results[0] ?? []));
    }
  }
  if (schema.oneOf) {
    const results = outcomes(schema.oneOf);
    const valid = results.filter((result) => result.length === 0).length;
    const text = `${name} must validate one and only one schema (oneOf).`;
    if (valid === 0) errors.push(unplaced(`${text} Found none valid`), ...(results[0] ?? []));
    else if (valid > 1) errors.push(unplaced(`${text} Found ${valid} valid alternatives`));
  }
  if (schema.allOf) {
    const failed = outcomes(schema.allOf).filter((result) => result.length > 0);
    const none = failed.length === schema.allOf.length ? ". None validated" : "";
    if (failed.length > 0) {
      errors.push(...failed.flat(), unplaced(`${name} must validate all the schemas (allOf)${none}`));
    }
  }
  if (schema.not && walk(value, undefined, schema.not, path).length === 0) {
    errors.push(unplaced(`${name} must not validate the schema (not)`));
  }
  return errors;
}

function checkEmbedded(value: Json, schema: Schema, path: string): FieldError[] {
  if (!schema["x-kubernetes-embedded-resource"] || !isObject(value)) return [];
  const missing = ["apiVersion", "kind"].filter((name) => !value[name]);
  return missing.map((name) => required(fieldPath(path, name)));
}
