import type { FieldError } from "../field-error.ts";
import { isObject, type Json, type JsonObject, jsonEqual } from "../json.ts";
import type { Schema, ValidationRule } from "../schema.ts";
import { compile, type Program, toCel, toOptional } from "./cel.ts";
import { childrenOf } from "./children.ts";
import { brokenRule, shown, typeName } from "./errors.ts";

const programs = new WeakMap<ValidationRule, { rule: Program; message: Program | undefined } | Error>();
const withRules = new WeakMap<Schema, boolean>();

/** Whether the schema, or any below it, has rules. */
export function hasRules(schema: Schema): boolean {
  const known = withRules.get(schema);
  if (known !== undefined) return known;
  const { items, additionalProperties: rest, properties } = schema;
  const children = [
    ...Object.values(properties ?? {}),
    ...(items ? [items] : []),
    ...(typeof rest === "object" ? [rest] : []),
  ];
  const found = (schema["x-kubernetes-validations"]?.length ?? 0) > 0 || children.some(hasRules);
  withRules.set(schema, found);
  return found;
}

/** Whether the expression reads the stored value: such a rule runs on updates alone. */
export function usesOldSelf(expression: string): boolean {
  return /\boldSelf\b/.test(expression.replace(/"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/g, '""'));
}

/** What the object breaks of the rules of its schema, `x-kubernetes-validations`. */
export function checkRules(schema: Schema, object: JsonObject, old: JsonObject | undefined): FieldError[] {
  return walk(schema, object, old, "");
}

function walk(schema: Schema, value: Json, old: Json | undefined, path: string): FieldError[] {
  if (!hasRules(schema) || value === null) return [];
  const rules = schema["x-kubernetes-validations"] ?? [];
  const errors = rules.length > 0 ? runRules(rules, schema, value, old, path) : [];
  for (const child of childrenOf(value, old, schema, path)) {
    errors.push(...walk(child.schema, child.value, child.old, child.path));
  }
  return errors;
}

function runRules(
  rules: readonly ValidationRule[],
  schema: Schema,
  value: Json,
  old: Json | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const unchanged = old !== undefined && jsonEqual(value, old);
  const self = toCel(visible(value, schema, path), schema);
  const before = old === undefined ? undefined : toCel(visible(old, schema, path), schema);
  for (const rule of rules) {
    const transition = usesOldSelf(rule.rule);
    if (transition ? old === undefined && !rule.optionalOldSelf : unchanged) continue;
    const broken = run(rule, self, rule.optionalOldSelf ? toOptional(before) : before);
    if (broken === undefined) continue;
    const at = rule.fieldPath ? path + pathBelow(rule.fieldPath) : path;
    if (broken.evaluation === undefined)
      errors.push(brokenRule(at.replace(/^\./, ""), value, rule.reason, broken.text));
    else errors.push(failedToRun(path, value, `${broken.evaluation} evaluating rule: ${rule.message ?? rule.rule}`));
  }
  return errors;
}

/** Of the metadata of a whole resource, rules see the name alone. */
function visible(value: Json, schema: Schema, path: string): Json {
  const whole = path === "" || schema["x-kubernetes-embedded-resource"];
  if (!whole || !isObject(value) || !isObject(value.metadata)) return value;
  const { name, generateName } = value.metadata;
  return {
    ...value,
    metadata: { ...(name === undefined ? {} : { name }), ...(generateName === undefined ? {} : { generateName }) },
  };
}

/** A rule's `fieldPath`, `.a['b-c']`, as errors write it: `.a.b-c`. */
function pathBelow(fieldPath: string): string {
  return fieldPath.replace(/\['((?:\\.|[^'])*)'\]/g, (_, name: string) => `.${name}`);
}

type Broken = { text: string; evaluation?: undefined } | { evaluation: string };

function run(rule: ValidationRule, self: unknown, oldSelf: unknown): Broken | undefined {
  const program = prepare(rule);
  if (program instanceof Error) return { evaluation: program.message };
  try {
    if (program.rule(self, oldSelf) === true) return undefined;
  } catch (error) {
    return { evaluation: summary(error) };
  }
  try {
    const text = program.message?.(self, oldSelf);
    if (typeof text === "string" && text.trim() !== "" && !text.includes("\n")) return { text };
  } catch {
    // A message that cannot be made gives way to the plain one, as in the real server.
  }
  return { text: rule.message ?? `failed rule: ${rule.rule.trim()}` };
}

function prepare(rule: ValidationRule): { rule: Program; message: Program | undefined } | Error {
  let program = programs.get(rule);
  if (!program) {
    try {
      const optional = rule.optionalOldSelf === true;
      const message = rule.messageExpression ? compile(rule.messageExpression, optional) : undefined;
      program = { rule: compile(rule.rule, optional), message };
    } catch (error) {
      program = error instanceof Error ? error : new Error(String(error));
    }
    programs.set(rule, program);
  }
  return program;
}

function summary(error: unknown): string {
  const text = error instanceof Error ? ((error as { summary?: string }).summary ?? error.message) : String(error);
  return text.replace(/^No such key/, "no such key");
}

function failedToRun(path: string, value: Json, detail: string): FieldError {
  const type = isObject(value) ? "object" : Array.isArray(value) ? "array" : typeName(value);
  return { type: "Invalid", path: shown(path), message: `Invalid value: ${JSON.stringify(type)}: ${detail}`, value };
}
