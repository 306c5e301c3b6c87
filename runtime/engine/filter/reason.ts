// Door: why an event is held back.

/** Why a handler does not see an event. The ones of a trigger are made once: an event that is held back allocates none. */
export type HeldBack =
  /** Its type is none that the trigger names. */
  | { readonly type: "events" }
  /** None of the changed fields differs. */
  | { readonly type: "changedFields" }
  /** A condition is false. */
  | { readonly type: "condition"; readonly condition: string }
  /** A condition has no value, and counts as false. */
  | { readonly type: "conditionError"; readonly condition: string; readonly message: string }
  /** It is a deletion of an object that the conditions refused when it was last seen. */
  | { readonly type: "lastAnswer" }
  /** The object was there when the function was deployed, and `initialEvents` is Skip. */
  | { readonly type: "initialEvents" }
  /** It waited while its manifest was edited, and its object is gone by now: the deletion is told. */
  | { readonly type: "gone" }
  /** It waited while its manifest was edited, and its trigger selects its object no more. */
  | { readonly type: "unselected" }
  /** It waited, with more of its object than that one's share of the queue: a newer event stands for so many. */
  | { readonly type: "backlog"; readonly collapsed: number }
  /** Its trigger's `key` leads to nobody: it has no such owner, or the expression gives no name. */
  | { readonly type: "key" }
  /** Its trigger's `key` has no value, or one that is no name. */
  | { readonly type: "keyError"; readonly message: string };

export const notAsked: HeldBack = { type: "events" };
export const unchanged: HeldBack = { type: "changedFields" };
export const refusedBefore: HeldBack = { type: "lastAnswer" };
export const wasThere: HeldBack = { type: "initialEvents" };
export const goneMeanwhile: HeldBack = { type: "gone" };
export const unselected: HeldBack = { type: "unselected" };
export const wakesNobody: HeldBack = { type: "key" };
