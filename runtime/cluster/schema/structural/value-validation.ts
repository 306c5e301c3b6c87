import type { FieldError } from "../field-error.ts";
import { type Json, jsonEqual } from "../json.ts";
import type { Schema } from "../schema.ts";
import { forbidden } from "../validation/errors.ts";

const kinds = ["allOf", "anyOf", "oneOf"] as const;

/** The two types of an int-or-string, the one description of types that a combination may have. */
const intOrString: Json = [{ type: "integer" }, { type: "string" }];

const isIntOrString = (branches: readonly Schema[] | undefined): boolean =>
  jsonEqual(branches as Json | undefined, intOrString);

/**
 * Checks `allOf`, `anyOf`, `oneOf` and `not`: they may restrict values, but not describe the structure. `anyOf`, or that of the
 * first `allOf`, may name the two types of an int-or-string, in this order and without anything else.
 */
export function checkBranches(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const kind of kinds) {
    if (kind === "anyOf" && isIntOrString(schema.anyOf)) continue;
    schema[kind]?.forEach((branch, index) => {
      const mayDiffer = kind === "allOf" && index === 0 && isIntOrString(branch.anyOf);
      errors.push(...checkBranch(branch, `${path}.${kind}[${index}]`, mayDiffer));
    });
  }
  if (schema.not) errors.push(...checkBranch(schema.not, `${path}.not`, false));
  return errors;
}

/** Checks one branch. `isUnion`: its `anyOf` names the types of an int-or-string, and is not checked. */
function checkBranch(branch: Schema, path: string, isUnion: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const refuse = (keyword: string, what: string): void => {
    errors.push(forbidden(`${path}.${keyword}`, `must be ${what} to be structural`));
  };
  if (branch.additionalProperties !== undefined) refuse("additionalProperties", "undefined");
  if (branch.default !== undefined) refuse("default", "undefined");
  if (branch.description) refuse("description", "empty");
  if (branch.nullable) refuse("nullable", "false");
  if (branch.title) refuse("title", "empty");
  if (branch.type) refuse("type", "empty");
  for (const extension of ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] as const) {
    if (branch[extension]) refuse(extension, "false");
  }
  for (const [name, property] of Object.entries(branch.properties ?? {})) {
    errors.push(...checkBranch(property, `${path}.properties[${name}]`, false));
  }
  if (branch.items) errors.push(...checkBranch(branch.items, `${path}.items`, false));
  for (const kind of kinds) {
    if (kind === "anyOf" && isUnion) continue;
    branch[kind]?.forEach((inner, index) => {
      errors.push(...checkBranch(inner, `${path}.${kind}[${index}]`, false));
    });
  }
  if (branch.not) errors.push(...checkBranch(branch.not, `${path}.not`, false));
  return errors;
}
