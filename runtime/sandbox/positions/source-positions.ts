import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import type { SourceLocation } from "../../base/errors.ts";
import { entrySource } from "../../bundle/source-path.ts";
import { bundleFrameOf, mayHoldFrames, mostFrames, rewriteFrames, rewriteStrings } from "./stack-text.ts";

/** Characters of a file's name: Linux' PATH_MAX. A map may name a file by a mebibyte, and each frame would repeat it. */
const longestName = 4096;
/** Characters of all frames of one text, once they have the files' names. Frames beyond are left out. */
const mostFrameText = 64 * 1024;
/** Files of one map: as many as a build takes (`bundle/limits.ts`). Each name is resolved when the map is read. */
const mostSources = 10_000;

/** Bytes that one character of `mappings` takes once it is decoded: 37 were measured for maps of the shortest segments. */
const bytesPerMapping = 40;
/** Bytes of any map that is kept, however short. */
const leastBytes = 16 * 1024;

/** One source map, read. Runs on the thread that reads them: a map of 1 MiB takes 100 to 700 ms. */
export class SourcePositions {
  /** Bytes that it takes while it is kept, estimated. */
  readonly bytes: number;
  /** Where the handler begins: the line of its file that has the default export, else the file's first. */
  readonly entry: SourceLocation | undefined;
  private readonly trace: TraceMap;

  /** @throws for a text that is no source map */
  constructor(text: string) {
    const { version, sources, sourcesContent, mappings } = JSON.parse(text) as RawSourceMap;
    if (version !== 3 || typeof mappings !== "string" || !Array.isArray(sources) || sources.length > mostSources)
      throw new Error("no source map");
    this.entry = entryOf(sources, sourcesContent);
    // The sources' text is most of a map, and is not asked for again.
    this.trace = new TraceMap({ version, sources, mappings, names: [] });
    const named = sources.reduce((sum, source) => sum + (source?.length ?? 0), 0);
    this.bytes = leastBytes + mappings.length * bytesPerMapping + named * 2;
  }

  /** A stack, or a text that may hold some: frames of the author's code with their places, no others, and the rest as it is. */
  text(text: string): string {
    let length = 0;
    return rewriteFrames(text, (line) => {
      const found = this.frameOf(line);
      if (!found) return undefined;
      const shown = frameText(found);
      length += shown.length;
      return length > mostFrameText ? undefined : shown;
    });
  }

  /** The same for each string of a JSON text. */
  json(text: string): string {
    return rewriteStrings(text, (value) => this.text(value));
  }

  /** The place of the topmost frame that is the author's. */
  place(stack: string): SourceLocation | undefined {
    if (!mayHoldFrames(stack)) return undefined;
    for (const line of stack.split("\n", mostFrames)) {
      const found = this.frameOf(line);
      if (found) return found.place;
    }
    return undefined;
  }

  private frameOf(text: string): StackFrame | undefined {
    const found = bundleFrameOf(text);
    // The map takes offence at places that no file has.
    if (!found || found.line < 1 || found.column < 1) return undefined;
    const { source, line, column } = originalPositionFor(this.trace, { line: found.line, column: found.column - 1 });
    if (source === null || source.endsWith(entrySource) || source.length > longestName) return undefined;
    return { label: found.label, place: { file: source, line, column: column + 1 } };
  }
}

/** As much of a source map as is used. */
interface RawSourceMap {
  readonly version: 3;
  readonly sources: (string | null)[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly mappings: string;
}

/** A frame of the author's code. */
interface StackFrame {
  readonly label: string;
  readonly place: SourceLocation;
}

function frameText({ label, place }: StackFrame): string {
  const at = `${place.file}:${place.line}:${place.column}`;
  return label === "" ? `    at ${at}` : `    at ${label} (${at})`;
}

function entryOf(
  sources: RawSourceMap["sources"],
  contents: RawSourceMap["sourcesContent"],
): SourceLocation | undefined {
  // The handler is the last of the sources but the generated entry.
  const handler = sources.findLast((source) => source !== null && !source.endsWith(entrySource));
  for (let index = sources.length - 1; index >= 0; index--) {
    const file = sources[index];
    const lines = contents?.[index]?.split("\n") ?? [];
    const line = lines.findIndex((text) => /\bexport\s+default\b|\bas\s+default\b/.test(text));
    if (file && line >= 0) return { file, line: line + 1, column: (lines[line] ?? "").search(/\S/) + 1 };
  }
  return handler ? { file: handler, line: 1, column: 1 } : undefined;
}
