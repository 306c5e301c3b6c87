/** How the guest says that an event ended. */
export type DoneKind = "ok" | "failed" | "permanent" | "unreadable" | "output" | "deadline" | "cpu";

export interface Done {
  readonly no: number;
  readonly kind: DoneKind;
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** Milliseconds; undefined where the handler did not say. */
  readonly retryAfterMs: number | undefined;
}

export interface GuestCall {
  readonly call: number;
  readonly no: number;
  readonly operation: string;
  readonly args: string;
}

export interface GuestLog {
  readonly no: number;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export interface GuestMetric {
  readonly no: number;
  readonly type: "increment" | "observe";
  readonly name: string;
  readonly value: number;
  readonly labels: Record<string, string>;
}

/** What an isolate had to tell, checked. */
export interface Outbox {
  readonly done: readonly Done[];
  readonly calls: readonly GuestCall[];
  readonly logs: readonly GuestLog[];
  readonly metrics: readonly GuestMetric[];
  readonly strays: readonly Stray[];
}

/** What was thrown, or rejected and not heard, once its event had ended. */
export interface Stray {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** Entries of one kind that may come at once; the guest stops itself at 1000 messages in all. */
const maxEntries = 1100;
const kinds: readonly string[] = ["failed", "permanent", "unreadable", "output", "deadline", "cpu"];
const levels: readonly string[] = ["debug", "info", "warn", "error"];

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * Reads an outbox; undefined for anything that an honest executor would not send. Checked by hand: it is on the path of
 * every event, and its form is fixed.
 */
export function readOutbox(bytes: Buffer): Outbox | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const done = every(parsed[0], readDone);
  const calls = every(parsed[1], readCall);
  const logs = every(parsed[2], readLog);
  const metrics = every(parsed[3], readMetric);
  const strays = every(parsed[5] ?? [], readStray);
  return done && calls && logs && metrics && strays ? { done, calls, logs, metrics, strays } : undefined;
}

function every<T>(list: unknown, read: (entry: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(list) || list.length > maxEntries) return undefined;
  const all: T[] = [];
  for (const entry of list) {
    const one = read(entry);
    if (one === undefined) return undefined;
    all.push(one);
  }
  return all;
}

function readDone(entry: unknown): Done | undefined {
  if (isIndex(entry)) return { no: entry, kind: "ok", name: "", message: "", stack: "", retryAfterMs: undefined };
  if (!Array.isArray(entry)) return undefined;
  const [no, kind, name, message, stack, retryAfterMs] = entry as unknown[];
  if (!isIndex(no) || typeof kind !== "string" || !kinds.includes(kind)) return undefined;
  if (typeof name !== "string" || typeof message !== "string" || typeof stack !== "string") return undefined;
  if (typeof retryAfterMs !== "number") return undefined;
  return {
    no,
    kind: kind as DoneKind,
    name: clean(name),
    message: clean(message),
    stack: clean(stack),
    retryAfterMs: retryAfterMs >= 0 ? retryAfterMs : undefined,
  };
}

function readStray(entry: unknown): Stray | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [name, message, stack] = entry as unknown[];
  if (typeof name !== "string" || typeof message !== "string" || typeof stack !== "string") return undefined;
  return { name: clean(name), message: clean(message), stack: clean(stack) };
}

function readCall(entry: unknown): GuestCall | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [call, no, operation, args] = entry as unknown[];
  if (!isIndex(call) || !isIndex(no) || typeof operation !== "string" || typeof args !== "string") return undefined;
  return operation.length > 100 ? undefined : { call, no, operation, args };
}

function readLog(entry: unknown): GuestLog | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [no, level, message, fields] = entry as unknown[];
  if (!isIndex(no) || typeof level !== "string" || !levels.includes(level)) return undefined;
  if (typeof message !== "string" || typeof fields !== "string") return undefined;
  return { no, level: level as GuestLog["level"], message: clean(message), fields: objectOf(fields) };
}

function readMetric(entry: unknown): GuestMetric | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [no, type, name, value, labels] = entry as unknown[];
  if (!isIndex(no) || (type !== "increment" && type !== "observe")) return undefined;
  if (typeof name !== "string" || typeof value !== "number" || typeof labels !== "string") return undefined;
  const texts = Object.entries(objectOf(labels)).map(([key, label]) => [clean(key), clean(String(label))] as const);
  return { no, type, name: clean(name), value, labels: Object.fromEntries(texts) };
}

/** A JSON object's text as an object; empty for anything else. */
function objectOf(text: string): Record<string, unknown> {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text, (_, inner) => (typeof inner === "string" ? clean(inner) : inner));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;

/** Text that a person's terminal may show: control characters other than tab and newline are written out. */
export const clean = (text: string): string =>
  text.replace(control, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
