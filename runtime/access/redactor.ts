import { clean } from "../sandbox/outbox.host.ts";
import { cutMark } from "../wording.ts";
import type { ResolvedEnv } from "./env.ts";

/** Shorter secrets cannot be told from ordinary text: to blot out every "on" hides nothing and spoils everything. */
const shortestSecret = 4;
/** Configuration is mostly words such as `production`, which are no secret by themselves. */
const shortestConfiguration = 12;
const mark = "[redacted]";

/** What is known of a function: the forms of its values, and all of them as one pattern. */
interface Known {
  readonly forms: readonly string[];
  readonly pattern: RegExp;
}

/** Cuts the values of a function's environment out of text that leaves the runtime: logs, status, dead letters. */
export class Redactor {
  private readonly known = new Map<string, Known>();

  /** Learns a function's values; those it had before are forgotten. */
  learn(functionName: string, { secrets, configuration }: ResolvedEnv["sensitive"]): void {
    const values = [
      ...secrets.filter((value) => value.length >= shortestSecret),
      ...configuration.filter((value) => value.length >= shortestConfiguration),
    ];
    // The longest first, so that of two values of which one holds the other nothing is left over.
    const forms = [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length);
    this.forget(functionName);
    if (forms.length === 0) return;
    this.known.set(functionName, {
      forms,
      pattern: new RegExp(forms.map((form) => RegExp.escape(form)).join("|"), "g"),
    });
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
    return text.includes(cutMark) ? redactCut(text, known) : text.replace(known.pattern, mark);
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

/** A text in which there is a cut. What is taken out is found in the text as it is: a value may overlap another's beginning. */
function redactCut(text: string, { forms, pattern }: Known): string {
  const whole = [...text.matchAll(pattern)].map(({ index, 0: found }): Stretch => [index, index + found.length]);
  const stretches = [...whole, ...forms.flatMap((form) => beginnings(text, form))].sort(([a], [b]) => a - b);
  let shown = "";
  let at = 0;
  for (const [from, to] of stretches) {
    if (from >= at) shown += text.slice(at, from) + mark;
    at = Math.max(at, to);
  }
  return shown + text.slice(at);
}

/**
 * The longest beginning of a form before each cut, by the algorithm of Knuth, Morris and Pratt: the time it takes grows with the text's
 * length alone, whatever a handler makes of it.
 */
function beginnings(text: string, form: string): Stretch[] {
  const found: Stretch[] = [];
  // Of each beginning of the form: the longest shorter one that it ends with.
  const shorter = [0];
  const extend = (length: number, next: string | undefined): number => {
    let longest = length;
    while (longest > 0 && (longest === form.length || form[longest] !== next)) longest = shorter[longest - 1] ?? 0;
    return form[longest] === next ? longest + 1 : longest;
  };
  const most = Math.min(form.length, text.length);
  for (let at = 1; at < most; at++) shorter.push(extend(shorter[at - 1] ?? 0, form[at]));
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === cutMark && length >= shortestSecret) found.push([at - length, at]);
    length = extend(length, text[at]);
  }
  return found;
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
