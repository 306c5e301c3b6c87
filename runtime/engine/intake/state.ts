import { isOrdered } from "../../base/resource-version.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { Rebase } from "./list-intake.ts";

/** Where a subscription stands at its source. */
export type State =
  /** Nothing was listed: the first list shows what was there when the function was deployed. */
  | { readonly type: "fresh" }
  /** What is known does not go on into what the next list shows, which begins an epoch. Until it is told there is no position. */
  | { readonly type: "rebasing"; readonly because: Rebase }
  /** There is a position, but none to go on from: a list is due. */
  | { readonly type: "behind" }
  /** It goes on from its position, or from the list that is being told. */
  | { readonly type: "resumed" };

/** Where one stands that begins with this cursor. `selection`: that of its source now. */
export function stateOf({ lowWaterMark, initial, selection: before }: Cursor, selection: string): State {
  if (lowWaterMark === undefined) return initial ? { type: "fresh" } : { type: "rebasing", because: "selection" };
  if (before !== selection) return { type: "rebasing", because: "selection" };
  // Changes that were done above a position whose order is not known could not be told from others.
  return { type: isOrdered(lowWaterMark) ? "resumed" : "behind" };
}
