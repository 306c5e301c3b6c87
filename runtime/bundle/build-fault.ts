import { dirname } from "node:path";
import type { Message } from "esbuild";
import { type ErrorCode, lowerFirst, type Place, WatchfireError } from "../errors.ts";
import { displayPath, isInstalled } from "./source-path.ts";

/** A fault of our own that travels through esbuild as a message's `detail`. */
export interface BuildFault {
  readonly code: ErrorCode;
  readonly hint?: string;
}

/** esbuild's name for a warning that we refuse, and why. */
const refusedWarnings: Readonly<Record<string, { code: ErrorCode; what: string }>> = {
  "unsupported-dynamic-import": {
    code: "WF_BUNDLE_DYNAMIC_IMPORT",
    what: "the name of this import is only known at run time",
  },
  "unsupported-require-call": {
    code: "WF_BUNDLE_DYNAMIC_IMPORT",
    what: "the name of this require is only known at run time",
  },
  "indirect-require": { code: "WF_BUNDLE_ABSENT_NAME", what: "require does not exist inside an isolate" },
};

/**
 * Throws what a build's messages amount to; returns nothing where they are harmless.
 * Warnings are refused in the author's own files only: packages often guard what they cannot have.
 */
export function refuseMessages(failure: unknown, handler: string, entry: string): undefined {
  const { errors = [], warnings = [] } = failure as { errors?: Message[]; warnings?: Message[] };
  const fatal = errors[0];
  if (fatal) throw fromError(fatal, handler, entry, failure);
  for (const warning of warnings) {
    const refused = refusedWarnings[warning.id];
    if (!refused || isInstalled(warning.location?.file ?? "")) continue;
    throw new WatchfireError(refused.code, { what: refused.what, place: placeOf(warning, handler, entry) });
  }
  if (failure instanceof Error) throw failure;
  return undefined;
}

function fromError(message: Message, handler: string, entry: string, cause: unknown): WatchfireError {
  const place = placeOf(message, handler, entry);
  const fault = message.detail as BuildFault | undefined;
  if (fault?.code) {
    return new WatchfireError(fault.code, { what: message.text, place, ...(fault.hint ? { hint: fault.hint } : {}) });
  }
  if (message.id === "import-is-undefined" || /^No matching export in .* for import "default"$/.test(message.text)) {
    return new WatchfireError("WF_BUNDLE_NO_HANDLER", { what: "the file has no default export", place });
  }
  if (message.text.startsWith("Could not resolve")) {
    const missing = message.location?.file === entry || message.location === null;
    return new WatchfireError(missing ? "WF_BUNDLE_HANDLER_MISSING" : "WF_BUNDLE_UNRESOLVED", {
      what: missing ? "the handler's file cannot be read" : lowerFirst(message.text),
      place,
    });
  }
  return new WatchfireError("WF_BUNDLE_SYNTAX", { what: lowerFirst(message.text), place, cause });
}

/** esbuild counts columns from 0; a place in the generated entry stands for the handler itself. */
function placeOf(message: Message, handler: string, entry: string): Place {
  const { location } = message;
  const folder = dirname(handler);
  if (!location || location.file === entry) return { file: displayPath(handler, folder) };
  return { file: displayPath(location.file, folder), line: location.line, column: location.column + 1 };
}
