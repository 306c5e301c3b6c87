import { DOMException } from "./abort.guest.ts";
import { parseInteger, slice } from "./primordials.guest.ts";

/**
 * Random bytes for `crypto`. The isolate has no source of its own: the executor hands over 32 bytes with the first
 * pump and with one pump a second, and ChaCha20 (RFC 8439) stretches it. Each block's first half becomes the next key, so that
 * bytes given out cannot be worked out from what the isolate holds later.
 */
const key = new Uint32Array(8);
let seeded = false;
let counter = 0;

/** Mixes 32 bytes, as 64 hex digits, into the key. */
export function seed(hex: string): void {
  for (let at = 0; at < 8; at++) key[at] = (key[at] ?? 0) ^ parseInteger(slice(hex, 8 * at, 8 * at + 8), 16);
  seeded = true;
}

const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

function quarter(s: Uint32Array, a: number, b: number, c: number, d: number): void {
  const at = (index: number): number => s[index] as number;
  s[a] = at(a) + at(b);
  s[d] = rotate(at(d) ^ at(a), 16);
  s[c] = at(c) + at(d);
  s[b] = rotate(at(b) ^ at(c), 12);
  s[a] = at(a) + at(b);
  s[d] = rotate(at(d) ^ at(a), 8);
  s[c] = at(c) + at(d);
  s[b] = rotate(at(b) ^ at(c), 7);
}

/** One ChaCha20 block: 16 words from a key of 8, a counter and a nonce of 3. */
export function chachaBlock(words: Uint32Array, count: number, nonce: readonly [number, number, number]): Uint32Array {
  const start = new Uint32Array(16);
  start.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
  start.set(words, 4);
  start.set([count, ...nonce], 12);
  const state = start.slice();
  for (let round = 0; round < 10; round++) {
    quarter(state, 0, 4, 8, 12);
    quarter(state, 1, 5, 9, 13);
    quarter(state, 2, 6, 10, 14);
    quarter(state, 3, 7, 11, 15);
    quarter(state, 0, 5, 10, 15);
    quarter(state, 1, 6, 11, 12);
    quarter(state, 2, 7, 8, 13);
    quarter(state, 3, 4, 9, 14);
  }
  for (let at = 0; at < 16; at++) state[at] = (state[at] as number) + (start[at] as number);
  return state;
}

function fill(bytes: Uint8Array): void {
  if (!seeded) throw new Error("random numbers are available once the handler runs");
  for (let at = 0; at < bytes.length; at += 32) {
    const block = chachaBlock(key, counter++, [0, 0, 0]);
    key.set(block.subarray(0, 8));
    const half = new Uint8Array(block.buffer, 32, Math.min(32, bytes.length - at));
    bytes.set(half, at);
  }
}

/** As the standard has it: integer arrays alone, at most 64 KiB. */
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

/** A version 4 UUID. */
export function randomUUID(): string {
  const bytes = getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  let hex = "";
  for (const byte of bytes) hex += (byte + 256).toString(16).slice(1);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
