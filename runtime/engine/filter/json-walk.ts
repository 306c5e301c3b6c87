// Functions that walk through well-formed JSON in UTF-8. For other text the results are undefined, but every function returns.

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/** Returns the first index from `from` on that is not white space. */
export function skipSpace(json: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(json[at])) at++;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @param from the index of the opening quote. @returns the index after the closing one. */
export function skipString(json: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return at + 1;
}

/** @param from the index after a key's closing quote. @returns the index of the member's value. */
export function skipColon(json: Uint8Array, from: number): number {
  return skipSpace(json, skipSpace(json, from) + 1);
}

/** @param from the index of the value's first byte. @returns the index after its last. */
export function skipValue(json: Uint8Array, from: number): number {
  let at = from;
  let depth = 0;
  while (at < json.length) {
    const byte = json[at] as number;
    if (byte === quote) at = skipString(json, at);
    else if (isOpening(byte)) {
      depth++;
      at++;
    } else if (isClosing(byte)) {
      depth--;
      at++;
    } else if (depth > 0) at++;
    else return skipScalar(json, at);
    if (depth <= 0) return at;
  }
  return at;
}

function isOpening(byte: number): boolean {
  return byte === 0x7b || byte === 0x5b;
}

function isClosing(byte: number): boolean {
  return byte === 0x7d || byte === 0x5d;
}

/** Skips a number, `true`, `false` or `null`. */
function skipScalar(json: Uint8Array, from: number): number {
  let at = from;
  while (at < json.length && json[at] !== comma && !isClosing(json[at] as number) && !isSpace(json[at])) at++;
  return at;
}
