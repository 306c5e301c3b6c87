import { dirname } from "node:path";
import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import { WatchfireError } from "../errors.ts";
import { displayPath, isInstalled } from "./source-path.ts";

/** Globals that do not exist inside an isolate on purpose, and what to use in their place. */
export const absentNames: Readonly<Record<string, string>> = {
  process: "use `ctx.env` for settings",
  Buffer: "use Uint8Array, TextEncoder, TextDecoder, atob and btoa",
  __dirname: "a handler has no file system; import the file instead",
  __filename: "a handler has no file system; import the file instead",
  global: "use globalThis",
  setImmediate: "use setTimeout or queueMicrotask",
  fetch:
    "use `ctx.fetch`, and name the host under `egress` in the manifest: a call belongs to the event it is made for",
  Request: "`ctx.fetch` takes a URL and plain options",
  Response: "`ctx.fetch` gives one; a handler makes none",
  Headers: "`ctx.fetch` takes headers as a plain object, or as pairs",
  XMLHttpRequest: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  WebSocket: "use `ctx.fetch`; an event ends, and its connections with it",
  localStorage: "keep state in the cluster; an isolate may be replaced between any two events",
  WebAssembly: "use JavaScript; memory outside the handler's heap cannot be limited",
  SharedArrayBuffer: "use ArrayBuffer; no other thread could share it",
  Atomics: "plain reads and writes do; no other thread runs in the isolate",
};

const prefix = "__watchfire_absent_";

/**
 * esbuild's `define` for a build that marks them. It replaces free references alone, by its own scope analysis, so
 * that a local variable of the same name, a property or a string is left in peace.
 */
export const placeholders: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(absentNames).map((name) => [name, `${prefix}${name}`]),
);

/**
 * Refuses the first marked use in the author's own files, with its place. `typeof name` is no use: it asks.
 * Returns whether an installed package uses one, as many do behind a guard; such a bundle must be built unmarked.
 */
export function refuseAbsentNames(script: string, map: string, handler: string): boolean {
  const folder = dirname(handler);
  let trace: TraceMap | undefined;
  let found = false;
  for (let at = script.indexOf(prefix); at >= 0; at = script.indexOf(prefix, at + 1)) {
    found = true;
    if (script.startsWith("typeof ", at - "typeof ".length)) continue;
    trace ??= new TraceMap(map);
    const before = script.slice(0, at);
    const position = originalPositionFor(trace, {
      line: before.split("\n").length,
      column: at - (before.lastIndexOf("\n") + 1),
    });
    if (position.source === null || isInstalled(position.source)) continue;
    const name = /^\w+/.exec(script.slice(at + prefix.length))?.[0] ?? "";
    throw new WatchfireError("WF_BUNDLE_ABSENT_NAME", {
      what: `${name} does not exist inside an isolate`,
      place: { file: displayPath(position.source, folder), line: position.line, column: position.column + 1 },
      ...(absentNames[name] ? { hint: absentNames[name] } : {}),
    });
  }
  return found;
}
