import { clean } from "../sandbox/outbox.host.ts";
import { cutMark } from "../wording.ts";
import type { ResolvedEnv } from "./env.ts";

/** Shorter secrets cannot be told from ordinary text: to blot out every "on" hides nothing and spoils everything. */
const shortestSecret = 4;
/** Configuration is mostly words such as `production`, which are no secret by themselves. */
const shortestConfiguration = 12;
const mark = "[redacted]";

/** Characters by which a form is found: those of the shortest one. */
const gram = shortestSecret;
/** Characters compared in one text, beyond which the rest of it is taken out unread: 5 ms. A handler knows its values, and could write what is slow to tell from them. */
const mostCompared = 1_000_000;

/** What is known of a function: the forms of its values, by their first characters. */
interface Known {
  readonly forms: ReadonlyMap<string, readonly string[]>;
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
    const all = [...new Set(values.flatMap(formsOf))].filter((form) => form.length >= gram);
    if (all.length === 0) return;
    const maybe = new Uint8Array(2 ** 16);
    for (const form of all) maybe[hashAt(form, 0)] = 1;
    const forms = Map.groupBy(all, (form) => form.slice(0, gram));
    this.known.set(functionName, { forms, maybe });
  }

  /** Forgets a function that is unloaded. */
  forget(functionName: string): void {
    this.known.delete(functionName);
  }

  /**
   * The text without the function's values, as they are or as JSON, a URL, a form or base64 would hold them. Of a value that the end
   * of a cut text has cut off, its beginning is taken as well, from four characters on.
   */
  redact(functionName: string, text: string): string {
    const known = this.known.get(functionName);
    if (!known) return text;
    let shown = "";
    let at = 0;
    for (const [from, to] of stretchesOf(text, known)) {
      if (from >= at) shown += text.slice(at, from) + mark;
      at = Math.max(at, to);
    }
    return at === 0 ? text : shown + text.slice(at);
  }

  /** The same for every string, and every key, within plain data. */
  redactData<T>(functionName: string, data: T): T {
    return this.known.has(functionName) ? (this.walk(functionName, data) as T) : data;
  }

  private walk(name: string, data: unknown): unknown {
    if (typeof data === "string") return this.redact(name, data);
    if (Array.isArray(data)) return data.map((item) => this.walk(name, item));
    if (typeof data !== "object" || data === null) return data;
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [this.redact(name, key), this.walk(name, value)]),
    );
  }
}

/** A stretch of a text: where it begins, and where what follows it does. */
type Stretch = readonly [from: number, to: number];

/**
 * Where forms stand in a text, and beginnings of forms that a cut has cut off, in order; they may overlap, since a value may
 * overlap another's beginning. The time that it takes has a bound, whatever a handler makes of the text.
 */
function stretchesOf(text: string, { forms, maybe }: Known): Stretch[] {
  const found: Stretch[] = [];
  let compared = 0;
  for (let from = 0; from + gram <= text.length; from++) {
    if (maybe[hashAt(text, from)] === 0) continue;
    let to = from;
    for (const form of forms.get(text.slice(from, from + gram)) ?? []) {
      const length = commonLength(text, from, form);
      compared += length;
      if (length === form.length || text[from + length] === cutMark) to = Math.max(to, from + length);
    }
    if (compared > mostCompared) return [...found, [from, text.length]];
    if (to > from) found.push([from, to]);
  }
  return found;
}

/** How many characters of the form stand at that place of the text, from its first on. */
function commonLength(text: string, from: number, form: string): number {
  const most = Math.min(form.length, text.length - from);
  for (let at = gram; at < most; at++) if (text.charCodeAt(from + at) !== form.charCodeAt(at)) return at;
  return most;
}

/** A secret file mostly ends in a line break that a handler trims: both are the secret. */
function formsOf(value: string): string[] {
  const trimmed = value.trim();
  return [value, ...(trimmed.length >= shortestSecret ? [trimmed] : [])].flatMap((text) => [
    text,
    // As the sandbox writes out what would steer a terminal.
    clean(text),
    JSON.stringify(text).slice(1, -1),
    // JSON that is itself a text: that of fields which are cut.
    clean(JSON.stringify(text).slice(1, -1)),
    encodeURIComponent(text.toWellFormed()),
    new URLSearchParams({ "": text }).toString().slice(1),
    ...base64Forms(Buffer.from(text, "utf8")),
  ]);
}

/** As base64 holds it, alone or behind other bytes: a Basic header's token stands behind the user's name. */
function base64Forms(bytes: Buffer): string[] {
  const alone = bytes.toString("base64").replace(/=+$/, "");
  const behind = [1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    // Without the characters that hold bits of what is before or behind it.
    return text.slice(shift + 1, Math.floor(((shift + bytes.length) * 4) / 3));
  });
  const followed = alone.slice(0, Math.floor((bytes.length * 4) / 3));
  const forms = [alone, followed, ...behind].filter((form) => form.length >= shortestSecret);
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}
