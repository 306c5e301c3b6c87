/** Whose mistake a failure is: `user` ends a command with status 1, `system` with status 2. */
export type Blame = "user" | "system";

interface Entry {
  readonly blame: Blame;
  /** What the code means, in one line; the README's table is made from it. */
  readonly summary: string;
  /** What to do about it. */
  readonly hint: string;
}

const user = (summary: string, hint: string): Entry => ({ blame: "user", summary, hint });
const system = (summary: string, hint: string): Entry => ({ blame: "system", summary, hint });

/**
 * Every failure that a user can see, by code: `WF_<ROOM>_<WHAT>`. A code that is retired is never used again.
 * One section per room, in pipeline order.
 */
export const errorCodes = {
  // cli
  WF_CLI_USAGE: user("the command line is wrong", "run `watchfire --help`"),
  WF_CLI_ENVIRONMENT: user("an environment variable has a value that cannot be used", "correct it or unset it"),
  WF_CLI_NODE: user("the Node that runs this is too old", "install Node 24 or newer"),

  // manifest
  WF_MANIFEST_UNKNOWN_FIELD: user(
    "the manifest has a field that the schema does not know",
    "remove it, or correct its spelling",
  ),

  // bundle

  // kube

  // watch

  // filter

  // checkpoint

  // dispatch

  // sandbox

  // access

  // observe

  // dev

  // runtime
  WF_RUNTIME_INTERNAL: system("the runtime hit a fault of its own", "report it with the log lines around it"),
} as const satisfies Record<string, Entry>;

/** A code of the registry. */
export type ErrorCode = keyof typeof errorCodes;

/** A place in a user's file; line and column count from 1. */
export interface Place {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
}

/** What a fault says beyond its code. */
export interface FaultDetail {
  /** What failed, lower case, no full stop. Never holds a secret. */
  readonly what: string;
  readonly place?: Place;
  /** The path inside the document, such as `spec.triggers[0].watch.kind`. */
  readonly path?: string;
  /** The actual value, shortened where long. */
  readonly actual?: unknown;
  /** Replaces the code's own hint where a better one is known. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** A failure with a code from the registry. Its `message` is the one line a user reads. */
export class WatchfireError extends Error {
  override readonly name = "WatchfireError";
  readonly code: ErrorCode;
  readonly detail: FaultDetail;

  constructor(code: ErrorCode, detail: FaultDetail) {
    super(describeFault(code, detail), detail.cause === undefined ? undefined : { cause: detail.cause });
    this.code = code;
    this.detail = detail;
  }

  get blame(): Blame {
    return errorCodes[this.code].blame;
  }

  get hint(): string {
    return this.detail.hint ?? errorCodes[this.code].hint;
  }
}

/** One line: `CODE file:line:column path: what, actual value; hint`. */
export function describeFault(code: ErrorCode, detail: FaultDetail): string {
  const { place, path, actual } = detail;
  const at = place ? ` ${[place.file, place.line, place.column].filter((part) => part !== undefined).join(":")}` : "";
  const inside = path ? ` ${path}` : "";
  const value = actual === undefined ? "" : `, got ${shorten(actual)}`;
  return `${code}${at}${inside}: ${detail.what}${value}; ${detail.hint ?? errorCodes[code].hint}`;
}

/** At most this many characters of an actual value are shown: enough to recognise it on one terminal line. */
const actualLimit = 80;

function shorten(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > actualLimit ? `${text.slice(0, actualLimit)}…` : text;
}
