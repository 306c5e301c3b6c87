/** How the guest says that an event ended. */
export type DoneKind = "ok" | "failed" | "permanent" | "unreadable" | "output" | "deadline" | "cpu";

/** An error as text, as it came: what is shown to a person is to be cleaned first. */
export interface GuestError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

export interface Done extends GuestError {
  readonly no: number;
  readonly kind: DoneKind;
  /** Milliseconds; undefined where the handler did not say. */
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

/** What an isolate had to tell, checked. */
export interface Outbox {
  readonly done: readonly Done[];
  readonly calls: readonly GuestCall[];
  readonly logs: readonly GuestLog[];
  readonly metrics: readonly GuestMetric[];
  /** What was thrown, or rejected and not heard, once its event had ended. */
  readonly strays: readonly GuestError[];
}

/** Entries of one kind that may come at once; the guest stops itself at 1000 messages in all. */
const maxEntries = 1100;
/** Bytes of the head: as many entries, none longer than 200. Nested as deep as it goes, JSON of this length takes 15 ms. */
const maxHead = 256 * 1024;
/** Characters of one error, of all calls, and of all log lines and metrics: what the guest keeps to, and a little room. */
const maxError = 8000;
const maxCalls = 2_200_000;
const maxWords = 300_000;
/** Characters of a call's operation, and of a level, a kind or a type. */
const maxName = 100;

const kinds: readonly string[] = ["failed", "permanent", "unreadable", "output", "deadline", "cpu"];
const levels: readonly string[] = ["debug", "info", "warn", "error"];

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Thrown inside this file for what an honest executor would not send. */
class Unfit extends Error {}

/** The texts behind an outbox's head, taken one after another. */
class Texts {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  take(length: unknown): string {
    if (!isIndex(length) || this.at + length > this.text.length) throw new Unfit();
    this.at += length;
    return this.text.slice(this.at - length, this.at);
  }

  /** Characters taken so far. */
  get taken(): number {
    return this.at;
  }

  get isEmpty(): boolean {
    return this.at === this.text.length;
  }
}

/**
 * Reads an outbox; undefined for anything that an honest executor would not send. Checked by hand: it is on the path of
 * every event, and its form is fixed. Only its head is parsed, and that is short: an executor that a guest has taken over
 * must not be able to keep the parent busy with it.
 */
export function readOutbox(bytes: Buffer): Outbox | undefined {
  try {
    const newline = bytes.subarray(0, maxHead).indexOf("\n");
    if (newline < 0) return undefined;
    const parsed: unknown = JSON.parse(bytes.toString("utf8", 0, newline));
    if (!Array.isArray(parsed)) return undefined;
    const [doneHeads, callHeads, logHeads, metricHeads, , strayHeads] = parsed as unknown[];
    const texts = new Texts(bytes.toString("utf8", newline + 1));
    const done = each(doneHeads, (entry) => readDone(entry, texts));
    const calls = each(callHeads, (entry) => readCall(entry, texts), texts, maxCalls);
    const wordsAt = texts.taken;
    const logs = each(logHeads, (entry) => readLog(entry, texts), texts, maxWords);
    const metrics = each(metricHeads, (entry) => readMetric(entry, texts), texts, maxWords - (texts.taken - wordsAt));
    const strays = each(strayHeads, (entry) => readError(entry as unknown[], texts));
    return texts.isEmpty ? { done, calls, logs, metrics, strays } : undefined;
  } catch (error) {
    if (error instanceof Unfit || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function each<T>(list: unknown, read: (entry: unknown[]) => T, texts?: Texts, limit = 0): T[] {
  if (!Array.isArray(list) || list.length > maxEntries) throw new Unfit();
  const before = texts?.taken ?? 0;
  const all = list.map((entry) => read(Array.isArray(entry) ? entry : [entry]));
  if (texts && texts.taken - before > limit) throw new Unfit();
  return all;
}

function readDone([no, kind, name, message, stack, retryAfterMs]: unknown[], texts: Texts): Done {
  if (!isIndex(no)) throw new Unfit();
  if (kind === undefined) return { no, kind: "ok", name: "", message: "", stack: "", retryAfterMs: undefined };
  if (typeof kind !== "string" || !kinds.includes(kind) || typeof retryAfterMs !== "number") throw new Unfit();
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
  return { no, level: level as GuestLog["level"], message: texts.take(message), fields: texts.take(fields) };
}

function readMetric([no, type, name, value, labels]: unknown[], texts: Texts): GuestMetric {
  if (!isIndex(no) || (type !== "increment" && type !== "observe") || typeof value !== "number") throw new Unfit();
  return { no, type, name: texts.take(name), value, labels: texts.take(labels) };
}

/** Control characters, line breaks that are none in JSON, and what turns a text's direction around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text that a person's terminal may show: control characters other than tab and newline are written out. */
export const clean = (text: string): string =>
  text.replace(control, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A JSON object's text as an object, cleaned; empty for anything else. */
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

/** An escape of a control character in JSON, or of anything else. */
const escaped = /\\(?:u([0-9a-fA-F]{4})|.)/gs;

/**
 * JSON whose strings hold no control characters. In the text, not in the values: visiting each of these costs ten times as
 * much as the parsing.
 */
function cleanJson(text: string): string {
  const visible = text.replace(control, (character) => `\\${clean(character)}`);
  if (!/\\[bfru]/.test(visible)) return visible;
  return visible.replace(escaped, (found, hex: string | undefined) => {
    if (hex === undefined)
      return ({ "\\b": "\\\\u0008", "\\f": "\\\\u000c", "\\r": "\\\\u000d" } as Record<string, string>)[found] ?? found;
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    const shown = clean(character);
    return shown === character ? found : `\\${shown}`;
  });
}
