import { isFields } from "./object.ts";
import { badRequest } from "./status.ts";

type Labels = Readonly<Record<string, string>>;

/** One requirement of a label selector. */
interface Requirement {
  key: string;
  operator: "in" | "notin" | "exists" | "absent" | "gt" | "lt";
  values: readonly string[];
}

/** A label selector, as the query parameter has it or as metav1.LabelSelector. Empty matches everything. */
export type LabelSelector = readonly Requirement[];

const token = /\s*(!=|==|=|!|\(|\)|,|>|<|[^\s!=(),<>]+)/gy;

/** Parses the query form: `a=b,c!=d,e in (x,y),!f,g,h>5`. Throws a 400. */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens: string[] = [];
  token.lastIndex = 0;
  for (let match = token.exec(text); match; match = token.exec(text)) tokens.push(match[1] ?? "");
  const requirements: Requirement[] = [];
  if (tokens.length === 0) return requirements;
  let index = 0;
  const next = () => tokens[index++] ?? "";
  do requirements.push(requirement(next, () => tokens[index] ?? ""));
  while (index < tokens.length && next() === ",");
  return requirements;
}

const operators: Record<string, Requirement["operator"]> = {
  "=": "in",
  "==": "in",
  "!=": "notin",
  in: "in",
  notin: "notin",
  ">": "gt",
  "<": "lt",
};

const signs = new Set(["!=", "==", "=", "!", "(", ")", ",", ">", "<", ""]);

function requirement(next: () => string, peek: () => string): Requirement {
  let key = next();
  if (key === "!") {
    key = next();
    if (signs.has(key)) throw unexpected(key, "identifier");
    return { key, operator: "absent", values: [] };
  }
  if (signs.has(key)) throw unexpected(key, "!, identifier, or ','");
  const following = peek();
  if (following === "" || following === ",") return { key, operator: "exists", values: [] };
  const sign = next();
  const operator = operators[sign];
  if (!operator) throw unexpected(sign, "in, notin, =, ==, !=, gt, lt");
  if (sign === "in" || sign === "notin") return { key, operator, values: set(next) };
  const value = signs.has(peek()) ? "" : next();
  if (!["", ","].includes(peek())) throw unexpected(peek(), "',' or 'end of string'");
  return { key, operator, values: [value] };
}

function set(next: () => string): string[] {
  const open = next();
  if (open !== "(") throw unexpected(open, "'('");
  const values: string[] = [];
  let wanted = true;
  for (let part = next(); part !== ")"; part = next()) {
    if (part === "") throw unexpected("", "',' or ')'");
    if (part === ",") {
      if (wanted) values.push("");
      wanted = true;
    } else {
      values.push(part);
      wanted = false;
    }
  }
  return values;
}

function unexpected(found: string, expected: string) {
  return badRequest(`unable to parse requirement: found '${found}', expected: ${expected}`);
}

/** Whether labels satisfy every requirement. */
export function matchesLabels(selector: LabelSelector, labels: Labels | undefined): boolean {
  return selector.every(({ key, operator, values }) => {
    const value = labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case "exists":
        return value !== undefined;
      case "absent":
        return value === undefined;
      case "in":
        return value !== undefined && values.includes(value);
      case "notin":
        return value === undefined || !values.includes(value);
      case "gt":
        return order(value, values[0]) > 0;
      default:
        return order(value, values[0]) < 0;
    }
  });
}

/**
 * Compares two texts as integers. Negative if the first is less, positive if it is more; 0 if they are equal or if one of the
 * texts is not an integer.
 */
function order(left = "", right = ""): number {
  if (![left, right].every((text) => /^[-+]?\d+$/.test(text))) return 0;
  const [a, b] = [left, right].map((text) => BigInt(text.replace(/^\+/, "")));
  return a === b || a === undefined || b === undefined ? 0 : a < b ? -1 : 1;
}

const expressionOperators: Record<string, Requirement["operator"]> = {
  In: "in",
  NotIn: "notin",
  Exists: "exists",
  DoesNotExist: "absent",
};

/** Reads a metav1.LabelSelector. */
function labelSelectorOf(selector: unknown): LabelSelector {
  if (!isFields(selector)) return [];
  const requirements: Requirement[] = [];
  if (isFields(selector.matchLabels))
    for (const [key, value] of Object.entries(selector.matchLabels))
      requirements.push({ key, operator: "in", values: [String(value)] });
  for (const one of Array.isArray(selector.matchExpressions) ? selector.matchExpressions : []) {
    const operator = isFields(one) ? expressionOperators[String(one.operator)] : undefined;
    if (!isFields(one) || !operator) continue;
    requirements.push({
      key: String(one.key),
      operator,
      values: Array.isArray(one.values) ? one.values.map(String) : [],
    });
  }
  return requirements;
}

/** Whether labels satisfy a metav1.LabelSelector. */
export function selectorMatches(selector: unknown, labels: unknown): boolean {
  const strings: Record<string, string> = {};
  if (isFields(labels)) for (const [key, value] of Object.entries(labels)) strings[key] = String(value);
  return matchesLabels(labelSelectorOf(selector), strings);
}

/** A metav1.LabelSelector, or a plain map of labels, in the query form. */
export function labelSelectorText(selector: unknown): string {
  const structured = isFields(selector) && !("matchLabels" in selector) && !("matchExpressions" in selector);
  return labelSelectorOf(structured ? { matchLabels: selector } : selector)
    .map(({ key, operator, values }) => {
      if (operator === "exists") return key;
      if (operator === "absent") return `!${key}`;
      if (operator === "in" && values.length === 1) return `${key}=${values[0]}`;
      return `${key} ${operator} (${[...values].sort().join(",")})`;
    })
    .sort()
    .join(",");
}
