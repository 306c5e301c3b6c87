/** What a bench tells the server. */
export type ToServer =
  /** Sends `perSecond` changes for `seconds`, spread over all watches. */
  | { readonly type: "change"; readonly perSecond: number; readonly seconds: number }
  /** The first so many namespaces lose the label that selects them, or have it again. */
  | { readonly type: "leave" | "return"; readonly namespaces: number };
/** What the server tells a bench: it listens; all changes are sent. */
export type FromServer = { readonly type: "listening"; readonly objectBytes: number } | { readonly type: "sent" };

export const group = "bench.watchfire.dev";
export const kindOf = (index: number) => `Thing${index}`;
