import type { ASTNode } from "@marcbachmann/cel-js";
import { childrenOf } from "./syntax.ts";

/** The parts of the type checker that a macro uses. */
interface Checker {
  check(node: ASTNode, context: Context): CelType;
  getType(name: string): CelType;
  createError(code: string, message: string, node: ASTNode): Error;
}
interface Context {
  forkWithVariable(name: string, type: CelType): Context;
}
interface CelType {
  readonly kind: string;
  readonly name: string;
  readonly keyType?: CelType;
  readonly valueType?: CelType;
  isDynOrBool(): boolean;
}
interface Call {
  readonly args: readonly ASTNode[];
  readonly receiver: ASTNode;
}
interface Macro {
  readonly typeCheck: (checker: Checker, macro: unknown, context: Context) => CelType;
  readonly evaluate: () => never;
}

/** The result of a macro's body: a bool, or an element of the resulting list or map. */
type Result = "bool" | "list" | "map" | "optional" | "same";

const bodiesOf = (args: readonly ASTNode[], variables: number): readonly ASTNode[] => args.slice(variables);

/** Checks the types of a macro with variables, a filter if there are two bodies, and a body. */
const macro =
  (variables: 1 | 2, result: Result) =>
  ({ args, receiver }: Call): Macro => ({
    evaluate: never,
    typeCheck: (checker, _, context) => {
      const range = checker.check(receiver, context);
      let inner = context;
      for (const [index, type] of variableTypes(checker, range, variables, receiver).entries()) {
        const variable = args[index];
        if (variable?.op !== "id")
          throw checker.createError("invalid_macro_argument", "expected a variable's name", variable ?? receiver);
        inner = inner.forkWithVariable(variable.args, type);
      }
      const bodies = bodiesOf(args, variables);
      const types = bodies.map((body) => checker.check(body, inner));
      const test = result === "bool" || bodies.length === 2 ? 0 : -1;
      const tested = bodies[test];
      if (tested && types[test]?.isDynOrBool() === false) {
        throw checker.createError(
          "invalid_condition_type",
          `predicate must return bool, got '${types[test]?.name}'`,
          tested,
        );
      }
      return resultType(checker, result, range, types.at(-1));
    },
  });

function variableTypes(checker: Checker, range: CelType, variables: 1 | 2, node: ASTNode): readonly CelType[] {
  const dyn = checker.getType("dyn");
  if (variables === 1) return [range.kind === "optional" ? (range.valueType ?? dyn) : dyn];
  if (range.kind === "list") return [checker.getType("int"), range.valueType ?? dyn];
  if (range.kind === "map") return [range.keyType ?? dyn, range.valueType ?? dyn];
  if (range.kind === "dyn") return [dyn, dyn];
  throw checker.createError("invalid_comprehension_range", `cannot range over '${range.name}'`, node);
}

function resultType(checker: Checker, result: Result, range: CelType, body: CelType | undefined): CelType {
  const inner = body && !/[A-Z]\b/.test(body.name) ? body.name : "dyn";
  switch (result) {
    case "bool":
      return checker.getType("bool");
    case "list":
      return checker.getType(`list<${inner}>`);
    case "optional":
      return checker.getType(`optional<${inner}>`);
    case "same":
      return body ?? checker.getType("dyn");
    case "map": {
      const key = range.kind === "list" ? "int" : (range.keyType?.name ?? "dyn");
      return checker.getType(`map<${key}, ${inner}>`);
    }
  }
}

/**
 * Macros that the type checker's library lacks: those of cel-go's extension for comprehensions with two variables, an index and
 * an element or a key and a value; and two for optionals.
 */
export const pairMacros: readonly (readonly [signature: string, expand: (call: Call) => Macro])[] = [
  ["list.all(ast, ast, ast): bool", macro(2, "bool")],
  ["list.exists(ast, ast, ast): bool", macro(2, "bool")],
  ["list.exists_one(ast, ast, ast): bool", macro(2, "bool")],
  ["list.existsOne(ast, ast, ast): bool", macro(2, "bool")],
  ["list.transformList(ast, ast, ast): list<dyn>", macro(2, "list")],
  ["list.transformList(ast, ast, ast, ast): list<dyn>", macro(2, "list")],
  ["list.transformMap(ast, ast, ast): map<dyn, dyn>", macro(2, "map")],
  ["list.transformMap(ast, ast, ast, ast): map<dyn, dyn>", macro(2, "map")],
  ["optional.optMap(ast, ast): optional<dyn>", macro(1, "optional")],
  ["optional.optFlatMap(ast, ast): optional<dyn>", macro(1, "same")],
];

/** Allows `has()` on a field of any operand. The library's own only accepts a chain of names. */
export function checkPresenceByType(node: ASTNode): void {
  for (const child of childrenOf(node)) checkPresenceByType(child);
  if (node.op !== "call" || node.args[0] !== "has") return;
  const [field] = node.args[1];
  if (field?.op !== "." || node.args[1].length !== 1) return;
  const typeCheck: Macro["typeCheck"] = (checker, _, context) => {
    checker.check(field, context);
    return checker.getType("bool");
  };
  (node as ASTNode & { setMeta(name: "macro", macro: Macro): void }).setMeta("macro", { typeCheck, evaluate: never });
}

function never(): never {
  throw new TypeError("expressions are not evaluated by the type checker's library");
}
