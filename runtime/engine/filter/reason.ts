// The reasons for which an event is held back, for other rooms.

/**
 * Why a handler does not receive an event. A trigger's reasons are allocated once, so holding an event back allocates nothing.
 */
export type HeldBack =
  /** The trigger does not subscribe to its type. */
  | { readonly type: "events" }
  /** No changed field differs. */
  | { readonly type: "changedFields" }
  /** A condition is false. */
  | { readonly type: "condition"; readonly condition: string }
  /** A condition has no value, and counts as false. */
  | { readonly type: "conditionError"; readonly condition: string; readonly message: string }
  /** It is a deletion of an object that the conditions refused when it was last seen. */
  | { readonly type: "lastAnswer" }
  /** The object existed when the function was deployed, and `initialEvents` is Skip. */
  | { readonly type: "initialEvents" }
  /** It waited while its manifest was edited, and its object is gone by now: the deletion is delivered instead. */
  | { readonly type: "gone" }
  /** It waited while its manifest was edited, and its trigger no longer selects its object. */
  | { readonly type: "unselected" }
  /** Its object exceeded its share of the queue; `collapsed` events were replaced by a newer one. */
  | { readonly type: "backlog"; readonly collapsed: number }
  /** Its trigger's `key` maps it to no key: it has no such owner, or the expression returns no name. */
  | { readonly type: "key" }
  /** Its trigger's `key` has no value, or one that is not a name. */
  | { readonly type: "keyError"; readonly message: string };

export const notAsked: HeldBack = { type: "events" };
export const unchanged: HeldBack = { type: "changedFields" };
export const refusedBefore: HeldBack = { type: "lastAnswer" };
export const wasThere: HeldBack = { type: "initialEvents" };
export const goneMeanwhile: HeldBack = { type: "gone" };
export const unselected: HeldBack = { type: "unselected" };
export const wakesNobody: HeldBack = { type: "key" };
