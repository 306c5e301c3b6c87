import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import { WatchfireError } from "../../base/errors.ts";
import { faultLimit } from "../limits.ts";
import { isInstalled } from "../source-path.ts";
import type { Output } from "./output.ts";

/** Globals that an isolate lacks on purpose, and their replacements. */
const absentNames: Readonly<Record<string, string>> = {
  process: "use `ctx.env` for settings",
  Buffer: "use Uint8Array, TextEncoder, TextDecoder, atob and btoa",
  __dirname: "a handler has no file system; import the file instead",
  __filename: "a handler has no file system; import the file instead",
  global: "use globalThis",
  window: "use globalThis, for what there is",
  self: "use globalThis",
  document: "a handler runs without a page",
  navigator: "a handler runs without a browser",
  setImmediate: "use setTimeout or queueMicrotask",
  clearImmediate: "use setTimeout and clearTimeout",
  fetch:
    "use `ctx.fetch`, and name the host under `egress` in the manifest: a call belongs to the event it is made for",
  Request: "`ctx.fetch` takes a URL and plain options",
  Response: "`ctx.fetch` returns one; a handler cannot create one",
  Headers: "`ctx.fetch` takes headers as a plain object, or as pairs",
  XMLHttpRequest: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  WebSocket: "use `ctx.fetch`; an event ends, and its connections with it",
  EventSource: "watch objects by triggers; an event ends, and its connections with it",
  Blob: "use Uint8Array",
  FormData: "give `ctx.fetch` the body as text or bytes",
  ReadableStream: "`ctx.fetch` returns whole bodies",
  localStorage: "keep state in the cluster; an isolate may be replaced between any two events",
  sessionStorage: "keep state in the cluster; an isolate may be replaced between any two events",
  indexedDB: "keep state in the cluster; an isolate may be replaced between any two events",
  Worker: "a handler has one thread; to do more at once, raise `delivery.concurrency`",
  WebAssembly: "use JavaScript; memory outside the handler's heap cannot be limited",
  SharedArrayBuffer: "use ArrayBuffer; no other thread could share it",
  Atomics: "plain reads and writes do; no other thread runs in the isolate",
};

const prefix = "__watchfire_absent_";

/**
 * esbuild's `define` for a build that marks these names, also as members of `globalThis`. By esbuild's scope analysis it replaces
 * free references only; a local variable of the same name, a property or a string is not affected.
 */
export const placeholders: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(absentNames).flatMap((name) => [
    [name, `${prefix}${name}`],
    [`globalThis.${name}`, `${prefix}${name}`],
  ]),
);

/** Uses of absent names in a marked build. */
interface AbsentUses {
  /** Uses in the author's own files, each with its place; at most 100. */
  readonly faults: readonly WatchfireError[];
  /**
   * True if anything is marked. Packages use such names behind a guard, and a bundle with such a package must be built unmarked.
   */
  readonly marked: boolean;
}

/**
 * Finds the marks of a build. `typeof name` is not a use, because it only tests for the name. `show`: returns a path as shown to
 * users.
 */
export function usesOfAbsentNames({ script, map }: Output, show: (file: string) => string): AbsentUses {
  const faults: WatchfireError[] = [];
  let trace: TraceMap | undefined;
  let marked = false;
  let lineStart = 0;
  let line = 1;
  for (const { 0: mark, index } of script.matchAll(markPattern)) {
    marked = true;
    if (faults.length >= faultLimit) break;
    if (/typeof (?:\(0, )?$/.test(script.slice(Math.max(0, index - 20), index))) continue;
    for (let end = script.indexOf("\n", lineStart); end >= 0 && end < index; end = script.indexOf("\n", lineStart)) {
      lineStart = end + 1;
      line += 1;
    }
    trace ??= new TraceMap({ ...map, sources: [...map.sources], names: [...map.names], sourcesContent: [] });
    const position = originalPositionFor(trace, { line, column: index - lineStart });
    if (position.source === null || isInstalled(position.source)) continue;
    const name = mark.slice(prefix.length);
    faults.push(
      new WatchfireError("WF_BUNDLE_ABSENT_NAME", {
        what: `${name} does not exist inside an isolate`,
        place: { file: show(position.source), line: position.line, column: position.column + 1 },
        ...(absentNames[name] ? { hint: absentNames[name] } : {}),
      }),
    );
  }
  return { faults, marked };
}

const markPattern = new RegExp(`${prefix}\\w+`, "g");
