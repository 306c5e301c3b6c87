import { type ASTNode, ExpressionError, patternSize } from "@watchfire/cel";
import { suggest } from "../../base/suggest.ts";
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
    if (error instanceof ExpressionError) return `the expression ${clearer(error.message)}`;
    throw error;
  }
}

/** Names that people write and misspell; a function of another name is not corrected. */
const functionNames = (
  "startsWith endsWith contains matches size has all exists exists_one map filter split join lowerAscii upperAscii " +
  "replace substring trim indexOf find findAll min max sum isSorted string int double bool timestamp duration quantity"
).split(" ");

/** Returns the CEL parser's message, with what to write instead if that is known. */
function clearer(message: string): string {
  const called = /no matching overload for '(?:.*\.)?(\w+)\(/.exec(message)?.[1];
  if (called !== undefined && !functionNames.includes(called)) {
    const meant = suggest(called, functionNames);
    return meant === undefined ? message : `calls ${called}, which is not a function: did you mean ${meant}?`;
  }
  const variable = /unknown variable: (\w+)/.exec(message)?.[1];
  if (variable !== undefined) {
    const meant = variable.length < 4 ? undefined : suggest(variable, ["object", "oldObject"]);
    return `${message}; an expression has object and oldObject${meant === undefined ? "" : `: did you mean ${meant}?`}`;
  }
  const operator = /unexpected character: ([=&|])/.exec(message)?.[1];
  return operator === undefined ? message : `${message}; the operator is ${operator}${operator}`;
}
