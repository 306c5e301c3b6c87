import { clean } from "../sandbox/outbox.host.ts";
import type { ResolvedEnv } from "./env.ts";

/** Shorter secrets cannot be told from ordinary text: to blot out every "on" hides nothing and spoils everything. */
const shortestSecret = 4;
/** Configuration is mostly words such as `production`, which are no secret by themselves. */
const shortestConfiguration = 12;
const mark = "[redacted]";

/** Cuts the values of a function's environment out of text that leaves the runtime: logs, status, dead letters. */
export class Redactor {
  private readonly patterns = new Map<string, RegExp>();

  /** Learns a function's values; those it had before are forgotten. */
  learn(functionName: string, { secrets, configuration }: ResolvedEnv["sensitive"]): void {
    const values = [
      ...secrets.filter((value) => value.length >= shortestSecret),
      ...configuration.filter((value) => value.length >= shortestConfiguration),
    ];
    const forms = new Set(values.flatMap(formsOf));
    this.forget(functionName);
    if (forms.size === 0) return;
    // The longest first, so that of two values of which one holds the other nothing is left over.
    const alternatives = [...forms].sort((a, b) => b.length - a.length).map((form) => RegExp.escape(form));
    this.patterns.set(functionName, new RegExp(alternatives.join("|"), "g"));
  }

  /** Forgets a function that is unloaded. */
  forget(functionName: string): void {
    this.patterns.delete(functionName);
  }

  /** The text without the function's values, as they are or as JSON, a URL or base64 would hold them. */
  redact(functionName: string, text: string): string {
    const pattern = this.patterns.get(functionName);
    return pattern ? text.replace(pattern, mark) : text;
  }

  /** The same for every string, and every key, within plain data. */
  redactData<T>(functionName: string, data: T): T {
    return this.patterns.has(functionName) ? (this.walk(functionName, data) as T) : data;
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

/** A secret file mostly ends in a line break that a handler trims: both are the secret. */
function formsOf(value: string): string[] {
  const trimmed = value.trim();
  return [value, ...(trimmed.length >= shortestSecret ? [trimmed] : [])].flatMap((text) => [
    text,
    // As the sandbox writes out what would steer a terminal.
    clean(text),
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text.toWellFormed()),
    Buffer.from(text, "utf8").toString("base64").replace(/=+$/, ""),
  ]);
}
