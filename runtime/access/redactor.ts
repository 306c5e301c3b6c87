import { textOfNumber } from "../base/exact-json.ts";
import { cutMark } from "../base/wording.ts";
import { formsOf } from "./encodings.ts";
import type { ResolvedEnv } from "./env.ts";

/**
 * Minimum length of secrets. Shorter ones cannot be distinguished from ordinary text: redacting every "on" would hide nothing and
 * spoil every text.
 */
const shortestSecret = 4;
/** Minimum length of configuration values, most of which are words such as `production` that are not secret. */
const shortestConfiguration = 12;
const mark = "[redacted]";

/** Number of characters by which a form is found: the length of the shortest one. */
const gram = shortestSecret;
/**
 * Limits of compared characters, beyond which the rest of the text is removed unread. A handler knows its values, and could write
 * text that is slow to compare. A base for each text or object, more for each character, and a maximum, which takes 5 ms.
 */
const leastCompared = 1000;
const comparedEach = 30;
const mostCompared = 1_000_000;

/** The remaining number of comparisons. */
interface Allowance {
  left: number;
}

/** One form of a value. */
interface Form {
  readonly text: string;
  /** Length of the common prefix with the previous form. */
  readonly shared: number;
}

/** A function's forms: sorted, and by their first characters. */
interface Known {
  readonly forms: ReadonlyMap<string, readonly Form[]>;
  /** True at the hashes with which any form may begin, so that most places of a text are skipped. */
  readonly maybe: Uint8Array;
}

/** Returns the hash of the characters at the beginning of a form. */
const hashAt = (text: string, at: number): number =>
  (text.charCodeAt(at) +
    31 * text.charCodeAt(at + 1) +
    961 * text.charCodeAt(at + 2) +
    29791 * text.charCodeAt(at + 3)) &
  0xffff;

/** Removes the values of a function's environment from text that leaves the runtime: logs, status, dead letters. */
export class Redactor {
  private readonly known = new Map<string, Known>();

  /** Sets a function's values, in place of its earlier ones. */
  learn(functionName: string, { secrets, configuration }: ResolvedEnv["sensitive"]): void {
    const values = [
      ...secrets.filter((value) => value.length >= shortestSecret),
      ...configuration.filter((value) => value.length >= shortestConfiguration),
    ];
    this.forget(functionName);
    const all = [...new Set(values.flatMap((value) => [...formsOf(value, shortestSecret)]))].filter(
      (form) => form.length >= gram,
    );
    if (all.length === 0) return;
    const maybe = new Uint8Array(2 ** 16);
    for (const form of all) maybe[hashAt(form, 0)] = 1;
    const forms = new Map<string, Form[]>();
    for (const text of all.sort()) {
      const alike = forms.get(text.slice(0, gram)) ?? [];
      const before = alike.at(-1)?.text ?? text.slice(0, gram);
      alike.push({ text, shared: commonLength(text, 0, before, gram) });
      forms.set(text.slice(0, gram), alike);
    }
    this.known.set(functionName, { forms, maybe });
  }

  /** Forgets an unloaded function. */
  forget(functionName: string): void {
    this.known.delete(functionName);
  }

  /**
   * Returns the text without the function's values in any encoding. Also removes the beginning of a value before the mark of a
   * cut text, from four characters on.
   */
  redact(functionName: string, text: string): string {
    const known = this.known.get(functionName);
    return known ? redacted(text, known, { left: leastCompared }) : text;
  }

  /** As `redact`, for every string, number, boolean and key in plain data. A number that contains a value becomes a string. */
  redactData<T>(functionName: string, data: T): T {
    const known = this.known.get(functionName);
    return known ? (redactedData(data, known, { left: leastCompared }) as T) : data;
  }
}

function redactedData(data: unknown, known: Known, allowance: Allowance): unknown {
  if (typeof data === "string") return redacted(data, known, allowance);
  if (Array.isArray(data)) return data.map((item) => redactedData(item, known, allowance));
  const text = textOfScalar(data);
  if (text !== undefined) {
    const shown = redacted(text, known, allowance);
    return shown === text ? data : shown;
  }
  if (typeof data !== "object" || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [
      redacted(key, known, allowance),
      redactedData(value, known, allowance),
    ]),
  );
}

/** Returns a number or boolean as JSON writes it, because a Secret's value may be that text. */
const textOfScalar = (data: unknown): string | undefined =>
  typeof data === "number" || typeof data === "boolean" || typeof data === "bigint" ? String(data) : textOfNumber(data);

function redacted(text: string, known: Known, allowance: Allowance): string {
  let shown = "";
  let at = 0;
  for (const [from, to] of stretchesOf(text, known, allowance)) {
    if (from >= at) shown += text.slice(at, from) + mark;
    at = Math.max(at, to);
  }
  return at === 0 ? text : shown + text.slice(at);
}

/** A range of a text: its start and its end, exclusive. */
type Stretch = readonly [from: number, to: number];

/**
 * Returns the ranges of forms in a text, and of beginnings of forms before a cut, in order. They may overlap, because a value may
 * overlap another's beginning. Takes limited time, whatever text a handler writes.
 */
function stretchesOf(text: string, { forms, maybe }: Known, allowance: Allowance): Stretch[] {
  const found: Stretch[] = [];
  allowance.left = Math.min(mostCompared, allowance.left + text.length * comparedEach);
  for (let from = 0; from + gram <= text.length; from++) {
    if (maybe[hashAt(text, from)] === 0) continue;
    let to = from;
    let length = gram;
    for (const { text: form, shared } of forms.get(text.slice(from, from + gram)) ?? []) {
      const before = length;
      // If it continues like the previous form, the text differs from both at the same place.
      if (shared <= length) length = commonLength(text, from, form, shared);
      allowance.left -= 1 + Math.max(0, length - before);
      if (length === form.length || text[from + length] === cutMark) to = Math.max(to, from + length);
    }
    if (allowance.left < 0) return [...found, [from, text.length]];
    if (to > from) found.push([from, to]);
  }
  return found;
}

/** Returns how many characters of the form match at a place in the text. The first `known` are known to match. */
function commonLength(text: string, from: number, form: string, known: number): number {
  const most = Math.min(form.length, text.length - from);
  for (let at = known; at < most; at++) if (text.charCodeAt(from + at) !== form.charCodeAt(at)) return at;
  return most;
}
