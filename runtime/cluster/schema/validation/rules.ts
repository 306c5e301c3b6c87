import {
  EvaluationError,
  expressionLimit,
  firstLine,
  LimitExceeded,
  Meter,
  Optional,
  type Value,
} from "@watchfire/cel";
import type { FieldError } from "../field-error.ts";
import { type Json, type JsonObject, jsonEqual } from "../json.ts";
import type { Schema, ValidationRule } from "../schema.ts";
import { childrenOf } from "./children.ts";
import { brokenRule, shown } from "./errors.ts";
import { evaluationFault } from "./rule-fault.ts";
import { compileRule, type RuleProgram } from "./rule-program.ts";
import { ruleType } from "./rule-type.ts";
import { ruleValue } from "./rule-value.ts";

/**
 * Cost limits of one expression, and of all rules of one object, in the units of conditions. A unit is a tenth of Kubernetes',
 * which allows 1,000,000 and 10,000,000: about a tenth of a second, and a second.
 */
const ruleLimit = 10 * expressionLimit;
const objectLimit = 10 * ruleLimit;
const outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run";

interface Programs {
  readonly rule: RuleProgram;
  readonly message: RuleProgram | undefined;
}
const programs = new WeakMap<ValidationRule, Programs | Error>();
const withRules = new WeakMap<Schema, boolean>();

/** True if the schema, or any schema below it, has rules. */
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

/** Evaluates the rules (`x-kubernetes-validations`) of an object's schema and returns the violations. */
export function checkRules(schema: Schema, object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const run = new RuleRun();
  run.walk(schema, object, old, "");
  return run.errors;
}

/** The evaluation of one object's rules, which share a cost budget. */
class RuleRun {
  readonly errors: FieldError[] = [];
  private left = objectLimit;

  walk(schema: Schema, value: Json, old: Json | undefined, path: string): void {
    if (!hasRules(schema) || value === null) return;
    const rules = schema["x-kubernetes-validations"] ?? [];
    if (rules.length > 0) this.runRules(rules, schema, value, old, path);
    for (const child of childrenOf(value, old, schema, path, (at, name) => `${at}[${name}]`)) {
      if (this.left < 0) return;
      this.walk(child.schema, child.value, child.old, child.path);
    }
  }

  private runRules(rules: readonly ValidationRule[], schema: Schema, value: Json, old: Json | undefined, path: string) {
    const unchanged = old !== undefined && jsonEqual(value, old);
    const whole = path === "" || schema["x-kubernetes-embedded-resource"] === true;
    const self = ruleValue(value, schema, whole);
    const oldSelf = old === undefined ? undefined : ruleValue(old, schema, whole);
    for (const rule of rules) {
      const program = prepare(rule, schema, whole);
      if (program instanceof Error) {
        this.fail(path, value, schema, `rule compile error: ${firstLine(program)}`);
        continue;
      }
      const isSkipped = program.rule.usesOldSelf ? old === undefined && !rule.optionalOldSelf : unchanged;
      if (isSkipped) continue;
      const before = rule.optionalOldSelf ? (oldSelf === undefined ? Optional.none : new Optional(oldSelf)) : oldSelf;
      const result = this.evaluate(program.rule, self, before);
      if (result === true) continue;
      if (result instanceof EvaluationError) {
        this.fail(path, value, schema, evaluationFault(result.message, rule.message?.trim() || rule.rule.trim()));
        continue;
      }
      if (result instanceof LimitExceeded) {
        const why = `'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${rule.message?.trim() || rule.rule.trim()}`;
        this.fail(path, value, schema, this.left > 0 ? why : outOfBudget);
        this.left = -1;
        return;
      }
      const text = messageOf(program.message && this.evaluate(program.message, self, before)) ?? defaultMessage(rule);
      const at = rule.fieldPath ? path + pathBelow(rule.fieldPath, schema) : path;
      this.errors.push(brokenRule(at.replace(/^\./, ""), value, rule.reason, text));
    }
  }

  /** Returns the value, or the message of the failure. */
  private evaluate({ run }: RuleProgram, self: Value, oldSelf: Value): Value {
    const meter = new Meter(Math.min(ruleLimit, this.left));
    try {
      return run({ meter, object: self, oldObject: () => oldSelf, slots: [] });
    } catch (error) {
      if (error instanceof EvaluationError || error instanceof LimitExceeded) return error;
      return new EvaluationError(firstLine(error));
    } finally {
      this.left = Math.max(0, this.left - meter.used);
    }
  }

  private fail(path: string, value: Json, schema: Schema, detail: string): void {
    const message = `Invalid value: "${schema.type ?? ""}": ${detail}`;
    this.errors.push({ type: "Invalid", path: shown(path), message, value });
  }
}

const defaultMessage = ({ message, rule }: ValidationRule): string => message?.trim() || `failed rule: ${rule.trim()}`;

/**
 * Maximum length of a message that an expression produces, in bytes: `MaxEvaluatedMessageExpressionSizeBytes` of Kubernetes.
 */
const longestMessage = 5 * 1024;

/**
 * The message that an expression produced. `undefined` if it could not be evaluated or shown; the rule's static message is then
 * used.
 */
function messageOf(made: Value): string | undefined {
  if (typeof made !== "string") return undefined;
  const text = made.trim();
  return text === "" || text.includes("\n") || Buffer.byteLength(text) > longestMessage ? undefined : text;
}

/** Formats a rule's `fieldPath`, `.a['b-c'].d`, for errors: `.a.b-c.d`, or `.a[b-c].d` if `a` is a map. */
function pathBelow(fieldPath: string, schema: Schema): string {
  let [path, node]: [string, Schema | undefined] = ["", schema];
  for (const [, bare, quoted] of fieldPath.matchAll(/\.([^.[]+)|\['((?:\\.|[^'])*)'\]/g)) {
    const name = bare ?? quoted?.replace(/\\(.)/g, "$1") ?? "";
    const rest: Schema["additionalProperties"] = node?.properties ? undefined : node?.additionalProperties;
    path += rest ? `[${name}]` : `.${name}`;
    node = typeof rest === "object" ? rest : node?.properties?.[name];
  }
  return path;
}

function prepare(rule: ValidationRule, schema: Schema, whole: boolean): Programs | Error {
  let program = programs.get(rule);
  if (!program) {
    try {
      const self = ruleType(schema, whole);
      if (!self) throw new Error("the schema has no type that rules can name");
      const optional = rule.optionalOldSelf === true;
      const message = rule.messageExpression ? compileRule(rule.messageExpression, self, optional) : undefined;
      program = { rule: compileRule(rule.rule, self, optional), message };
    } catch (error) {
      program = error instanceof Error ? error : new Error(String(error));
    }
    programs.set(rule, program);
  }
  return program;
}
