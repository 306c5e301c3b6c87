import { ExpressionError } from "@watchfire/cel";
import { Expression } from "./expression.ts";
import { checkKeyExpression } from "./key-rule.ts";

/** The members of an object of which only the metadata is read. */
const metadataFields: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/**
 * Returns what is wrong with a CEL expression of `matchConditions`, in words; `undefined` if it compiles to a bool, and names
 * only fields that are read.
 * @param object the part of each object that is read, as in the manifest. Default: Full.
 * @param use what the expression is for. A `key` returns names instead of a bool.
 */
export function checkExpression(
  expression: string,
  object: "Full" | "Metadata" = "Full",
  use: "condition" | "key" = "condition",
): string | undefined {
  if (use === "key") return checkKeyExpression(expression, object);
  try {
    const { objectPaths, oldObjectPaths } = new Expression(expression);
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
