/** Patterns for JSON that may contain, or consist of, a whole number of 2^53 or more: such a number has at least 16 digits. */
const longNumber = /[-:,[\s]\d{16}/;
const onlyLongNumber = /^\d{16}/;

const { rawJSON, isRawJSON: isRaw } = JSON as JSON & {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

/**
 * Parses JSON so that JSON.stringify writes each whole number unchanged. A number that JavaScript cannot represent exactly
 * becomes an object with its text, as created by `JSON.rawJSON`.
 *
 * @throws SyntaxError as JSON.parse
 */
export const parseExactly = (json: string): unknown =>
  longNumber.test(json) || onlyLongNumber.test(json)
    ? JSON.parse(json, exactly as (key: string, value: unknown) => unknown)
    : JSON.parse(json);

const exactly = (_: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && source !== undefined ? rawJSON(source) : value;

/** Returns the text of a number that `parseExactly` could not represent as a number; `undefined` for any other value. */
export const textOfNumber = (value: unknown): string | undefined => (isRaw(value) ? value.rawJSON : undefined);

/** Returns a whole number of any size in the form that `parseExactly` returns. */
export const exactInteger = (value: bigint): number | object =>
  Number.isSafeInteger(Number(value)) ? Number(value) : rawJSON(String(value));
