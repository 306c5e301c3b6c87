import { styleText } from "node:util";
import { z } from "zod";
import { clean } from "../base/wording.ts";
import { codeFrame } from "./code-frame.ts";

const record = z.looseObject({
  level: z.string(),
  time: z.string(),
  msg: z.string().default(""),
  function: z.string().optional(),
  attempt: z.number().optional(),
  /** Fields set by the handler. */
  fields: z.record(z.string(), z.unknown()).optional(),
});

/** Returns the text of one of a function's files as it ran, or `undefined` for a file that must not be shown. */
type ReadSource = (functionName: string, file: string) => string | undefined;

const styles = { debug: "gray", info: "white", warn: "yellow", error: "red", fatal: "red", trace: "gray" } as const;
/** The runtime's own fields that have separate columns or are only for machines. */
const hidden = new Set(
  "level time msg function outcome type object durationMs err error trigger run fields bundle from attempt cause".split(
    " ",
  ),
);

/**
 * Converts one JSON log line to one line for a person: time, function, message, then the remaining fields. A line that is no
 * record, or cannot be formatted, is returned unchanged. Line breaks in a handler's text are indented, so that it cannot imitate
 * a line. `read` returns the text of a function's source file that may be shown below a stack.
 */
export function consoleLine(line: string, read: ReadSource = () => undefined): string {
  try {
    return layOut(record.parse(JSON.parse(line)), read);
  } catch {
    return line;
  }
}

function layOut(parsed: z.infer<typeof record>, read: ReadSource): string {
  const { level, time, msg, type, object, outcome, durationMs, attempt, error } = parsed;
  const style = styles[level as keyof typeof styles] ?? "white";
  const words = [
    styleText("gray", clockTime(time)),
    parsed.function ? styleText("cyan", clean(parsed.function)) : undefined,
    outcome === undefined ? styleText(style, clean(msg)) : `${type} ${object}`,
    // The lines of one run have already shown its object.
    outcome === undefined && parsed.run === undefined && typeof object === "string" ? clean(object) : undefined,
    outcome === undefined ? undefined : styleText(outcome === "ok" ? "green" : "red", outcome === "ok" ? "ok" : msg),
    attempt === undefined || attempt < 2 ? undefined : styleText("yellow", `attempt ${attempt}`),
    durationMs === undefined ? undefined : styleText("gray", `${Math.round(Number(durationMs))} ms`),
    ...[...Object.entries(parsed).filter(([name]) => !hidden.has(name)), ...Object.entries(parsed.fields ?? {})].map(
      ([name, value]) => `${styleText("gray", `${clean(name)}=`)}${clean(plain(value))}`,
    ),
  ];
  const first = words
    .filter((word) => word !== undefined)
    .join("  ")
    .replaceAll("\n", "\n  ");
  const trouble = stackOf(error) ?? stackOf(parsed.err) ?? stackAmong(parsed.fields);
  if (!trouble) return first;
  const { function: owner } = parsed;
  const frame = owner === undefined ? undefined : codeFrame(trouble, (file) => read(owner, file));
  return frame ? `${first}\n${trouble}\n${frame.replace(/^/gm, "  ")}` : `${first}\n${trouble}`;
}

function stackOf(error: unknown): string | undefined {
  if (typeof error === "string") return stackOf({ stack: error });
  if (typeof error !== "object" || error === null) return undefined;
  const { stack, message } = error as { stack?: unknown; message?: unknown };
  const text = typeof stack === "string" && stack !== "" ? stack : typeof message === "string" ? message : undefined;
  return text === undefined ? undefined : clean(text).replace(/^/gm, "  ");
}

/** Returns the stack of the first error among a handler's fields. */
const stackAmong = (fields: Readonly<Record<string, unknown>> = {}): string | undefined =>
  Object.values(fields)
    .filter(isError)
    .map(stackOf)
    .find((stack) => stack !== undefined);

const isError = (value: unknown): value is { readonly name: string; readonly message: string } =>
  typeof value === "object" &&
  value !== null &&
  "stack" in value &&
  "name" in value &&
  typeof value.name === "string" &&
  "message" in value &&
  typeof value.message === "string";

/** Formats a value within a line. An error's stack is printed below. */
const plain = (value: unknown): string =>
  typeof value === "string" ? value : isError(value) ? `${value.name}: ${value.message}` : JSON.stringify(value);

/** Local time of day. The date is omitted. */
const clockTime = (iso: string): string => new Date(iso).toTimeString().slice(0, 8);
