import { chacha20 } from "@noble/ciphers/chacha.js";
import { DOMException } from "./abort.guest.ts";
import { parseInteger, slice } from "./primordials.guest.ts";

/**
 * Key of the random numbers for `crypto`. The isolate has no source of randomness. The executor passes 32 bytes with the first
 * pump and with one pump per second, and ChaCha20 (RFC 8439) expands them. The stream's first 32 bytes become the next key, so
 * earlier output cannot be computed from the isolate's later state. No key is used twice, so the nonce may be zero.
 */
const key = new Uint8Array(32);
const nonce = new Uint8Array(12);
let seeded = false;

/** Mixes 32 bytes, given as 64 hex digits, into the key. */
export function seed(hex: string): void {
  for (let at = 0; at < 32; at++) key[at] = (key[at] ?? 0) ^ parseInteger(slice(hex, 2 * at, 2 * at + 2), 16);
  seeded = true;
}

function fill(bytes: Uint8Array): void {
  if (!seeded) throw new Error("random numbers are available once the handler runs");
  const stream = chacha20(key, nonce, new Uint8Array(key.length + bytes.length));
  key.set(stream.subarray(0, key.length));
  bytes.set(stream.subarray(key.length));
}

/** As in the standard: fills integer arrays only, of at most 64 KiB. */
export function getRandomValues<T extends ArrayBufferView>(view: T): T {
  if (!ArrayBuffer.isView(view) || /Float|DataView/.test(Object.prototype.toString.call(view))) {
    throw new DOMException("getRandomValues takes an integer typed array", "TypeMismatchError");
  }
  if (view.byteLength > 65_536) {
    throw new DOMException("getRandomValues gives at most 65536 bytes at once", "QuotaExceededError");
  }
  fill(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  return view;
}

/** Returns a version 4 UUID. */
export function randomUUID(): string {
  const bytes = getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  let hex = "";
  for (const byte of bytes) hex += (byte + 256).toString(16).slice(1);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
