import { isInexact, type NumbersReader, parseJson, writeJson } from "../exact-json.ts";

const { isRawJSON, rawJSON } = JSON as JSON & { isRawJSON(value: unknown): boolean; rawJSON(text: string): object };

/** Whether a value stands for the text of a number, as in what `watchfire test` compares. */
export const isNumberText = (value: unknown): boolean => isRawJSON(value);

/** JSON of what a test has: a BigInt is written by its digits. */
export const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? rawJSON(String(each)) : each));

/** What a handler reads of a test's value, in which a number beyond 2^53 may be a BigInt. */
export function readBy<T>(reader: NumbersReader, value: T): T {
  const json = jsonOf(value);
  return json === undefined ? value : (parseJson(json, reader) as T);
}

/** What a handler wrote, with a BigInt for each whole number beyond 2^53. @throws InvalidError as in the sandbox */
export const writtenBy = <T>(reader: NumbersReader, value: T, what: string): T =>
  JSON.parse(writeJson(value, reader, what) ?? "null", exactly as (key: string, value: unknown) => unknown) as T;

function exactly(_: string, value: unknown, { source = "" }: { readonly source?: string }): unknown {
  return typeof value === "number" && isInexact(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;
}
