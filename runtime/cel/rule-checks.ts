import type { ASTNode } from "@marcbachmann/cel-js";
import { checkedTypeOf } from "./checked-type.ts";
import type { DeclaredType } from "./declared-type.ts";
import { ExpressionError } from "./expression-error.ts";
import { clausesOf } from "./string-format.ts";
import { childrenOf } from "./syntax.ts";
import { Duration, Timestamp } from "./time.ts";

/**
 * Refuses expressions that Kubernetes refuses although their types fit: literals of mixed types, invalid time constants, a format
 * with values that do not fit, fields that an object does not have. `typed`: returns an object's type by the type checker's name.
 * @throws ExpressionError
 */
export function checkAsRule(node: ASTNode, typed: (name: string) => DeclaredType | undefined, parent?: ASTNode): void {
  if (node.op === "list" && !(parent?.op === "rcall" && parent.args[0] === "format")) checkAlike(node.args);
  if (node.op === "map") {
    checkAlike(node.args.map(([key]) => key));
    checkAlike(node.args.map(([, value]) => value));
  }
  if (node.op === "call") checkTime(node.args[0], node.args[1]);
  if (node.op === "rcall" && node.args[0] === "format") checkFormat(node.args[1], node.args[2]);
  if (node.op === "[]" || node.op === "[?]") checkKey(node.op, node.args);
  if (node.op === "?:") checkBranch(node.args);
  if (node.op === ".?") {
    const [of, name] = node.args;
    const checked = checkedTypeOf(of);
    const type = typed(checked?.name ?? "");
    if (type?.fields && !type.fields.has(name)) throw refusal(`undefined field '${name}'`, of.end);
    if (checked?.kind === "message" && !type)
      throw refusal(`type '${shortName(checked.name)}' does not support field selection`, of.end);
  }
  for (const child of childrenOf(node)) checkAsRule(child, typed, node);
}

const refusal = (detail: string, at: number): ExpressionError =>
  new ExpressionError("WF_FILTER_CONDITION_TYPE", detail, at);

/** CEL's grammar requires parentheses around a conditional between `?` and `:`. */
function checkBranch([test, yes]: readonly ASTNode[]): void {
  if (!test || yes?.op !== "?:" || yes.input.slice(test.end, yes.start).includes("(")) return;
  throw new ExpressionError("WF_FILTER_CONDITION_SYNTAX", "mismatched input '?' expecting ':'", yes.args[0].end);
}

/** Returns a type's name as cel-go writes it. */
const nameOf = (node: ASTNode): string =>
  (checkedTypeOf(node)?.name ?? "dyn").replaceAll("<", "(").replaceAll(">", ")");

/** The name of a type of time, as cel-go writes it. */
const shortName = (name: string): string => name.replace(/^google\.protobuf\./, "").toLowerCase();

function checkAlike([first, ...others]: readonly ASTNode[]): void {
  if (!first || checkedTypeOf(first)?.hasPlaceholderType) return;
  for (const other of others) {
    if (nameOf(other) === nameOf(first) || checkedTypeOf(other)?.hasPlaceholderType) continue;
    throw refusal(`expected type '${nameOf(first)}' but found '${nameOf(other)}'`, other.start);
  }
}

function checkTime(name: string, [text]: readonly ASTNode[]): void {
  if (text?.op !== "value" || typeof text.args !== "string") return;
  const parse = name === "timestamp" ? Timestamp.parse : name === "duration" ? Duration.parse : undefined;
  try {
    parse?.(text.args);
  } catch {
    throw refusal(`invalid ${name} argument`, text.start);
  }
}

function checkFormat(template: ASTNode, [values]: readonly ASTNode[]): void {
  if (template.op !== "value" || typeof template.args !== "string" || values?.op !== "list") return;
  const [expected, found] = [clausesOf(template.args), values.args.length];
  if (found < expected) throw refusal(`index ${found} out of range`, template.start);
  if (found > expected) {
    const why = `too many arguments supplied to string.format (expected ${expected}, got ${found})`;
    throw refusal(why, values.start);
  }
}

function checkKey(operator: "[]" | "[?]", [of, key]: readonly [ASTNode, ASTNode]): void {
  const type = checkedTypeOf(of);
  const isOdd =
    type?.kind === "message" ||
    (type?.kind === "map" && type.keyType?.name === "string" && !["string", "dyn"].includes(nameOf(key)));
  if (!isOdd) return;
  const symbol = operator === "[]" ? "_[_]" : "_[?_]";
  throw refusal(`found no matching overload for '${symbol}' applied to '(${nameOf(of)}, ${nameOf(key)})'`, of.end);
}
