// JSON with numbers as Kubernetes has them: an int64 where a number is written as one and fits, else a float64.
// A number stands for a float64 and for an int64 that it holds exactly; a bigint stands for every other int64.

/** The largest and smallest int64. */
const most = 2n ** 63n - 1n;
const least = -(2n ** 63n);

/** Matches JSON that may hold a number beyond a double: one of 16 digits, or one with an exponent of three. */
const largeNumber = /\d{16}|\d[eE]\+?\d{3}/;

/** A whole number without a point or an exponent. */
const wholeForm = /^-?\d+$/;

/** A number that JSON of the API cannot hold, such as 1e400. The message is that of Go's decoder. */
export class UnreadableNumber extends Error {
  /** The number as it is written. */
  readonly written: string;

  constructor(written: string, message = `json: cannot unmarshal number ${written} into Go value of type float64`) {
    super(message);
    this.name = "UnreadableNumber";
    this.written = written;
  }
}

/** An int64 as a value: a number where that is exact, else a bigint. Undefined for an integer beyond 64 bits. */
export function int64(value: bigint): number | bigint | undefined {
  if (value > most || value < least) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Whether the value is a number of JSON. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/**
 * Parses JSON. Without a large number in the text, this is `JSON.parse`.
 *
 * @throws SyntaxError for what is no JSON, UnreadableNumber for a number that a float64 cannot hold
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
 * Parses JSON for a reader that has to know how its numbers are written: those that are not written as an int64 become
 * WrittenNumbers. Undefined if a quick look at the text finds none, and if it is no JSON.
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

/** Parses JSON, with what `convert` makes of each number and of its text. */
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

/** Writes a value as JSON, with bigints as numbers. `indent`: spaces for each level; default 0, on one line. */
export function encodeJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (error) {
    // JSON.stringify refuses a bigint; a function that replaces them makes all else slower.
    if (!(error instanceof TypeError)) throw error;
    const exact = (_: string, one: unknown) => (typeof one === "bigint" ? rawJSON(String(one)) : one);
    return JSON.stringify(value, exact, indent);
  }
}
