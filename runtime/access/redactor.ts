import { textOfNumber } from "../base/exact-json.ts";
import { cutMark } from "../base/wording.ts";
import { formsOf } from "./encodings.ts";
import type { ResolvedEnv } from "./env.ts";

/** Shorter secrets cannot be told from ordinary text: to blot out every "on" hides nothing and spoils everything. */
const shortestSecret = 4;
/** Configuration is mostly words such as `production`, which are no secret by themselves. */
const shortestConfiguration = 12;
const mark = "[redacted]";

/** Characters by which a form is found: those of the shortest one. */
const gram = shortestSecret;
/**
 * Characters compared, beyond which the rest is taken out unread: a handler knows its values, and could write what is slow to tell
 * from them. So many for one text or one object's texts, more for each of their characters, and never more than the most, which
 * take 5 ms.
 */
const leastCompared = 1000;
const comparedEach = 30;
const mostCompared = 1_000_000;

/** What is left of these. */
interface Allowance {
  left: number;
}

/** How one text may hold a value. */
interface Form {
  readonly text: string;
  /** Characters that it has in common with the one before it, at its beginning. */
  readonly shared: number;
}

/** What is known of a function: the forms of its values, by their first characters, and in their order. */
interface Known {
  readonly forms: ReadonlyMap<string, readonly Form[]>;
  /** Whether any form may begin with the characters of such a hash: most places of a text are passed over by it. */
  readonly maybe: Uint8Array;
}

/** Of the characters that begin a form. */
const hashAt = (text: string, at: number): number =>
  (text.charCodeAt(at) +
    31 * text.charCodeAt(at + 1) +
    961 * text.charCodeAt(at + 2) +
    29791 * text.charCodeAt(at + 3)) &
  0xffff;

/** Cuts the values of a function's environment out of text that leaves the runtime: logs, status, dead letters. */
export class Redactor {
  private readonly known = new Map<string, Known>();

  /** Learns a function's values; those it had before are forgotten. */
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

  /** Forgets a function that is unloaded. */
  forget(functionName: string): void {
    this.known.delete(functionName);
  }

  /**
   * The text without the function's values in any of the encodings. Of a value that the end of a cut text has cut off, its
   * beginning is taken as well, from four characters on.
   */
  redact(functionName: string, text: string): string {
    const known = this.known.get(functionName);
    return known ? redacted(text, known, { left: leastCompared }) : text;
  }

  /** The same for every string, number, boolean and key within plain data. A number that holds a value becomes a string. */
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

/** As JSON writes a number or a boolean, of which a Secret's value may be the text. */
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

/** A stretch of a text: where it begins, and where what follows it does. */
type Stretch = readonly [from: number, to: number];

/**
 * Where forms stand in a text, and beginnings of forms that a cut has cut off, in order. They may overlap, since a
 * value may overlap another's beginning. The time that it takes has a bound, whatever a handler makes of the text.
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
      // Where it goes on as the one before it, the text leaves both at the same place.
      if (shared <= length) length = commonLength(text, from, form, shared);
      allowance.left -= 1 + Math.max(0, length - before);
      if (length === form.length || text[from + length] === cutMark) to = Math.max(to, from + length);
    }
    if (allowance.left < 0) return [...found, [from, text.length]];
    if (to > from) found.push([from, to]);
  }
  return found;
}

/** How many characters of the form stand at that place of the text, from its first on, of which `known` do. */
function commonLength(text: string, from: number, form: string, known: number): number {
  const most = Math.min(form.length, text.length - from);
  for (let at = known; at < most; at++) if (text.charCodeAt(from + at) !== form.charCodeAt(at)) return at;
  return most;
}
