import type { Message } from "esbuild";
import { type ErrorCode, type SourceLocation, WatchfireError } from "../../base/errors.ts";
import { cut, lowerFirst } from "../../base/wording.ts";
import { faultLimit } from "../limits.ts";
import type { BuildFault } from "../source-fault.ts";
import { entrySource, isInstalled } from "../source-path.ts";
import type { Imports } from "./imports.ts";

const unknownName: FaultText = {
  code: "WF_BUNDLE_DYNAMIC_IMPORT",
  what: "the name of this import is only known at run time",
};

/** Warnings that are treated as errors, by esbuild's name, and why. */
const refusedWarnings: Readonly<Record<string, FaultText>> = {
  "unsupported-dynamic-import": unknownName,
  "empty-glob": unknownName,
  "unsupported-require-call": {
    code: "WF_BUNDLE_DYNAMIC_IMPORT",
    what: "the name of this require is only known at run time",
  },
  "indirect-require": {
    code: "WF_BUNDLE_ABSENT_NAME",
    what: "require does not exist inside an isolate",
    hint: "import the module by its name",
  },
  "empty-import-meta": {
    code: "WF_BUNDLE_ABSENT_NAME",
    what: "import.meta does not exist inside an isolate",
    hint: "a handler has no file; import what it needs",
  },
};

interface FaultText {
  readonly code: ErrorCode;
  readonly what: string;
  readonly hint?: string;
}

/** The build that messages are about. */
export interface BuildContext {
  readonly imports: Imports;
  /** Path of the handler. */
  readonly handler: string;
  /** Returns a path as shown to users. */
  readonly show: (file: string) => string;
}

/** Longest text taken from an esbuild message, which may quote a line of code. */
const textLimit = 300;

/**
 * Converts a build's messages to faults, at most 100; empty if they are harmless. Warnings count only in the author's own files:
 * packages often guard features that they cannot have.
 */
export function buildFaults(
  { errors, warnings }: { readonly errors: readonly Message[]; readonly warnings: readonly Message[] },
  subject: BuildContext,
): WatchfireError[] {
  const fault = (message: Message, { code, what, hint }: FaultText): WatchfireError => {
    const named = cut(subject.imports.withNames(what, subject.show), textLimit);
    return new WatchfireError(code, {
      what: named,
      place: placeOf(message, subject, code),
      ...(hint !== undefined && { hint }),
    });
  };
  const refusedOf = (message: Message): FaultText | undefined => {
    // The generated entry found a file with neither imports nor exports, usually an empty one.
    if (message.id === "import-is-undefined" && isEntry(message)) return textOf(message);
    const refused = refusedWarnings[message.id];
    return refused && !isInstalled(fileOf(message, subject) ?? "") ? refused : undefined;
  };
  const faults = errors.slice(0, faultLimit).map((message) => fault(message, textOf(message)));
  for (const message of warnings) {
    if (faults.length >= faultLimit) break;
    const refused = refusedOf(message);
    if (refused) faults.push(fault(message, refused));
  }
  return faults;
}

const nothing = "the file exports nothing";

/** Fault of a handler file without an export, which is common while it is being written. */
export const emptyHandler = ({ show, handler }: BuildContext): WatchfireError =>
  new WatchfireError("WF_BUNDLE_NO_HANDLER", {
    what: nothing,
    place: { file: show(handler), line: 1, column: 1 },
  });

const isEntry = ({ location }: Message): boolean => location === null || location.file === entrySource;

const fileOf = ({ location }: Message, { imports }: BuildContext): string | undefined =>
  location ? imports.fileOf(location.file) : undefined;

function textOf(message: Message): FaultText {
  const { id, text, detail } = message;
  const own = detail as BuildFault | undefined;
  if (own?.code === "WF_BUNDLE_UNRESOLVED" && isEntry(message)) {
    return { code: "WF_BUNDLE_HANDLER_MISSING", what: "the handler's file cannot be read" };
  }
  if (own?.code) return { ...own, what: text };
  // For one of Node's ECMAScript modules, esbuild reports it itself.
  if (id === "import-is-undefined" && isEntry(message)) return { code: "WF_BUNDLE_NO_HANDLER", what: nothing };
  if (/^No matching export in .* for import "default"$/.test(text) && isEntry(message)) {
    return { code: "WF_BUNDLE_NO_HANDLER", what: "the file has no default export" };
  }
  // A name built at run time, for which esbuild would search folders.
  if (/^Could not resolve (?:import|require)\(/.test(text)) return unknownName;
  const [, file, missing] = /^No matching export in "(.*)" for import "(.*)"$/.exec(text) ?? [];
  if (file !== undefined) {
    const hint = "correct the name, or export it there";
    return { code: "WF_BUNDLE_UNRESOLVED", what: `"${file}" exports no "${missing}"`, hint };
  }
  if (/^Top-level await /.test(text)) {
    return { code: "WF_BUNDLE_TOP_LEVEL_AWAIT", what: "this await is outside of any function" };
  }
  return { code: "WF_BUNDLE_SYNTAX", what: `cannot be parsed: ${lowerFirst(text)}` };
}

/** Returns a message's place. esbuild counts columns from 0; a place in the generated entry stands for the handler itself. */
function placeOf(message: Message, subject: BuildContext, code: ErrorCode): SourceLocation {
  const file = fileOf(message, subject);
  const { location } = message;
  if (location && file !== undefined) {
    return { file: subject.show(file), line: location.line, column: location.column + 1 };
  }
  const handler = subject.show(subject.handler);
  return handlerFaults.has(code) ? { file: handler } : { file: handler, line: 1, column: 1 };
}

/** Faults that concern the handler's file as a whole. */
const handlerFaults: ReadonlySet<ErrorCode> = new Set([
  "WF_BUNDLE_HANDLER_MISSING",
  "WF_BUNDLE_OUTSIDE",
  "WF_BUNDLE_HIDDEN",
  "WF_BUNDLE_NOT_A_FILE",
  "WF_BUNDLE_UNREADABLE",
  "WF_BUNDLE_LIMIT",
]);
