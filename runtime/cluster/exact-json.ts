// JSON with Kubernetes' numbers: an int64 if a number is written as one and fits, else a float64. A JavaScript number represents
// a float64, and an int64 that it holds exactly; a bigint represents every other int64.

/** Limits of an int64. */
const most = 2n ** 63n - 1n;
const least = -(2n ** 63n);

/**
 * Matches JSON that may hold a number that a double cannot represent: one of 16 digits, or one with an exponent of three.
 */
const largeNumber = /\d{16}|\d[eE]\+?\d{3}/;

/** A whole number without a point or an exponent. */
const wholeForm = /^-?\d+$/;

/** A number that the API's JSON cannot hold, such as 1e400. The message is that of Go's decoder. */
export class UnreadableNumber extends Error {
  /** The number as it is written. */
  readonly written: string;

  constructor(written: string, message = `json: cannot unmarshal number ${written} into Go value of type float64`) {
    super(message);
    this.name = "UnreadableNumber";
    this.written = written;
  }
}

/** Returns an int64 as a number if that is exact, else as a bigint; `undefined` for an integer beyond 64 bits. */
export function int64(value: bigint): number | bigint | undefined {
  if (value > most || value < least) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** True if the value is a JSON number. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/**
 * Parses JSON. If the text holds no large number, this is `JSON.parse`.
 *
 * @throws SyntaxError if the text is not JSON, UnreadableNumber for a number that a float64 cannot hold
 */
export function parseJson(text: string): unknown {
  if (!largeNumber.test(text)) return JSON.parse(text);
  return parseNumbers(text, (value, written) => {
    if (Number.isSafeInteger(value)) return value;
    if (wholeForm.test(written)) return int64(BigInt(written)) ?? finite(value, written);
    return finite(value, written);
  });
}

/** Matches JSON that may hold a number that is not written as an int64. */
const otherForm = /(?:"\s*:|[[,])\s*-?(?:\d+[.eE]|\d{19})/;

/** A number that is not written as an int64, such as 1.0 or 9223372036854775808. */
export class WrittenNumber {
  readonly written: string;

  constructor(written: string) {
    this.written = written;
  }
}

/**
 * Parses JSON for a reader that has to know how its numbers are written: numbers that are not written as an int64 become
 * WrittenNumbers. Returns `undefined` if a quick scan of the text finds no such number, or if the text is not JSON.
 */
export function parseWritten(text: string): unknown {
  if (!otherForm.test(text)) return undefined;
  try {
    return parseNumbers(text, (_, written) => {
      const exact = wholeForm.test(written) ? int64(BigInt(written)) : undefined;
      return exact ?? new WrittenNumber(written);
    });
  } catch {
    return undefined;
  }
}

/** Parses JSON and replaces each number by the result of `convert`, which receives its value and its text. */
function parseNumbers(text: string, convert: (value: number, written: string) => unknown): unknown {
  const reviver = (_: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? convert(value, context?.source ?? "") : value;
  return JSON.parse(text, reviver);
}

function finite(value: number, written: string): number {
  if (!Number.isFinite(value)) throw new UnreadableNumber(written);
  return value;
}

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Encodes a value as JSON, with bigints as numbers. `indent`: spaces per level; default 0, on one line. */
export function encodeJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (error) {
    // JSON.stringify refuses a bigint. A replacer function would handle them, but makes all other values slower.
    if (!(error instanceof TypeError)) throw error;
    const exact = (_: string, one: unknown) => (typeof one === "bigint" ? rawJSON(String(one)) : one);
    return JSON.stringify(value, exact, indent);
  }
}
