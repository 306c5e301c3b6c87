import { ExpressionError } from "@watchfire/cel";
import { Expression } from "./expression.ts";
import { checkKeyExpression } from "./key-rule.ts";

/** What an object has of which the metadata alone is read. */
const metadataFields: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/**
 * What is wrong with a CEL expression of `matchConditions`, in words; undefined where it compiles to a bool, and names nothing
 * that is not read. `object`: what is read of each object, as the manifest has it. Default Full. `use`: what it is for; a `key`
 * gives names instead of a bool.
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
