// A check of JSON text in UTF-8 that builds nothing: it says where a value ends, or that it is not well formed.
// It accepts what JSON.parse accepts of the decoded text, so that a line let through here cannot fail in an isolate.
// Written for V8's optimising compiler: typed arrays, small integers, no calls per byte and no allocation.

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** 1 for a byte that may follow a backslash, 2 for `u`. */
const escapes = new Uint8Array(256);
for (const char of '"\\/bfnrt') escapes[char.charCodeAt(0)] = 1;
escapes[0x75] = 2;

const hex = new Uint8Array(256);
for (const char of "0123456789abcdefABCDEF") hex[char.charCodeAt(0)] = 1;

/** 1 for a byte that stands for itself in a string. A table is a quarter faster than comparisons. */
const plain = new Uint8Array(256).fill(1, 0x20);
plain[quote] = plain[backslash] = 0;

/** kube-apiserver refuses deeper nesting (apimachinery `pkg/runtime/serializer/json`, maxDepth); V8 itself would not. */
const depthLimit = 10_000;
/** 1 where the container at that depth is an object, 0 where it is an array. */
const containers = new Uint8Array(depthLimit + 1);

/** What every function here gives for text that is not well formed. */
export const malformed = -1;

/** The first index from `at` on that holds no white space. */
export function skipSpace(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at++;
  }
  return at;
}

/**
 * @param from the index after the opening quote.
 * @param end not compared per byte: what stands there, a newline or nothing, is no part of a string and ends the loop.
 * @returns the index after the closing quote, or `malformed`.
 */
export function skipString(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  for (;;) {
    let byte = bytes[at] as number;
    while (plain[byte] === 1) byte = bytes[++at] as number;
    if (at >= end) return malformed;
    if (byte === quote) return at + 1;
    if (byte !== backslash || at + 1 >= end) return malformed;
    const kind = escapes[bytes[at + 1] as number];
    at += 2;
    if (kind === 1) continue;
    if (kind !== 2 || at + 4 > end) return malformed;
    for (const stop = at + 4; at < stop; at++) if (hex[bytes[at] as number] !== 1) return malformed;
  }
}

/** @param from the index of the value's first byte. @returns the index after its last, or `malformed`. */
export function skipValue(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  let depth = 0;
  for (;;) {
    // One value begins at `at`.
    if (at >= end) return malformed;
    const first = bytes[at] as number;
    if (first === quote) {
      at = skipString(bytes, at + 1, end);
      if (at < 0) return malformed;
    } else if (first === openBrace || first === openBracket) {
      const object = first === openBrace;
      at = skipSpace(bytes, at + 1, end);
      if (at >= end) return malformed;
      if (bytes[at] === (object ? closeBrace : closeBracket)) {
        at++;
      } else {
        if (++depth > depthLimit) return malformed;
        containers[depth] = object ? 1 : 0;
        if (object) {
          at = skipKey(bytes, at, end);
          if (at < 0) return malformed;
        }
        continue;
      }
    } else {
      at = skipScalar(bytes, at, end);
      if (at < 0) return malformed;
    }
    // One value ended before `at`: leave what it ends, or go to the next.
    for (;;) {
      if (depth === 0) return at;
      if (at < end && (bytes[at] as number) <= 0x20) at = skipSpace(bytes, at, end);
      if (at >= end) return malformed;
      const byte = bytes[at++] as number;
      const object = containers[depth] === 1;
      if (byte === comma) {
        if (at < end && (bytes[at] as number) <= 0x20) at = skipSpace(bytes, at, end);
        if (object) {
          at = skipKey(bytes, at, end);
          if (at < 0) return malformed;
        }
        break;
      }
      if (byte !== (object ? closeBrace : closeBracket)) return malformed;
      depth--;
    }
  }
}

/** @param from the index of the key's opening quote. @returns the index of the member's value, or `malformed`. */
function skipKey(bytes: Uint8Array, from: number, end: number): number {
  if (from >= end || bytes[from] !== quote) return malformed;
  const after = skipString(bytes, from + 1, end);
  return after < 0 ? malformed : skipColon(bytes, after, end);
}

/** @param from the index after a key's closing quote. @returns the index of the member's value, or `malformed`. */
export function skipColon(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  if (bytes[at] !== colon) at = skipSpace(bytes, at, end);
  if (at >= end || bytes[at] !== colon) return malformed;
  at++;
  return at < end && (bytes[at] as number) <= 0x20 ? skipSpace(bytes, at, end) : at;
}

/** A number, `true`, `false` or `null`. */
function skipScalar(bytes: Uint8Array, from: number, end: number): number {
  const first = bytes[from] as number;
  if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return skipNumber(bytes, from, end);
  if (first === 0x74) return isWord(bytes, from, end, 0x72, 0x75, 0x65) ? from + 4 : malformed;
  if (first === 0x6e) return isWord(bytes, from, end, 0x75, 0x6c, 0x6c) ? from + 4 : malformed;
  if (first !== 0x66 || bytes[from + 1] !== 0x61) return malformed;
  return isWord(bytes, from + 1, end, 0x6c, 0x73, 0x65) ? from + 5 : malformed;
}

function isWord(bytes: Uint8Array, from: number, end: number, second: number, third: number, fourth: number): boolean {
  if (from + 4 > end) return false;
  return bytes[from + 1] === second && bytes[from + 2] === third && bytes[from + 3] === fourth;
}

function skipNumber(bytes: Uint8Array, from: number, end: number): number {
  let at = bytes[from] === 0x2d ? from + 1 : from;
  const whole = at;
  at = skipDigits(bytes, at, end);
  if (at === whole || (bytes[whole] === 0x30 && at > whole + 1)) return malformed;
  if (at < end && bytes[at] === 0x2e) {
    const fraction = at + 1;
    at = skipDigits(bytes, fraction, end);
    if (at === fraction) return malformed;
  }
  if (at < end && ((bytes[at] as number) | 0x20) === 0x65) {
    at++;
    if (at < end && (bytes[at] === 0x2b || bytes[at] === 0x2d)) at++;
    const exponent = at;
    at = skipDigits(bytes, exponent, end);
    if (at === exponent) return malformed;
  }
  return at;
}

function skipDigits(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++;
  return at;
}

/** Whether the bytes from `start` on are `text`. */
export function equals(bytes: Uint8Array, start: number, text: Uint8Array): boolean {
  for (let index = 0; index < text.length; index++) if (bytes[start + index] !== text[index]) return false;
  return true;
}
