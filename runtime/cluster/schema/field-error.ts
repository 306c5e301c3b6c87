import type { JsonObject } from "./json.ts";

/** The kinds of field error, and the reason that a Status cause carries for each. */
const reasons = {
  Required: "FieldValueRequired",
  Invalid: "FieldValueInvalid",
  NotSupported: "FieldValueNotSupported",
  Forbidden: "FieldValueForbidden",
  Duplicate: "FieldValueDuplicate",
  TypeInvalid: "FieldValueTypeInvalid",
  TooLong: "FieldValueTooLong",
  TooMany: "FieldValueTooMany",
  Unknown: "FieldValueInvalid",
} as const;

/** One fault of an object. */
export interface FieldError {
  readonly type: keyof typeof reasons;
  /** `spec.containers[0].name`, `metadata.labels[a.b/c]`; `<nil>` for the object as a whole. */
  readonly path: string;
  /** The text without the path: `Required value`, `Invalid value: 3: must be even`. */
  readonly message: string;
  readonly value?: unknown;
}

/** Formats the error with its path, as a Status message shows it. */
export function fieldErrorText(error: FieldError): string {
  return `${error.path}: ${error.message}`;
}

/** The message of the 422 Status: `MyApp.my.domain "a" is invalid: [spec.x: Required value, ...]`; `group` is "" for core. */
export function invalidMessage(kind: string, group: string, name: string, errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(fieldErrorText))];
  const list = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return `${kind}${group && `.${group}`} ${JSON.stringify(name)} is invalid: ${list}`;
}

/** The causes of that Status's details. */
export function statusCauses(errors: readonly FieldError[]): JsonObject[] {
  return errors.map((error) => ({ reason: reasons[error.type], message: error.message, field: error.path }));
}
