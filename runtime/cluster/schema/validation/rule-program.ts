import {
  type ASTNode,
  CelEnvironment,
  type CompiledExpression,
  childrenOf,
  compile,
  type DeclaredType,
  ExpressionError,
  estimateCost,
} from "@watchfire/cel";
import type { RuleType } from "./rule-type.ts";

/** A rule's expression, or its messageExpression, ready to run. */
export interface RuleProgram {
  readonly run: CompiledExpression;
  /** The type checker's name of the result's type; `dyn` if it is known at run time alone. */
  readonly type: string;
  /** True if it reads the stored value: such a rule runs on updates alone. */
  readonly usesOldSelf: boolean;
  /** The most that it may cost by Kubernetes' estimate. */
  readonly cost: number;
}

/** Kubernetes bounds no rule's text, and the levels of its syntax at 250. */
const limits = { longest: Number.POSITIVE_INFINITY, deepest: 250, asRule: true };

/** Environments of a type, by the type of its `oldSelf`. */
const environments = new WeakMap<RuleType, Partial<Record<"same" | "optional", CelEnvironment>>>();

function environmentOf(self: RuleType, optionalOldSelf: boolean): CelEnvironment {
  const made = environments.get(self) ?? {};
  environments.set(self, made);
  const oldSelf: DeclaredType = optionalOldSelf ? { name: "optional", element: self, mostElements: 0 } : self;
  const which = optionalOldSelf ? "optional" : "same";
  made[which] ??= new CelEnvironment({ self, oldSelf }, limits);
  return made[which];
}

/**
 * Compiles an expression over `self` and `oldSelf`.
 *
 * @throws ExpressionError
 */
export function compileRule(expression: string, self: RuleType, optionalOldSelf: boolean): RuleProgram {
  const { ast, type } = environmentOf(self, optionalOldSelf).parse(expression);
  refuseUnknownNames(ast);
  return { run: compile(ast), type, usesOldSelf: names(ast, "oldSelf"), cost: estimateCost(ast, self) };
}

const names = (node: ASTNode, variable: string): boolean =>
  (node.op === "id" && node.args === variable) || childrenOf(node).some((child) => names(child, variable));

/** Namespaces of conditions, `cel.bind()` and `base64.decode()`, that Kubernetes gives no rule. */
const unknownNames: ReadonlySet<string> = new Set(["base64", "cel"]);

function refuseUnknownNames(node: ASTNode): void {
  if (node.op === "id" && unknownNames.has(node.args)) {
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `Unknown variable: ${node.args}`, node.start);
  }
  childrenOf(node).forEach(refuseUnknownNames);
}

/** What is wrong with an expression that does not compile, as the API server shows it. */
export function describeFault(error: ExpressionError, expression: string): string {
  const { text, at } = inGoWords(error, expression);
  const before = expression.slice(0, at).split("\n");
  const column = before.at(-1)?.length ?? 0;
  const line = expression.split("\n")[before.length - 1] ?? "";
  return `ERROR: <input>:${before.length}:${column + 1}: ${text}\n | ${line}\n | ${".".repeat(column)}^`;
}

/** The error as cel-go says it, for the mistakes that are usual, and where: an offset in the expression. */
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
