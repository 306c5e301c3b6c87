import { isIP } from "node:net";
import { type Fields, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { labelFaults, nameFaults, qualifiedNameFaults } from "../names.ts";
import type { NameRule } from "../resource-type.ts";
import { labelSelectorFaults, portNameFaults, portNumberFaults } from "./value-faults.ts";

/** Returns the faults of the value at a path. The value is `undefined` or null if the field is not set. */
export type Check = (value: unknown, path: string) => FieldFault[];

/**
 * The checks of one field. The place is a path such as `env[].name`, where `[]` stands for every item of a list. The checks do not
 * run if an object on the way to the field is missing. The place "" is the object itself.
 */
export type FieldRule = readonly [place: string, ...checks: Check[]];

/** The faults of an object by a table of rules. `path` is the object's own path; "" for a whole object. */
export function ruleFaults(rules: readonly FieldRule[], object: unknown, path: string): FieldFault[] {
  return rules.flatMap(([place, ...checks]) =>
    [...valuesAt(object, place === "" ? [] : place.split("."), path)].flatMap(([value, where]) =>
      checks.flatMap((check) => check(value, where)),
    ),
  );
}

/** The rules of a table for another place. */
export function below(place: string, rules: readonly FieldRule[]): FieldRule[] {
  return rules.map(([own, ...checks]) => [own === "" ? place : `${place}.${own}`, ...checks]);
}

function* valuesAt(value: unknown, steps: readonly string[], path: string): Generator<[value: unknown, path: string]> {
  const [step, ...rest] = steps;
  if (step === undefined) {
    yield [value, path];
    return;
  }
  if (!isFields(value)) return;
  const name = step.replace("[]", "");
  const child = value[name];
  const where = path === "" ? name : `${path}.${name}`;
  if (name === step) yield* valuesAt(child, rest, where);
  else if (Array.isArray(child))
    for (const [index, item] of child.entries()) yield* valuesAt(item, rest, `${where}[${index}]`);
}

/** Go does not distinguish an empty text from a field that is not set. */
const isUnset = (value: unknown): boolean => value === undefined || value === null || value === "";

/** The field must be set. */
export const present =
  (detail = ""): Check =>
  (value, path) =>
    isUnset(value) || (Array.isArray(value) && value.length === 0) ? [fault.required(path, detail)] : [];

/** The field is a name, if it is set. */
export const named =
  (rule: NameRule): Check =>
  (value, path) =>
    isUnset(value) ? [] : nameFaults(rule, String(value)).map((text) => fault.invalid(path, value, text));

/** The field is a name, if it is set. For fields that are pointers in Go, where "" is a text. */
export const namedIfSet =
  (rule: NameRule): Check =>
  (value, path) =>
    value === undefined || value === null ? [] : mustBeName(rule)(value, path);

/** The field is a name. An empty one is reported as an invalid name, as the real server does for some fields. */
export const mustBeName =
  (rule: NameRule): Check =>
  (value, path) =>
    nameFaults(rule, String(value ?? "")).map((text) => fault.invalid(path, value ?? "", text));

/** The field is one of these texts, if it is set. */
export const oneOf =
  (allowed: readonly string[]): Check =>
  (value, path) =>
    isUnset(value) || allowed.includes(String(value)) ? [] : [fault.unsupported(path, value, allowed)];

/** The field is one of these texts, if it is set. For fields that are pointers in Go, where "" is a text. */
export const exactlyOneOf =
  (allowed: readonly string[]): Check =>
  (value, path) =>
    value === undefined || value === null || allowed.includes(String(value))
      ? []
      : [fault.unsupported(path, value, allowed)];

/** The field is a number within these bounds, if it is set. */
export const within =
  (least: number, most: number, detail = `must be between ${least} and ${most}, inclusive`): Check =>
  (value, path) =>
    typeof value === "number" && (value < least || value > most) ? [fault.invalid(path, value, detail)] : [];

/** The field is a number of at least zero, if it is set. */
export const notNegative: Check = within(0, Number.POSITIVE_INFINITY, "must be greater than or equal to 0");

/** The field is a number above zero. One that is not set counts as zero. */
export const positive: Check = (value, path) =>
  Number(value ?? 0) > 0 ? [] : [fault.invalid(path, value ?? 0, "must be greater than zero")];

/** The field is a port: a number, or the name of one, if it is set. */
export const port: Check = (value, path) =>
  typeof value === "string" ? portNameFaults(value, path) : portNumberFaults(value, path);

/** The field is an IP address. */
export const ipAddress: Check = (value, path) =>
  isIP(String(value ?? "")) === 0
    ? [fault.invalid(path, value ?? "", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    : [];

/** The field is the key of a label, if it is set. */
export const qualified: Check = (value, path) =>
  isUnset(value) ? [] : qualifiedNameFaults(String(value)).map((text) => fault.invalid(path, value, text));

/** The field is a map of labels, if it is set. */
export const labels: Check = (value, path) =>
  isFields(value) ? labelFaults(value as Record<string, string>, path) : [];

/** The field is a metav1.LabelSelector, if it is set. */
export const selector: Check = labelSelectorFaults;

/** The names of the fields that hold an object. */
export const objectsIn = (fields: Fields, names: readonly string[]): string[] =>
  names.filter((name) => isFields(fields[name]));

/** The object has exactly one of these fields. */
export const oneSource =
  (names: readonly string[], missing: string): Check =>
  (value, path) => {
    if (!isFields(value)) return [];
    const sources = objectsIn(value, names);
    if (sources.length === 0) return [fault.invalid(path, "", missing)];
    return sources.length > 1 ? [fault.invalid(path, "", "may not have more than one field specified at a time")] : [];
  };

const configKey = /^[-._a-zA-Z0-9]+$/;

/** The field is the key of a ConfigMap or a Secret. */
export const dataKey: Check = (value, path) =>
  isUnset(value) ? [fault.required(path)] : dataKeyFaults(String(value), path);

/** Faults of a key of a ConfigMap's or Secret's data. */
export function dataKeyFaults(value: string, path: string): FieldFault[] {
  const key = value;
  const faults: FieldFault[] = [];
  if (key.length > 253) faults.push(fault.invalid(path, value, "must be no more than 253 characters"));
  if (!configKey.test(key))
    faults.push(
      fault.invalid(
        path,
        value,
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      ),
    );
  if (key === "." || key === "..") faults.push(fault.invalid(path, value, `must not be '${key}'`));
  else if (key.startsWith("..")) faults.push(fault.invalid(path, value, "must not start with '..'"));
  return faults;
}

/** The field is a relative path without a step upwards, if it is set. */
export const relativePath: Check = (value, path) => {
  if (isUnset(value)) return [];
  const text = String(value);
  if (text.startsWith("/")) return [fault.invalid(path, value, "must be a relative path")];
  if (text.split("/").includes("..")) return [fault.invalid(path, value, "must not contain '..'")];
  return text.startsWith("..") ? [fault.invalid(path, value, "must not start with '..'")] : [];
};
