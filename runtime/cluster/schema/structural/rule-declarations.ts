import { ExpressionError } from "@watchfire/cel";
import type { FieldError } from "../field-error.ts";
import type { Json } from "../json.ts";
import type { Schema, ValidationRule } from "../schema.ts";
import { forbidden, invalid, notSupported, required } from "../validation/errors.ts";
import { describeFault } from "../validation/rule-fault.ts";
import { compileRule, type RuleProgram } from "../validation/rule-program.ts";
import { mostTimes, type RuleType, ruleType } from "../validation/rule-type.ts";
import { hasRules } from "../validation/rules.ts";

const reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/**
 * Limits of the estimated cost of one rule, and of all rules of a schema: pkg/apis/apiextensions/validation of
 * apiextensions-apiserver.
 */
const ruleLimit = 10_000_000;
const schemaLimit = 100_000_000;

/**
 * Checks the rules, `x-kubernetes-validations`, of a CRD version's schema and returns their faults. The schema itself must be
 * valid.
 */
export function checkRuleDeclarations(schema: Schema, path: string): FieldError[] {
  const declarations = new RuleDeclarations();
  declarations.walk(schema, { path, top: true, uncorrelatable: undefined, times: 1 });
  return declarations.errors(path);
}

/** The position of a schema with rules. */
interface RulePlace {
  readonly path: string;
  readonly top: boolean;
  /**
   * The path of the enclosing list whose items cannot be matched with the stored ones, so that no rule below it can read oldSelf.
   */
  readonly uncorrelatable: string | undefined;
  /** The maximum number of values of the schema in one object; `undefined` if an enclosing list or map has no bound. */
  readonly times: number | undefined;
}

/** All rules of a schema, which share a cost budget. */
class RuleDeclarations {
  private readonly textErrors: FieldError[] = [];
  private readonly ruleErrors: FieldError[] = [];
  private readonly costs: { readonly path: string; readonly cost: number }[] = [];

  errors(path: string): FieldError[] {
    const total = this.costs.reduce((sum, { cost }) => sum + cost, 0);
    if (total <= schemaLimit) return [...this.textErrors, ...this.ruleErrors];
    const dearest = this.costs
      .filter(({ cost }) => cost >= schemaLimit / 100)
      .sort((one, other) => other.cost - one.cost)
      .slice(0, 4);
    const why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    return [
      ...this.textErrors,
      ...this.ruleErrors,
      ...dearest.map((each) => forbidden(each.path, why)),
      forbidden(path, overBudget(what, total / schemaLimit)),
    ];
  }

  walk(schema: Schema, place: RulePlace): void {
    if (!hasRules(schema)) return;
    const { path } = place;
    const before = this.textErrors.length;
    const { items, additionalProperties: rest, properties = {} } = schema;
    const inside = { ...place, top: false, times: timesBelow(schema, place.times) };
    for (const [name, property] of Object.entries(properties)) {
      this.walk(property, { ...inside, path: `${path}.properties[${name}]` });
    }
    if (typeof rest === "object") this.walk(rest, { ...inside, path: `${path}.additionalProperties` });
    if (items) {
      const isMap = schema["x-kubernetes-list-type"] === "map";
      const uncorrelatable = place.uncorrelatable ?? (isMap ? undefined : path);
      this.walk(items, { ...inside, path: `${path}.items`, uncorrelatable });
    }
    const rules = schema["x-kubernetes-validations"]?.map((rule, index) => {
      const at = `${path}.x-kubernetes-validations[${index}]`;
      this.textErrors.push(...checkTexts(rule, schema, at));
      return { rule, at };
    });
    if (!rules || this.textErrors.length > before) return;
    const self = ruleType(schema, place.top || schema["x-kubernetes-embedded-resource"] === true);
    for (const { rule, at } of rules) this.checkRule(rule, self, at, place);
  }

  private checkRule(rule: ValidationRule, self: RuleType | undefined, at: string, place: RulePlace): void {
    if (!self) {
      this.ruleErrors.push(invalid(`${at}.rule`, internal(rule), "the schema has no type that rules can name"));
      return;
    }
    const program = compiled(rule.rule, self, rule);
    if (typeof program === "string") {
      this.ruleErrors.push(invalid(`${at}.rule`, internal(rule), `compilation failed: ${program}`));
      return;
    }
    if (program.type !== "bool" && program.type !== "dyn") {
      this.ruleErrors.push(invalid(`${at}.rule`, internal(rule), "cel expression must evaluate to a bool"));
      return;
    }
    const times = place.times ?? mostTimes(self.leastBytes);
    this.observe(`${at}.rule`, "estimated rule cost", program.cost === 0 ? 0 : program.cost * times);
    if (rule.messageExpression) this.checkMessage(rule, self, `${at}.messageExpression`);
    const { uncorrelatable } = place;
    if (program.usesOldSelf && uncorrelatable !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`;
      this.ruleErrors.push(invalid(`${at}.rule`, rule.rule, why));
    } else if (!program.usesOldSelf && rule.optionalOldSelf !== undefined) {
      const why = "may not be set if oldSelf is not used in rule";
      this.ruleErrors.push(invalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, why));
    }
  }

  private checkMessage(rule: ValidationRule, self: RuleType, at: string): void {
    const program = compiled(rule.messageExpression ?? "", self, rule);
    if (typeof program === "string") {
      this.ruleErrors.push(invalid(at, internal(rule), `messageExpression compilation failed: ${program}`));
    } else if (program.type !== "string" && program.type !== "dyn") {
      this.ruleErrors.push(invalid(at, internal(rule), "messageExpression must evaluate to a string"));
    } else this.observe(at, "estimated messageExpression cost", program.cost);
  }

  private observe(path: string, what: string, cost: number): void {
    if (cost > ruleLimit) this.ruleErrors.push(forbidden(path, overBudget(what, cost / ruleLimit)));
    this.costs.push({ path, cost });
  }
}

/** The maximum number of values of the schemas below: that of the schema, multiplied by its items or entries. */
function timesBelow({ type, additionalProperties, maxItems, maxProperties }: Schema, times: number | undefined) {
  const isMap = type === "object" && additionalProperties !== undefined;
  const factor = type === "array" ? maxItems : isMap ? maxProperties : 1;
  return times === undefined || factor === undefined ? undefined : times * Math.max(0, factor);
}

function overBudget(what: string, factor: number): string {
  // Go rounds a tie to the even digit.
  const isTie = factor % 1 === 0.25;
  const digits = factor < 1.5 ? factor.toFixed(6) : (isTie ? factor - 0.05 : factor).toFixed(1);
  const shown = factor > 100 ? "more than 100x" : `${digits}x`;
  return `${what} exceeds budget by factor of ${shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
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

/** True if a JSON path, `.a['b-c'].d`, leads to a field that the schema declares. */
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

/** Compiles an expression of a rule. Returns the API server's message if that fails. */
function compiled(expression: string, self: RuleType, { optionalOldSelf }: ValidationRule): RuleProgram | string {
  try {
    return compileRule(expression, self, optionalOldSelf === true);
  } catch (error) {
    if (error instanceof ExpressionError) return describeFault(error, expression);
    throw error;
  }
}

/** The rule as the real server's internal structure prints. */
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
