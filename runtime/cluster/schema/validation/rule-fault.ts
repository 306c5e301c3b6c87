import type { ExpressionError } from "@watchfire/cel";

/** Formats the error of an expression that does not compile, as the API server shows it. */
export function describeFault(error: ExpressionError, expression: string): string {
  const { text, at } = inGoWords(error, expression);
  const before = expression.slice(0, at).split("\n");
  const column = before.at(-1)?.length ?? 0;
  const line = expression.split("\n")[before.length - 1] ?? "";
  return `ERROR: <input>:${before.length}:${column + 1}: ${text}\n | ${line}\n | ${".".repeat(column)}^`;
}

/** The error in cel-go's words for the common mistakes, with its offset in the expression. */
function inGoWords({ code, detail, at = 0 }: ExpressionError, expression: string): { text: string; at: number } {
  if (code === "WF_FILTER_CONDITION_SYNTAX") return { text: `Syntax error: ${detail}`, at };
  const [, variable] = /^Unknown variable: (.*)$/.exec(detail) ?? [];
  if (variable) return { text: `undeclared reference to '${variable}' (in container '')`, at };
  const [, field] = /^No such key: (.*)$/.exec(detail) ?? [];
  if (field) return { text: `undefined field '${field}'`, at: expression[at] === "." ? at : Math.max(at - 1, 0) };
  const [, left, operator = "", right] = /^no such overload: (.+?) ([-+*/%=!<>]+|in) (.+)$/.exec(detail) ?? [];
  if (left === undefined || right === undefined) return { text: detail, at };
  const found = expression.indexOf(operator, at);
  const name = operator === "in" ? "@in" : `_${operator}_`;
  const operands = [left, right].map((type) => type.replaceAll("<", "(").replaceAll(">", ")"));
  const text = `found no matching overload for '${name}' applied to '(${operands.join(", ")})'`;
  return { text, at: found < 0 ? at : found };
}

const conversionTypes: Readonly<Record<string, string>> = {
  duration: "google.protobuf.Duration",
  timestamp: "google.protobuf.Timestamp",
};

/** Evaluation errors whose text contains no part of an object, with the API server's words for each. */
const goWords: readonly (readonly [RegExp, (...parts: string[]) => string])[] = [
  [/^no such overload/, () => "no such overload"],
  [
    /^quantity\(\) cannot convert/,
    () => "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    /^(\w+)\(\) cannot convert a text/,
    (_, type = "") => `type conversion error from 'string' to '${conversionTypes[type] ?? type}'`,
  ],
  [/^index (-?\d+) out of \d+ elements$/, (_, index) => `index out of bounds: ${index}`],
  [/^the optional has no value$/, () => "optional.none() dereference"],
  [/^(\w+)\(\) of an empty list$/, (_, name) => `${name} called on empty list`],
  [
    /^index out of range: substring\((-?\d+), (-?\d+)\) of (\d+) characters$/,
    (_, from, to, length) => `index out of range: ${Number(from) < 0 || Number(from) > Number(length) ? from : to}`,
  ],
  [
    /^index out of range: (slice\(.*\)) of (\d+) elements$/,
    (_, slice, length) => `cannot ${slice}, list is length ${length}`,
  ],
];

/**
 * Formats the error of a rule that could not be evaluated, as the API server shows it. `rule` is its message, or its text.
 */
export function evaluationFault(message: string, rule: string): string {
  const [pattern, words] = goWords.find(([each]) => each.test(message)) ?? [];
  const text = pattern && words ? words(...(pattern.exec(message) ?? [])) : message;
  return text === "no such overload"
    ? `'${text}': call arguments did not match a supported operator, function or macro signature for rule: ${rule}`
    : `${text} evaluating rule: ${rule}`;
}
