import { ExpressionError } from "@watchfire/cel";
import type { FieldError } from "../field-error.ts";
import type { Json } from "../json.ts";
import type { Schema, ValidationRule } from "../schema.ts";
import { invalid, notSupported, required } from "../validation/errors.ts";
import { compileRule, describeFault, type RuleProgram } from "../validation/rule-program.ts";
import { type RuleType, ruleType } from "../validation/rule-type.ts";

const reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/**
 * What is wrong with a schema's `x-kubernetes-validations`. `uncorrelatable`: the path of the list, if it is below one
 * whose items cannot be told from the stored ones.
 */
export function checkRuleDeclarations(
  schema: Schema,
  path: string,
  top: boolean,
  uncorrelatable: string | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  schema["x-kubernetes-validations"]?.forEach((rule, index) => {
    const at = `${path}.x-kubernetes-validations[${index}]`;
    errors.push(...checkTexts(rule, schema, at));
    if (rule.rule?.trim()) errors.push(...checkCompiled(rule, schema, at, top, uncorrelatable));
  });
  return errors;
}

function checkTexts(rule: ValidationRule, schema: Schema, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message } = rule;
  if (!rule.rule?.trim()) errors.push(required(`${at}.rule`, "rule is not specified"));
  if (message !== undefined && message !== "" && message.trim() === "") {
    errors.push(invalid(`${at}.message`, message, "must be non-empty if specified"));
  } else if (message?.trim().includes("\n")) {
    errors.push(invalid(`${at}.message`, message, "must not contain line breaks"));
  } else if (!message && rule.rule?.trim().includes("\n")) {
    errors.push(required(`${at}.message`, "message must be specified if rule contains line breaks"));
  }
  if (rule.reason !== undefined && !reasons.includes(rule.reason)) {
    errors.push(notSupported(`${at}.reason`, rule.reason, reasons));
  }
  if (rule.fieldPath && !leadsToField(rule.fieldPath, schema)) {
    errors.push(invalid(`${at}.fieldPath`, rule.fieldPath, "must be a valid path"));
  }
  return errors;
}

/** Whether a JSON path, `.a['b-c'].d`, leads to a field that the schema declares. */
function leadsToField(path: string, schema: Schema): boolean {
  const step = /\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:\\.|[^'\\])*)'\]/gy;
  let node: Schema | undefined = schema;
  while (step.lastIndex < path.length) {
    const [, name, quoted] = step.exec(path) ?? [];
    const key = name ?? quoted?.replace(/\\(.)/g, "$1");
    if (key === undefined || !node) return false;
    const rest: Schema["additionalProperties"] = node.additionalProperties;
    node = node.properties?.[key] ?? (typeof rest === "object" ? rest : undefined);
  }
  return node !== undefined;
}

function checkCompiled(
  rule: ValidationRule,
  schema: Schema,
  at: string,
  top: boolean,
  uncorrelatable: string | undefined,
): FieldError[] {
  const self = ruleType(schema, top || schema["x-kubernetes-embedded-resource"] === true);
  if (!self) return [invalid(`${at}.rule`, internal(rule), "the schema has no type that rules can name")];
  const errors: FieldError[] = [];
  const program = compiled(rule.rule, self, rule);
  if (typeof program === "string") {
    errors.push(invalid(`${at}.rule`, internal(rule), `compilation failed: ${program}`));
  } else if (program.type !== "bool" && program.type !== "dyn") {
    errors.push(invalid(`${at}.rule`, internal(rule), "cel expression must evaluate to a bool"));
  } else if (program.usesOldSelf && uncorrelatable !== undefined) {
    const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`;
    errors.push(invalid(`${at}.rule`, rule.rule, why));
  } else if (!program.usesOldSelf && rule.optionalOldSelf !== undefined) {
    const why = "may not be set if oldSelf is not used in rule";
    errors.push(invalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, why));
  }
  if (!rule.messageExpression || errors.length > 0) return errors;
  const message = compiled(rule.messageExpression, self, rule);
  const where = `${at}.messageExpression`;
  if (typeof message === "string") {
    errors.push(invalid(where, internal(rule), `messageExpression compilation failed: ${message}`));
  } else if (message.type !== "string" && message.type !== "dyn") {
    errors.push(invalid(where, internal(rule), "messageExpression must evaluate to a string"));
  }
  return errors;
}

/** An expression of a rule, compiled; or what is wrong with it, as the API server shows it. */
function compiled(expression: string, self: RuleType, { optionalOldSelf }: ValidationRule): RuleProgram | string {
  try {
    return compileRule(expression, self, optionalOldSelf === true);
  } catch (error) {
    if (error instanceof ExpressionError) return describeFault(error, expression);
    throw error;
  }
}

/** The rule as the real server's own structure prints. */
function internal(rule: ValidationRule): Json {
  return {
    Rule: rule.rule,
    Message: rule.message ?? "",
    MessageExpression: rule.messageExpression ?? "",
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}
