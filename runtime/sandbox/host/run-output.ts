import { clean, controlCharacters } from "../../base/wording.ts";
import { shapeFault } from "./json-shape.ts";

/** Outcome of an event, as reported by the guest. */
type DoneKind = "ok" | "requeue" | "partial" | "failed" | "permanent" | "unreadable" | "output" | "deadline" | "cpu";

/** An error as unmodified text. It must be cleaned before it is shown to a person. */
export interface GuestError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

export interface FinishedEvent extends GuestError {
  readonly no: number;
  readonly kind: DoneKind;
  /** Milliseconds; `undefined` if the handler did not set it. */
  readonly retryAfterMs: number | undefined;
}

export interface GuestCall {
  readonly call: number;
  readonly no: number;
  readonly operation: string;
  /** JSON. */
  readonly args: string;
}

export interface GuestLog {
  readonly no: number;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  /** JSON of an object, or empty. */
  readonly fields: string;
}

export interface GuestMetric {
  readonly no: number;
  readonly type: "increment" | "observe";
  readonly name: string;
  readonly value: number;
  /** JSON of an object, or empty. */
  readonly labels: string;
}

/** An isolate's output, validated. */
export interface RunOutput {
  readonly done: readonly FinishedEvent[];
  readonly calls: readonly GuestCall[];
  readonly logs: readonly GuestLog[];
  readonly metrics: readonly GuestMetric[];
  /** Errors that were thrown, and unhandled rejections, after their event had ended. */
  readonly strays: readonly GuestError[];
  /** How many of the entry's last events have not begun. */
  readonly left: number;
}

/** Maximum entries of one kind in an outbox. The guest stops at 1000 messages in total. */
const maxEntries = 1100;
/** Maximum errors without an event: the guest reports one per drain, and the executor may add the one that V8 reported. */
const maxStrays = 2;
/** Maximum bytes of the head: the maximum number of entries, each of up to 200 bytes. */
const maxHead = 256 * 1024;
/** Maximum nesting of the head, and number of its values: six for each of a thousand entries, with a margin. */
const maxDepth = 3;
const maxValues = 10_000;
/** Characters up to which a head is parsed without a check of its shape, because parsing is cheaper whatever the shape. */
const shortHead = 1000;
/** Maximum characters of one error, of all calls, and of all log lines and metrics: the guest's own limits plus a margin. */
const maxError = 8000;
const maxCalls = 2_200_000;
const maxWords = 300_000;
/**
 * Maximum characters of a line's message and of its fields. The guest cuts them at 4096 and 8192, and writes cut JSON as a
 * string.
 */
const maxMessage = 4200;
const maxFields = 20_000;
/** Maximum nesting and values of such fields. The guest prints up to 100 levels. */
const maxFieldDepth = 150;
const maxFieldValues = 10_000;
/** Maximum characters of a call's operation, of a metric's name, and of a level, a kind or a type. */
const maxName = 200;

const kinds: readonly string[] = [
  "requeue",
  "partial",
  "failed",
  "permanent",
  "unreadable",
  "output",
  "deadline",
  "cpu",
];
const levels: readonly string[] = ["debug", "info", "warn", "error"];

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Thrown inside this file for data that an honest executor would not send. */
class Unfit extends Error {}

/** The texts after an outbox's head, read in sequence. */
class Texts {
  /** Number of characters read so far. Written here only. */
  taken = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  take(length: unknown, most = Number.POSITIVE_INFINITY): string {
    if (!isIndex(length) || length > most || this.taken + length > this.text.length) throw new Unfit();
    this.taken += length;
    return this.text.slice(this.taken - length, this.taken);
  }

  get isEmpty(): boolean {
    return this.taken === this.text.length;
  }
}

/**
 * Parses an outbox. Returns `undefined` for anything that an honest executor would not send. Validated by hand, because it is on
 * the path of every event and its format is fixed. Only its head is parsed, which is short, so that an executor taken over by a
 * guest cannot keep the parent busy.
 */
