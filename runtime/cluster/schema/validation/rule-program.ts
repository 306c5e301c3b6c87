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

/** A compiled expression or messageExpression of a rule. */
export interface RuleProgram {
  readonly run: CompiledExpression;
  /** The type checker's name of the result's type; `dyn` if it is known only at run time. */
  readonly type: string;
  /** True if the expression reads the stored value. Such a rule runs only on updates. */
  readonly usesOldSelf: boolean;
  /** The maximum cost by Kubernetes' estimate. */
  readonly cost: number;
}

/** Limits of a rule. Kubernetes does not limit its text, and limits the nesting of its syntax to 250. */
const limits = { longest: Number.POSITIVE_INFINITY, deepest: 250, asRule: true };

/** CEL environments of a type, by the type of its `oldSelf`. */
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

/** Namespaces that conditions have and Kubernetes' rules do not: `cel.bind()` and `base64.decode()`. */
const unknownNames: ReadonlySet<string> = new Set(["base64", "cel"]);

function refuseUnknownNames(node: ASTNode): void {
  if (node.op === "id" && unknownNames.has(node.args)) {
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `Unknown variable: ${node.args}`, node.start);
  }
  childrenOf(node).forEach(refuseUnknownNames);
}
