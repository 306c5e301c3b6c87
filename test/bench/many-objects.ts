/** Sends `perSecond` changes for `seconds`, spread over all watches. */
export type ToServer = { readonly perSecond: number; readonly seconds: number };
export type FromServer = { readonly type: "listening"; readonly objectBytes: number } | { readonly type: "sent" };

export const group = "bench.watchfire.dev";
export const kindOf = (index: number) => `Thing${index}`;
