import { z } from "zod";
import { type ErrorCode, errorCodes, WatchfireError } from "../base/errors.ts";
import { faultLimit, fileCountLimit, mapLimit, scriptLimit } from "./limits.ts";

/** Longest path, and longest text of a fault. */
const textLimit = 8192;
/**
 * Limit of an answer's head, in bytes: the maximum number of paths, at 400 bytes each. Whatever it contains, parsing it takes at
 * most 0.3 s.
 */
const headLimit = 4 * 1024 * 1024;

/** Limits of an answer's frames, in bytes. */
export const answerLimits: readonly number[] = [headLimit, scriptLimit, mapLimit];

const text = z.string().max(textLimit);

const faultSchema = z.strictObject({
  code: z
    .string()
    .refine((code): code is ErrorCode => Object.hasOwn(errorCodes, code) && code.startsWith("WF_BUNDLE_")),
  what: text,
  place: z.strictObject({ file: text, line: z.int().optional(), column: z.int().optional() }).optional(),
  hint: text.optional(),
});

const headSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("built"), inputs: z.array(text).max(fileCountLimit) }),
  z.strictObject({ type: z.literal("refused"), faults: z.array(faultSchema).min(1).max(faultLimit) }),
]);

/** @throws an error of any kind for a head that a builder would not send */
export const readHead = (bytes: Buffer): z.output<typeof headSchema> =>
  headSchema.parse(JSON.parse(bytes.toString("utf8")));

/** Combines the faults of one build into one error. */
export function faultOf(faults: readonly z.output<typeof faultSchema>[]): WatchfireError {
  const [first, ...more] = faults.map(
    ({ code, what, place, hint }) =>
      new WatchfireError(code, {
        what,
        ...(place && { place: { file: place.file, ...withoutUndefined(place) } }),
        ...(hint !== undefined && { hint }),
      }),
  );
  if (!first) throw new TypeError("a refusal has a fault");
  return new WatchfireError(first.code, { ...first.detail, more });
}

const withoutUndefined = ({
  line,
  column,
}: {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}) => ({
  ...(line !== undefined && { line }),
  ...(column !== undefined && { column }),
});
