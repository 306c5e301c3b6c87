/** A command of a bench to the server. */
export type ToServer =
  /** Sends `perSecond` changes for `seconds`, distributed over all watches. */
  | { readonly type: "change"; readonly perSecond: number; readonly seconds: number }
  /** Removes the selecting label from the first so many namespaces, or restores it. */
  | { readonly type: "leave" | "return"; readonly namespaces: number };
/** A message of the server to a bench: it listens, or all changes are sent. */
export type FromServer = { readonly type: "listening"; readonly objectBytes: number } | { readonly type: "sent" };

export const group = "bench.watchfire.dev";
export const kindOf = (index: number) => `Thing${index}`;
