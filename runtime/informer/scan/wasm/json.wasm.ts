// Checks JSON text in UTF-8 without building values: it locates the end of a value, or reports that it is not well formed. It
// accepts what JSON.parse accepts of the decoded text, so an accepted line cannot fail in an isolate. Zeros follow the text. No
// JSON holds a zero, so the code never tests for the end of the text. Functions called for each token are inlined: calls would
// take a sixth of the time.

export const quote: i32 = 0x22;
export const backslash: i32 = 0x5c;
export const comma: i32 = 0x2c;
export const openBrace: i32 = 0x7b;
export const closeBrace: i32 = 0x7d;
const colon: i32 = 0x3a;
const openBracket: i32 = 0x5b;
const closeBracket: i32 = 0x5d;

/** Returned by every function here for text that is not well formed. */
export const malformed: i32 = 0;

/** Deepest nesting. kube-apiserver refuses deeper values (apimachinery `pkg/runtime/serializer/json`, maxDepth); V8 would not. */
const depthLimit: i32 = 10_000;
/** Address of a stack with one byte per level: 1 if the enclosing container is an object. */
const containers: i32 = 4096;

/** The first index from `from` on that holds no white space. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
export function skipSpace(from: i32): i32 {
  let at = from;
  // Usually there is no white space.
  while (load<u8>(at) <= 0x20 && isSpace(load<u8>(at))) at++;
  return at;
}

function isSpace(byte: i32): bool {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @param from the index after the opening quote. @returns the index after the closing quote. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
export function skipString(from: i32): i32 {
  const at = skipPlain(from);
  return load<u8>(at) === quote ? at + 1 : skipEscapes(at);
}

/** @returns the index of the next byte of a string that does not stand for itself; examines sixteen bytes at a time. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
function skipPlain(from: i32): i32 {
  let at = from;
  let special = specialBytes(at);
  while (special === 0) {
    at += 16;
    special = specialBytes(at);
  }
  return at + ctz(special);
}

/** Returns a bit mask over sixteen bytes: 1 for a quote, a backslash or a control character. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
function specialBytes(at: i32): i32 {
  const block = v128.load(at);
  const marks = v128.or(i8x16.eq(block, i8x16.splat(0x22)), i8x16.eq(block, i8x16.splat(0x5c)));
  return i8x16.bitmask(v128.or(marks, i8x16.le_u(block, i8x16.splat(0x1f))));
}

/** Skips the rest of a string, starting at its first byte that does not stand for itself. */
function skipEscapes(from: i32): i32 {
  let at = from;
  while (load<u8>(at) === backslash) {
    const kind = <i32>load<u8>(at, 1);
    at += 2;
    if (kind === 0x75) {
      for (const stop = at + 4; at < stop; at++) if (hexDigit(load<u8>(at)) < 0) return malformed;
    } else if (!isEscape(kind)) return malformed;
    at = skipPlain(at);
  }
  return load<u8>(at) === quote ? at + 1 : malformed;
}

/** Whether the byte may follow a backslash on its own: one of `"\/bfnrt`. */
function isEscape(byte: i32): bool {
  if (byte === quote || byte === backslash || byte === 0x2f) return true;
  return byte === 0x62 || byte === 0x66 || byte === 0x6e || byte === 0x72 || byte === 0x74;
}

/** Returns the value of a hexadecimal digit; -1 for another byte. */
export function hexDigit(byte: i32): i32 {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** @param from the index after a key's closing quote. @returns the index of the member's value. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
export function skipColon(from: i32): i32 {
  const at = skipSpace(from);
  return load<u8>(at) === colon ? skipSpace(at + 1) : malformed;
}

/** @param from the index of the key's opening quote. @returns the index of the member's value. */
// @ts-ignore: AssemblyScript alone has this decorator.
@inline
function skipKey(from: i32): i32 {
  if (load<u8>(from) !== quote) return malformed;
  const after = skipString(from + 1);
  return after === malformed ? malformed : skipColon(after);
}

/** @param from the index of the value's first byte. @returns the index after its last. */
export function skipValue(from: i32): i32 {
  let at = from;
  let depth = 0;
  let inObject = false;
  while (true) {
    // One value begins at `at`.
    const first = <i32>load<u8>(at);
    if (first === quote) at = skipString(at + 1);
    else if (first === openBrace || first === openBracket) {
      const isObject = first === openBrace;
      at = skipSpace(at + 1);
      if (load<u8>(at) === (isObject ? closeBrace : closeBracket)) at++;
      else {
        if (depth === depthLimit) return malformed;
        store<u8>(containers + depth, inObject ? 1 : 0);
        depth++;
        inObject = isObject;
        if (isObject) {
          at = skipKey(at);
          if (at === malformed) return malformed;
        }
        continue;
      }
    } else at = skipScalar(at);
    if (at === malformed) return malformed;
    // One value ended before `at`: close its container, or continue with the next value.
    while (true) {
      if (depth === 0) return at;
      at = skipSpace(at);
      const byte = <i32>load<u8>(at);
      at++;
      if (byte === comma) {
        at = skipSpace(at);
        if (inObject) {
          at = skipKey(at);
          if (at === malformed) return malformed;
        }
        break;
      }
      if (byte !== (inObject ? closeBrace : closeBracket)) return malformed;
      depth--;
      inObject = load<u8>(containers + depth) !== 0;
    }
  }
}

/** Skips a number, `true`, `false` or `null`. */
function skipScalar(from: i32): i32 {
  const four = load<u32>(from);
  if (four === 0x65757274 || four === 0x6c6c756e) return from + 4;
  if (four === 0x736c6166 && load<u8>(from, 4) === 0x65) return from + 5;
  return skipNumber(from);
}

function skipNumber(from: i32): i32 {
  const whole = load<u8>(from) === 0x2d ? from + 1 : from;
  let at = skipDigits(whole);
  if (at === whole || (load<u8>(whole) === 0x30 && at > whole + 1)) return malformed;
  if (load<u8>(at) === 0x2e) {
    const fraction = at + 1;
    at = skipDigits(fraction);
    if (at === fraction) return malformed;
  }
  if ((load<u8>(at) | 0x20) === 0x65) {
    const sign = load<u8>(at, 1);
    const exponent = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
    at = skipDigits(exponent);
    if (at === exponent) return malformed;
  }
  return at;
}

function skipDigits(from: i32): i32 {
  let at = from;
  while (load<u8>(at) >= 0x30 && load<u8>(at) <= 0x39) at++;
  return at;
}
