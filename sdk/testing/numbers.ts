import { isInexact, type NumbersReader, parseJson, writeJson } from "../exact-json.ts";

const { isRawJSON, rawJSON } = JSON as JSON & { isRawJSON(value: unknown): boolean; rawJSON(text: string): object };

/** Whether a value stands for the text of a number, as in the comparisons of `watchfire test`. */
export const isNumberText = (value: unknown): boolean => isRawJSON(value);

/** Returns the JSON of a test's value: a BigInt is written with its digits. */
export const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? rawJSON(String(each)) : each));

/** Converts a test's value to what a handler reads. A number beyond 2^53 may be a BigInt in it. */
export function readBy<T>(reader: NumbersReader, value: T): T {
  const json = jsonOf(value);
  return json === undefined ? value : (parseJson(json, reader) as T);
}

/** Converts a handler's value, with a BigInt for each whole number beyond 2^53. @throws InvalidError as in the sandbox */
export const writtenBy = <T>(reader: NumbersReader, value: T, what: string): T =>
  JSON.parse(writeJson(value, reader, what) ?? "null", exactly as (key: string, value: unknown) => unknown) as T;

function exactly(_: string, value: unknown, { source = "" }: { readonly source?: string }): unknown {
  return typeof value === "number" && isInexact(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;
}
