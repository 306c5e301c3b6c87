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
