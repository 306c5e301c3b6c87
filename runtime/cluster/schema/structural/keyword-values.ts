import { applyDefaults } from "../defaults.ts";
import type { FieldError } from "../field-error.ts";
import { isObject, type Json } from "../json.ts";
import { prune } from "../prune.ts";
import type { Schema } from "../schema.ts";
import { invalid } from "../validation/errors.ts";
import { compilePattern } from "../validation/pattern.ts";
import { validate } from "../validation/validate.ts";

/** Checks the values of a schema's keywords and returns their faults. */
export function checkKeywordValues(schema: Schema, path: string): FieldError[] {
  if (schema.pattern === undefined) return [];
  const pattern = compilePattern(schema.pattern);
  if (!(pattern instanceof Error)) return [];
  const why = `must be a valid regular expression, but isn't: ${pattern.message}`;
  return [invalid(`${path}.pattern`, schema.pattern, why)];
}

/** Checks a schema's default: it must be valid under the schema, and must not hold unknown fields. */
export function checkDefault(schema: Schema, path: string): FieldError[] {
  const value: Json = schema.default ?? null;
  // Checks the default as a field of an object, because at the top it would be treated as a whole resource.
  const holder: Schema = { type: "object", properties: { value: withoutIntOrString(schema) } };
  if (isObject(value) || Array.isArray(value)) {
    const { unknown } = prune(holder, { value });
    if (unknown.length > 0) return [invalid(path, value, "must not have unknown fields")];
  }
  const errors = validate(holder, applyDefaults(holder, { value }));
  const below = (text: string): string => text.replace(/^value/, "");
  return errors.map((error) => ({
    ...error,
    path: error.path === "<nil>" ? error.path : path + below(error.path),
    message: error.message.replaceAll(/\bvalue((?:[.[][^ ]*)?) in body/g, "$1 in body"),
  }));
}

/** The real server does not check the type of a default where the schema is an int-or-string. */
function withoutIntOrString(schema: Schema): Schema {
  const { "x-kubernetes-int-or-string": isEither, items, properties, additionalProperties: rest, ...own } = schema;
  return {
    ...own,
    ...(isEither && { "x-kubernetes-preserve-unknown-fields": true }),
    ...(items && { items: withoutIntOrString(items) }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, withoutIntOrString(property)]),
      ),
    }),
    ...(rest !== undefined && { additionalProperties: typeof rest === "object" ? withoutIntOrString(rest) : rest }),
  };
}
