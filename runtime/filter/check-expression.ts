import { WatchfireError } from "../errors.ts";
import { MatchConditions } from "./conditions.ts";

/** What is wrong with a CEL expression of `matchConditions`, in words; undefined where it compiles to a bool. */
export function checkExpression(expression: string): string | undefined {
  try {
    new MatchConditions([{ name: "it", expression }]);
    return undefined;
  } catch (error) {
    if (error instanceof WatchfireError) return error.detail.what;
    throw error;
  }
}
