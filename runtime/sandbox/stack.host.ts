import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import type { Bundle } from "../bundle/bundle.ts";
import { entrySource } from "../bundle/source-path.ts";
import type { Place } from "../errors.ts";

/** Of the script's own frames; everything else in a stack is ours or V8's. */
const frame = /^(\s+at .*?)\(?(app:\/\/\/[^\s:]+):(\d+):(\d+)\)?$/;

/** Puts an isolate's stacks into the author's files. The map is read when the first stack comes. */
export class StackMapper {
  private readonly bundle: Pick<Bundle, "sourceMap">;
  private parsed: TraceMap | undefined;

  constructor(bundle: Pick<Bundle, "sourceMap">) {
    this.bundle = bundle;
  }

  private get trace(): TraceMap {
    this.parsed ??= new TraceMap(this.bundle.sourceMap);
    return this.parsed;
  }

  /** The stack's first lines as they are, and the frames of the author's code with their places. */
  map(stack: string): string {
    const lines = stack.split("\n");
    const first = lines.findIndex((line) => /^\s+at /.test(line));
    if (first < 0) return stack;
    const head = lines.slice(0, first);
    const frames = lines.slice(first).flatMap((line) => {
      const found = this.placeOf(line);
      if (!found) return [];
      const { label, place } = found;
      const at = `${place.file}:${place.line}:${place.column}`;
      return label === "" ? `    at ${at}` : `    at ${label} (${at})`;
    });
    return [...head, ...frames].join("\n");
  }

  /** The place of the topmost frame that is the author's. */
  place(stack: string): Place | undefined {
    for (const line of stack.split("\n")) {
      const found = this.placeOf(line);
      if (found) return found.place;
    }
    return undefined;
  }

  /** Where the handler begins: the line of its file that has the default export, else the file's first. */
  entry(): Place | undefined {
    const { sources, sourcesContent } = this.trace;
    // The handler is the last of the sources but the generated entry.
    const handler = sources.findLast((source) => source !== null && !source.endsWith(entrySource));
    for (let index = sources.length - 1; index >= 0; index--) {
      const file = sources[index];
      const lines = sourcesContent?.[index]?.split("\n") ?? [];
      const line = lines.findIndex((text) => /\bexport\s+default\b|\bas\s+default\b/.test(text));
      if (file && line >= 0) return { file, line: line + 1, column: (lines[line] ?? "").search(/\S/) + 1 };
    }
    return handler ? { file: handler, line: 1, column: 1 } : undefined;
  }

  private placeOf(line: string): { label: string; place: Place } | undefined {
    const match = frame.exec(line);
    if (!match) return undefined;
    const [, before = "", , lineText, columnText] = match;
    const position = originalPositionFor(this.trace, { line: Number(lineText), column: Number(columnText) - 1 });
    if (position.source === null || position.source.endsWith(entrySource)) return undefined;
    const label = before.replace(/^\s+at /, "").trim();
    return { label, place: { file: position.source, line: position.line, column: position.column + 1 } };
  }
}