export function readOutbox(bytes: Buffer): RunOutput | undefined {
  try {
    const newline = bytes.subarray(0, maxHead).indexOf("\n");
    if (newline < 0) return undefined;
    const head = bytes.toString("utf8", 0, newline);
    if (head.length > shortHead && shapeFault(head, maxDepth, maxValues)) return undefined;
    const parsed: unknown = JSON.parse(head);
    if (!Array.isArray(parsed) || parsed.length !== 7) return undefined;
    const [doneHeads, callHeads, logHeads, metricHeads, wakeMs, strayHeads, left] = parsed as unknown[];
    if (typeof wakeMs !== "number" || wakeMs < -1 || !isIndex(left)) return undefined;
    const texts = new Texts(bytes.toString("utf8", newline + 1));
    const done = listOf(doneHeads).map((entry) => readDone(entry, texts));
    const ended = texts.taken;
    const calls = listOf(callHeads).map((entry) => readCall(fieldsOf(entry, 4), texts));
    const called = texts.taken;
    if (called - ended > maxCalls) return undefined;
    const logs = listOf(logHeads).map((entry) => readLog(fieldsOf(entry, 4), texts));
    const metrics = listOf(metricHeads).map((entry) => readMetric(fieldsOf(entry, 5), texts));
    if (texts.taken - called > maxWords) return undefined;
    const strays = listOf(strayHeads, maxStrays).map((entry) => readError(fieldsOf(entry, 3), texts));
    return texts.isEmpty ? { done, calls, logs, metrics, strays, left } : undefined;
  } catch (error) {
    if (error instanceof Unfit || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function listOf(list: unknown, most = maxEntries): unknown[] {
  if (!Array.isArray(list) || list.length > most) throw new Unfit();
  return list;
}

function fieldsOf(entry: unknown, count: number): unknown[] {
  if (!Array.isArray(entry) || entry.length !== count) throw new Unfit();
  return entry;
}

function readDone(entry: unknown, texts: Texts): FinishedEvent {
  if (isIndex(entry)) return { no: entry, kind: "ok", name: "", message: "", stack: "", retryAfterMs: undefined };
  const [no, kind, name, message, stack, retryAfterMs] = fieldsOf(entry, 6);
  if (!isIndex(no) || typeof kind !== "string" || !kinds.includes(kind) || typeof retryAfterMs !== "number")
    throw new Unfit();
  const error = readError([name, message, stack], texts);
  return { no, kind: kind as DoneKind, ...error, retryAfterMs: retryAfterMs >= 0 ? retryAfterMs : undefined };
}

function readError([name, message, stack]: unknown[], texts: Texts): GuestError {
  const before = texts.taken;
  const error = { name: texts.take(name), message: texts.take(message), stack: texts.take(stack) };
  if (texts.taken - before > maxError) throw new Unfit();
  return error;
}

function readCall([call, no, operation, length]: unknown[], texts: Texts): GuestCall {
  if (!isIndex(call) || !isIndex(no) || typeof operation !== "string" || operation.length > maxName) throw new Unfit();
  return { call, no, operation, args: texts.take(length) };
}

function readLog([no, level, message, fields]: unknown[], texts: Texts): GuestLog {
  if (!isIndex(no) || typeof level !== "string" || !levels.includes(level)) throw new Unfit();
  const text = texts.take(message, maxMessage);
  return { no, level: level as GuestLog["level"], message: text, fields: readFields(fields, texts) };
}

function readMetric([no, type, name, value, labels]: unknown[], texts: Texts): GuestMetric {
  if (!isIndex(no) || (type !== "increment" && type !== "observe") || typeof value !== "number") throw new Unfit();
  return { no, type, name: texts.take(name, maxName), value, labels: readFields(labels, texts) };
}

function readFields(length: unknown, texts: Texts): string {
  const fields = texts.take(length, maxFields);
  if (shapeFault(fields, maxFieldDepth, maxFieldValues)) throw new Unfit();
  return fields;
}

/** Parses a JSON object and removes control characters. Returns an empty object for anything else. */
export function cleanObject(text: string): Record<string, unknown> {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(cleanJson(text));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Matches a \u escape in JSON, or any other escape. */
const escaped = /\\(?:u([0-9a-fA-F]{4})|.)/gs;

/**
 * Replaces control characters in a JSON text's strings. Works on the text, because visiting each value costs ten times as much as
 * parsing.
 */
function cleanJson(text: string): string {
  const visible = text.replace(controlCharacters, (character) => `\\${clean(character)}`);
  if (!/\\[bfru]/.test(visible)) return visible;
  return visible.replace(escaped, (found, hex: string | undefined) => {
    if (hex === undefined)
      return ({ "\\b": "\\\\u0008", "\\f": "\\\\u000c", "\\r": "\\\\u000d" } as Record<string, string>)[found] ?? found;
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    const shown = clean(character);
    return shown === character ? found : `\\${shown}`;
  });
}
