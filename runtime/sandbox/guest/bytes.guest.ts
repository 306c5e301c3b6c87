import { DOMException } from "./abort.guest.ts";

declare function require(specifier: string): unknown;

const libraries = () => require("./libraries.guest.ts") as typeof import("./libraries.guest.ts");

const base64 = () => libraries().base64();
export const encoding = () => libraries().encoding();

export const bytesToBase64 = (bytes: Uint8Array): string => base64().toBase64(bytes);
export const base64ToBytes = (text: string): Uint8Array => base64().fromBase64(text);
export const textToBytes = (text: string): Uint8Array => new (encoding().TextEncoder)().encode(text);
export const bytesToText = (bytes: Uint8Array): string => new (encoding().TextDecoder)().decode(bytes);

const unfit = (what: string) => new DOMException(what, "InvalidCharacterError");

/** `btoa`: encodes a text in which each character is one byte. */
export function btoa(text: unknown): string {
  const characters = String(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < characters.length; at++) {
    const code = characters.charCodeAt(at);
    if (code > 255) throw unfit("btoa takes characters up to U+00FF; encode the text with TextEncoder first");
    bytes[at] = code;
  }
  return bytesToBase64(bytes);
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** `atob`, as lenient as the standard requires: white space is skipped; padding is optional and left-over bits are ignored. */
export function atob(text: unknown): string {
  let data = String(text).replace(/[\t\n\f\r ]/g, "");
  if (data.length % 4 === 0) data = data.replace(/={1,2}$/, "");
  if (data.length % 4 === 1) throw unfit("the text is no base64: its length cannot be");
  let characters = "";
  let bits = 0;
  let kept = 0;
  for (let at = 0; at < data.length; at++) {
    const value = alphabet.indexOf(data.charAt(at));
    if (value < 0) throw unfit(`the text is no base64: it has a character of code ${data.charCodeAt(at)}`);
    bits = ((bits << 6) | value) & 0xffff;
    kept += 6;
    if (kept < 8) continue;
    kept -= 8;
    characters += String.fromCharCode((bits >> kept) & 0xff);
  }
  return characters;
}
