// The libraries are loaded when a handler first needs them: most never do.
declare function require(specifier: string): unknown;

type Base64 = typeof import("@exodus/bytes/base64.js");
type Encoding = typeof import("@exodus/bytes/encoding-lite.js");

const base64 = (): Base64 => require("@exodus/bytes/base64.js") as Base64;
export const encoding = (): Encoding => require("@exodus/bytes/encoding-lite.js") as Encoding;

export const bytesToBase64 = (bytes: Uint8Array): string => base64().toBase64(bytes);
export const base64ToBytes = (text: string): Uint8Array => base64().fromBase64(text);
export const textToBytes = (text: string): Uint8Array => new (encoding().TextEncoder)().encode(text);
export const bytesToText = (bytes: Uint8Array): string => new (encoding().TextDecoder)().decode(bytes);

/** `btoa`: each character is one byte. */
export function btoa(text: unknown): string {
  const characters = String(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < characters.length; at++) {
    const code = characters.charCodeAt(at);
    if (code > 255) throw new TypeError("btoa takes characters up to U+00FF; encode the text with TextEncoder first");
    bytes[at] = code;
  }
  return bytesToBase64(bytes);
}

/** `atob`: white space is skipped, padding is optional. */
export function atob(text: unknown): string {
  const bytes = base64().fromBase64(String(text).replace(/[\t\n\f\r ]/g, ""), { padding: "both" });
  let characters = "";
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return characters;
}
