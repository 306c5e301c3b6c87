import type { ASTNode } from "@marcbachmann/cel-js";
import { ExpressionError } from "./expression-error.ts";
import { takesPattern } from "./regex.ts";
import { largestProgram, sizeOf } from "./regular-expression.ts";

export const syntaxError = (message: string, at?: number): ExpressionError =>
  new ExpressionError("WF_FILTER_CONDITION_SYNTAX", message, at);

/**
 * Refuses expressions for which the type checker would recurse too deeply, or double the length of a type's name at each step.
 * @param flat true to count a chain of one logical operator as one level, as in Kubernetes
 * @throws ExpressionError
 */
export function bound(root: ASTNode, deepest: number, flat = false): void {
  const waiting: [ASTNode, number][] = [[root, 0]];
  let instructions = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, depth] = next;
    if (depth > deepest) {
      throw syntaxError(`nests deeper than ${deepest} levels: split it into several conditions`, node.start);
    }
    if (node.op === "map") {
      const computed = node.args.find(([key]) => key.op !== "value");
      if (computed) throw syntaxError("a map's keys must be literals", computed[0].start);
    }
    const pattern = constantPattern(node);
    instructions += pattern ? sizeOf(pattern.args) : 0;
    if (pattern && instructions > largestProgram) {
      throw syntaxError(`its patterns unfold to more than ${largestProgram} instructions of RE2`, pattern.start);
    }
    for (const child of childrenOf(node)) waiting.push([child, flat && isChain(node, child) ? depth : depth + 1]);
  }
}

/** Returns the size of all constant patterns of an expression, in RE2's instructions, as estimated before they are compiled. */
export function patternSize(root: ASTNode): number {
  let instructions = 0;
  const waiting = [root];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    const pattern = constantPattern(node);
    if (pattern) instructions += sizeOf(pattern.args);
    waiting.push(...childrenOf(node));
  }
  return instructions;
}

const isChain = ({ op }: ASTNode, child: ASTNode): boolean => (op === "||" || op === "&&") && child.op === op;

type Text = Extract<ASTNode, { readonly op: "value" }> & { readonly args: string };

/** Returns the pattern of a call, if it is a literal. */
export function constantPattern(node: ASTNode): Text | undefined {
  if (node.op !== "call" && node.op !== "rcall") return undefined;
  const pattern = takesPattern.has(node.args[0]) ? childrenOf(node)[1] : undefined;
  return pattern?.op === "value" && typeof pattern.args === "string" ? (pattern as Text) : undefined;
}

/** Returns a node's operands, in the order of the text. */
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

/** Returns the value of a literal int, with its sign. `undefined` for other nodes. */
export function constantInt(node: ASTNode): number | undefined {
  if (node.op === "-_" && node.args.op === "value" && typeof node.args.args === "bigint")
    return -Number(node.args.args);
  return node.op === "value" && typeof node.args === "bigint" ? Number(node.args) : undefined;
}
