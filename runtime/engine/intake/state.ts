import { isOrdered } from "../../base/resource-version.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { Rebase } from "./list-intake.ts";

/** The state of a subscription at its source. */
export type State =
  /** Nothing was listed yet. The first list shows the objects that existed when the function was deployed. */
  | { readonly type: "fresh" }
  /**
   * The known state does not continue in the next list, which begins an epoch. There is no checkpoint until that list is delivered.
   */
  | { readonly type: "rebasing"; readonly because: Rebase }
  /** The checkpoint cannot be resumed: a list is needed. */
  | { readonly type: "behind" }
  /** It resumes from its checkpoint, or from the list that is being delivered. */
  | { readonly type: "resumed" };

/** The state of a subscription that starts with this cursor. `selection` is the source's current one. */
export function stateOf({ lowWaterMark, initial, selection: before }: Cursor, selection: string): State {
  if (lowWaterMark === undefined) return initial ? { type: "fresh" } : { type: "rebasing", because: "selection" };
  if (before !== selection) return { type: "rebasing", because: "selection" };
  // A change that ended above the checkpoint cannot be recognised if resourceVersions have no order.
  return { type: isOrdered(lowWaterMark) ? "resumed" : "behind" };
}
