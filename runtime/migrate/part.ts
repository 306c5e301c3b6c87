import type { Cursor, KnownIdentity } from "../journal/batch.ts";
import type { StoredView } from "../journal/checkpoint.ts";

/** Which trigger of a function a row is of. */
export type ViewOf = Pick<StoredView, "function" | "trigger" | "resource">;

/** What of a store's rows another store is to have. */
export interface Part {
  /** Undefined: nothing of the function. */
  of(functionName: string): FunctionPart | undefined;
}

/** The same of one function's rows. */
export interface FunctionPart {
  /** Whether it has what is of this key (`namespace/name`). `keys`: of a known object, for whom it counts, where that is noted. */
  has(view: ViewOf, key: string, keys: readonly string[] | undefined): boolean;
  /** A position as it is to be there; undefined where it has none. `other`: what another store has brought of it. */
  cursor(view: ViewOf, cursor: Cursor, other: Cursor | undefined): Cursor | undefined;
  /** Whether an object that another store has brought stays as that one knows it. */
  prefers(other: KnownIdentity, one: KnownIdentity): boolean;
}

const whole: FunctionPart = { has: () => true, cursor: (_, cursor) => cursor, prefers: () => false };

/** All there is. */
export const everything: Part = { of: () => whole };
