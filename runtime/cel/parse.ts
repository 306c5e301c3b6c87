import type { ASTNode } from "@marcbachmann/cel-js";
import { longestExpression } from "../manifest/condition-limits.ts";
import { deepestExpression, environment } from "./environment.ts";
import { ExpressionError } from "./expression-error.ts";
import { takesPattern } from "./regex.ts";
import { largestProgram, sizeOf } from "./regular-expression.ts";

/** The parser recurses once per sign. */
const manySigns = /(?:[!-]\s*){50}/;

/**
 * Parses an expression and checks its types.
 *
 * @throws ExpressionError unless it compiles to a bool, or to what may turn out as one
 */
export function parseCondition(expression: string): ASTNode {
  return parse(expression, ["bool", "dyn"]);
}

/** What a trigger's `key` may yield, as the type checker names it. */
const nameTypes = ["string", "list<string>", "list<dyn>", "list", "dyn"];

/** @throws ExpressionError unless it compiles to a text or a list of texts, or to what may turn out as one */
export function parseKey(expression: string): ASTNode {
  return parse(expression, nameTypes, "a name or a list of names");
}

/** The same for an expression of any type. */
export function parse(expression: string, types?: readonly string[], wanted = "bool"): ASTNode {
  if (expression.length > longestExpression) {
    throw syntax(`has ${expression.length} characters, more than ${longestExpression}`);
  }
  const signs = manySigns.exec(expression);
  if (signs) throw syntax("does not compile: too many signs in a row", signs.index);
  let parsed: ReturnType<typeof environment.parse>;
  try {
    parsed = environment.parse(expression);
  } catch (error) {
    throw ExpressionError.from("WF_FILTER_CONDITION_SYNTAX", error);
  }
  bound(parsed.ast);
  const { valid, type = "dyn", error } = parsed.check();
  if (!valid) throw ExpressionError.from("WF_FILTER_CONDITION_TYPE", error);
  if (types && !types.includes(type))
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `yields ${type}, not ${wanted}`);
  return parsed.ast;
}

const syntax = (message: string, at?: number): ExpressionError =>
  new ExpressionError("WF_FILTER_CONDITION_SYNTAX", message, at);

/** What the type checker would recurse into, or double the name of a type at each step of. */
function bound(root: ASTNode): void {
  const waiting: [ASTNode, number][] = [[root, 0]];
  let instructions = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, depth] = next;
    if (depth > deepestExpression) {
      throw syntax(`nests deeper than ${deepestExpression} levels: split it into several conditions`, node.start);
    }
    if (node.op === "map") {
      const computed = node.args.find(([key]) => key.op !== "value");
      if (computed) throw syntax("a map's keys must be literals", computed[0].start);
    }
    const pattern = constantPattern(node);
    instructions += pattern ? sizeOf(pattern.args) : 0;
    if (pattern && instructions > largestProgram) {
      throw syntax(`its patterns unfold to more than ${largestProgram} instructions of RE2`, pattern.start);
    }
    for (const child of childrenOf(node)) waiting.push([child, depth + 1]);
  }
}

type Text = Extract<ASTNode, { readonly op: "value" }> & { readonly args: string };

/** The pattern of a call that takes one, where it is a literal. */
export function constantPattern(node: ASTNode): Text | undefined {
  if (node.op !== "call" && node.op !== "rcall") return undefined;
  const pattern = takesPattern.has(node.args[0]) ? childrenOf(node)[1] : undefined;
  return pattern?.op === "value" && typeof pattern.args === "string" ? (pattern as Text) : undefined;
}

/** A node's operands, in the order of the text. */
export function childrenOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case "value":
    case "id":
      return [];
    case ".":
    case ".?":
      return [node.args[0]];
    case "call":
      return node.args[1];
    case "rcall":
      return [node.args[1], ...node.args[2]];
    case "map":
      return node.args.flat();
    case "!_":
    case "-_":
      return [node.args];
    default:
      return node.args;
  }
}
