import { type ASTNode, ExpressionError, patternSize } from "@watchfire/cel";
import { type CompileBudget, compileBudget } from "../../manifest/condition-limits.ts";
import { Expression, parseCondition, parseKey } from "./expression.ts";
import { checkKeyExpression } from "./key-rule.ts";

/** The members of an object of which only the metadata is read. */
const metadataFields: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/**
 * Returns what is wrong with a CEL expression of `matchConditions`, in words; `undefined` if it compiles to a bool, and names
 * only fields that are read.
 * @param object the part of each object that is read, as in the manifest. Default: Full.
 * @param use what the expression is for. A `key` returns names instead of a bool.
 * @param budget what the manifest's expressions may still take; is charged for this one, before it is compiled
 */
export function checkExpression(
  expression: string,
  object: "Full" | "Metadata" = "Full",
  use: "condition" | "key" = "condition",
  budget: CompileBudget = compileBudget(),
): string | undefined {
  // The manifest is refused already, so the rest of it is not compiled.
  if (budget.characters < 0 || budget.instructions < 0) return undefined;
  budget.characters -= expression.length;
  if (budget.characters < 0)
    return `the expressions of one manifest have more than ${compileBudget().characters} characters together`;
  try {
    const ast: ASTNode = use === "key" ? parseKey(expression) : parseCondition(expression);
    budget.instructions -= patternSize(ast);
    if (budget.instructions < 0)
      return `the patterns of one manifest unfold to more than ${compileBudget().instructions} instructions of RE2 together`;
    if (use === "key") return checkKeyExpression(ast, object);
    const { objectPaths, oldObjectPaths } = new Expression(expression, ast);
    if (object === "Full") return undefined;
    const unread = [...objectPaths, ...oldObjectPaths].find(
      ([first]) => first !== undefined && !metadataFields.has(first),
    );
    return unread && `the expression reads the field ${unread[0]}, but \`object\` is Metadata`;
  } catch (error) {
    if (error instanceof ExpressionError) return `the expression ${error.message}`;
    throw error;
  }
}
