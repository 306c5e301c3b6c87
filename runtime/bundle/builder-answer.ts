import { z } from "zod";
import { type ErrorCode, errorCodes, WatchfireError } from "../base/errors.ts";
import { faultLimit, fileCountLimit, mapLimit, scriptLimit } from "./limits.ts";

/** Of a path, and of what is said of a fault. */
const textLimit = 8192;
/** Of an answer's head: as many paths as there may be, of 400 bytes each. Whatever it holds, to parse it takes 0.3 s. */
const headLimit = 4 * 1024 * 1024;

/** The most that the frames of an answer may have, in bytes. */
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

/** @throws an error of any kind for what no builder says */
export const readHead = (bytes: Buffer): z.output<typeof headSchema> =>
  headSchema.parse(JSON.parse(bytes.toString("utf8")));

/** The faults of one build as one error. */
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
