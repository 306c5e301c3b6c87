// The libraries behind the Web's globals. The bootstrap contains them as one function, which V8 neither compiles nor runs before
// a handler uses one of them. Most handlers use no library.
declare function require(specifier: string): unknown;

export const base64 = () => require("@exodus/bytes/base64.js") as typeof import("@exodus/bytes/base64.js");
export const encoding = () =>
  require("@exodus/bytes/encoding-lite.js") as typeof import("@exodus/bytes/encoding-lite.js");
export const hmac = () => require("@noble/hashes/hmac.js") as typeof import("@noble/hashes/hmac.js");
export const legacy = () => require("@noble/hashes/legacy.js") as typeof import("@noble/hashes/legacy.js");
export const sha2 = () => require("@noble/hashes/sha2.js") as typeof import("@noble/hashes/sha2.js");
export const structuredClone = () => require("@ungap/structured-clone") as { default: (value: unknown) => unknown };
export const whatwgUrl = () => require("whatwg-url") as typeof import("whatwg-url");
