/** Match JSON that may have a whole number of 2^53 or more, within or as the whole: such a number has 16 digits. */
const longNumber = /[-:,[\s]\d{16}/;
const onlyLongNumber = /^\d{16}/;

const { rawJSON, isRawJSON: isRaw } = JSON as JSON & {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

/**
 * Parses JSON that is to be written again: JSON.stringify writes each whole number as it came. A number that JavaScript
 * cannot hold exactly becomes an object that stands for its text, as `JSON.rawJSON` makes it.
 *
 * @throws SyntaxError as JSON.parse
 */
export const parseExactly = (json: string): unknown =>
  longNumber.test(json) || onlyLongNumber.test(json)
    ? JSON.parse(json, exactly as (key: string, value: unknown) => unknown)
    : JSON.parse(json);

const exactly = (_: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && source !== undefined ? rawJSON(source) : value;

/** The text of a number that `parseExactly` could not make a number of; undefined of any other value. */
export const textOfNumber = (value: unknown): string | undefined => (isRaw(value) ? value.rawJSON : undefined);

/** A whole number of any size, as `parseExactly` gives it. */
export const exactInteger = (value: bigint): number | object =>
  Number.isSafeInteger(Number(value)) ? Number(value) : rawJSON(String(value));
