import { dirname } from "node:path";
import type { Message } from "esbuild";
import { type ErrorCode, type Place, WatchfireError } from "../errors.ts";
import { lowerFirst } from "../wording.ts";
import { displayPath, isInstalled } from "./source-path.ts";

/** A fault of our own that travels through esbuild as a message's `detail`. */
export interface BuildFault {
  readonly code: ErrorCode;
  readonly hint?: string;
}

/** esbuild's name for a warning that we refuse, and why. */
const refusedWarnings: Readonly<Record<string, FaultText>> = {
  "unsupported-dynamic-import": {
    code: "WF_BUNDLE_DYNAMIC_IMPORT",
    what: "the name of this import is only known at run time",
  },
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
    hint: "a handler has no file of its own; import what it needs",
  },
};

interface FaultText {
  readonly code: ErrorCode;
  readonly what: string;
  readonly hint?: string;
}

/**
 * What a build's messages amount to; none where they are harmless.
 * Warnings are refused in the author's own files only: packages often guard what they cannot have.
 */
export function buildFaults(
  { errors, warnings }: { readonly errors: readonly Message[]; readonly warnings: readonly Message[] },
  handler: string,
  entry: string,
): WatchfireError[] {
  const fault = (message: Message, { code, what, hint }: FaultText): WatchfireError => {
    const place = placeOf(message, handler, entry, code);
    return new WatchfireError(code, { what, place, ...(hint !== undefined && { hint }) });
  };
  return [
    ...errors.map((message) => fault(message, textOf(message, entry))),
    ...warnings.flatMap((message) => {
      // The generated entry finds a file with neither imports nor exports: an empty one, mostly.
      if (message.id === "import-is-undefined" && message.location?.file === entry) {
        return [fault(message, textOf(message, entry))];
      }
      const refused = refusedWarnings[message.id];
      return refused && !isInstalled(message.location?.file ?? "") ? [fault(message, refused)] : [];
    }),
  ];
}

function textOf({ id, text, location, detail }: Message, entry: string): FaultText {
  const own = detail as BuildFault | undefined;
  if (own?.code) return { ...own, what: text };
  if (id === "import-is-undefined" || /^No matching export in .* for import "default"$/.test(text)) {
    const inEntry = location === null || location.file === entry;
    if (inEntry) return { code: "WF_BUNDLE_NO_HANDLER", what: "the file has no default export" };
  }
  const [, name] = /^Could not resolve "(.*)"$/.exec(text) ?? [];
  if (name !== undefined) {
    const isHandler = location === null || location.file === entry;
    return isHandler
      ? { code: "WF_BUNDLE_HANDLER_MISSING", what: "the handler's file cannot be read" }
      : { code: "WF_BUNDLE_UNRESOLVED", what: `"${name}" cannot be found` };
  }
  const [, file, missing] = /^No matching export in "(.*)" for import "(.*)"$/.exec(text) ?? [];
  if (file !== undefined) {
    const hint = "correct the name, or export it there";
    return { code: "WF_BUNDLE_UNRESOLVED", what: `"${file}" exports no "${missing}"`, hint };
  }
  const [, kind] = /^No loader is configured for "(.*)" files/.exec(text) ?? [];
  if (kind !== undefined) {
    const hint = "import TypeScript, JavaScript, JSON or .txt, and put other data into one of them";
    return { code: "WF_BUNDLE_UNRESOLVED", what: `a "${kind}" file cannot be imported`, hint };
  }
  if (/^Top-level await /.test(text)) {
    return { code: "WF_BUNDLE_TOP_LEVEL_AWAIT", what: "this await stands outside of any function" };
  }
  return { code: "WF_BUNDLE_SYNTAX", what: `cannot be parsed: ${lowerFirst(text)}` };
}

/** esbuild counts columns from 0; a place in the generated entry stands for the handler itself. */
function placeOf({ location }: Message, handler: string, entry: string, code: ErrorCode): Place {
  const folder = dirname(handler);
  if (location && location.file !== entry) {
    return { file: displayPath(location.file, folder), line: location.line, column: location.column + 1 };
  }
  const file = displayPath(handler, folder);
  return code === "WF_BUNDLE_HANDLER_MISSING" ? { file } : { file, line: 1, column: 1 };
}
