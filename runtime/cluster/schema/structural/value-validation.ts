import type { FieldError } from "../field-error.ts";
import type { Schema } from "../schema.ts";
import { forbidden } from "../validation/errors.ts";

const kinds = ["allOf", "anyOf", "oneOf"] as const;

/** Checks `allOf`, `anyOf`, `oneOf` and `not`: they may restrict values, but not describe the structure. */
export function checkBranches(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const exempt = schema["x-kubernetes-int-or-string"] === true;
  for (const kind of kinds) {
    schema[kind]?.forEach((branch, index) => {
      errors.push(...checkBranch(branch, `${path}.${kind}[${index}]`, exempt));
    });
  }
  if (schema.not) errors.push(...checkBranch(schema.not, `${path}.not`, false));
  return errors;
}

/** Checks one branch. `mayBeIntOrString`: the branch may name the two types of an `x-kubernetes-int-or-string`. */
function checkBranch(branch: Schema, path: string, mayBeIntOrString: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const refuse = (keyword: string, what: string): void => {
    errors.push(forbidden(`${path}.${keyword}`, `must be ${what} to be structural`));
  };
  if (branch.additionalProperties !== undefined) refuse("additionalProperties", "undefined");
  if (branch.default !== undefined) refuse("default", "undefined");
  if (branch.description) refuse("description", "empty");
  if (branch.nullable) refuse("nullable", "false");
  if (branch.title) refuse("title", "empty");
  if (branch.type && !(mayBeIntOrString && (branch.type === "integer" || branch.type === "string"))) {
    refuse("type", "empty");
  }
  for (const extension of ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] as const) {
    if (branch[extension]) refuse(extension, "false");
  }
  for (const [name, property] of Object.entries(branch.properties ?? {})) {
    errors.push(...checkBranch(property, `${path}.properties[${name}]`, false));
  }
  if (branch.items) errors.push(...checkBranch(branch.items, `${path}.items`, false));
  for (const kind of kinds) {
    branch[kind]?.forEach((inner, index) => {
      errors.push(...checkBranch(inner, `${path}.${kind}[${index}]`, mayBeIntOrString));
    });
  }
  if (branch.not) errors.push(...checkBranch(branch.not, `${path}.not`, false));
  return errors;
}
