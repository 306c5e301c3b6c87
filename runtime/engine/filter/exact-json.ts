import { double, isInt64, type Value } from "@watchfire/cel";

/** Digits of the shortest whole number that a double may not hold exactly: 9007199254740993. */
const longDigits = 16;

/**
 * Matches JSON that holds a number with a point or an exponent. It looks back from there, because few places have a point behind
 * a digit, and many may begin a number. A text with `":1.` in it matches too.
 */
const fractionForm = /\d[.eE](?<=(?:^|"\s*:|[[,])\s*-?\d+[.eE])/;

/** A whole number's digits, without a point or an exponent. */
const wholeForm = /^-?\d+$/;

/**
 * Parses JSON as `JSON.parse` does, except that whole numbers that a double does not hold exactly become bigints. A number
 * written with a point or an exponent stays a double.
 */
export function parseExactly(json: string): unknown {
  if (!hasLongNumber(json)) return JSON.parse(json);
  return parseNumbers(json, (value, source) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && wholeForm.test(source) ? BigInt(source) : value,
  );
}

/**
 * Parses JSON to values of CEL, with numbers as Kubernetes decodes them: one written without a point or an exponent is an int if
 * it fits in 64 bits; every other number is a double.
 */
export function parseValues(json: string): Value {
  if (!hasLongNumber(json) && !fractionForm.test(json)) return JSON.parse(json);
  return parseNumbers(json, (value, source) => {
    if (!wholeForm.test(source)) return double(value);
    if (Number.isSafeInteger(value)) return value;
    const exact = BigInt(source);
    return isInt64(exact) ? exact : value;
  });
}

/** Parses JSON, and replaces each number by `convert` of its value and its text. */
function parseNumbers(json: string, convert: (value: number, source: string) => unknown): unknown {
  const reviver = (_: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? convert(value, context?.source ?? "") : value;
  return JSON.parse(json, reviver);
}

/** Whether so many digits follow each other that they may be a number to be read exactly. Looks at each 16th character. */
function hasLongNumber(json: string): boolean {
  for (let at = longDigits - 1; at < json.length; at += longDigits) {
    if (!isDigit(json, at)) continue;
    let [from, to] = [at, at + 1];
    while (isDigit(json, from - 1)) from--;
    while (isDigit(json, to)) to++;
    if (to - from >= longDigits) return true;
  }
  return false;
}

function isDigit(json: string, at: number): boolean {
  const code = json.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}
