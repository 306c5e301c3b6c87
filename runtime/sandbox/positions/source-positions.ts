import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import type { SourceLocation } from "../../base/errors.ts";
import { entrySource } from "../../bundle/source-path.ts";
import { bundleFrameOf, mayHoldFrames, mostFrames, rewriteFrames, rewriteStrings } from "./stack-text.ts";

/**
 * Maximum characters of a file's name: Linux' PATH_MAX. A map could contain a name of a mebibyte, and each frame would repeat it.
 */
const longestName = 4096;
/** Maximum characters of all rewritten frames of one text. Further frames are left out. */
const mostFrameText = 64 * 1024;
/**
 * Maximum number of files of one map: the most that a build accepts (`bundle/limits.ts`). Each name is resolved when the map is
 * read.
 */
const mostSources = 10_000;

/** Bytes per character of `mappings` once decoded: 37 were measured for maps of the shortest segments. */
const bytesPerMapping = 40;
/** Minimum bytes counted for a map, however short. */
const leastBytes = 16 * 1024;

/** A parsed source map. Used on the thread that reads them, because a map of 1 MiB takes 100 to 700 ms. */
export class SourcePositions {
  /** Estimated bytes of memory that it takes. */
  readonly bytes: number;
  /** The place where the handler begins: the line of its file with the default export, else the file's first line. */
  readonly entry: SourceLocation | undefined;
  private readonly trace: TraceMap;

  /** @throws if the text is not a source map */
  constructor(text: string) {
    const { version, sources, sourcesContent, mappings } = JSON.parse(text) as RawSourceMap;
    if (version !== 3 || typeof mappings !== "string" || !Array.isArray(sources) || sources.length > mostSources)
      throw new Error("no source map");
    this.entry = entryOf(sources, sourcesContent);
    // The sources' text is most of a map and is not needed again.
    this.trace = new TraceMap({ version, sources, mappings, names: [] });
    const named = sources.reduce((sum, source) => sum + (source?.length ?? 0), 0);
    this.bytes = leastBytes + mappings.length * bytesPerMapping + named * 2;
  }

  /**
   * Rewrites a stack, or a text that may contain one: frames of the author's code get their original places, other frames are
   * removed, and the rest is unchanged.
   */
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

  /** Rewrites each string of a JSON text in the same way. */
  json(text: string): string {
    return rewriteStrings(text, (value) => this.text(value));
  }

  /** Returns the place of the topmost frame in the author's code. */
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
    // `originalPositionFor` throws for positions below 1.
    if (!found || found.line < 1 || found.column < 1) return undefined;
    const { source, line, column } = originalPositionFor(this.trace, { line: found.line, column: found.column - 1 });
    if (source === null || source.endsWith(entrySource) || source.length > longestName) return undefined;
    return { label: found.label, place: { file: source, line, column: column + 1 } };
  }
}

/** The used fields of a source map. */
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
  // The handler is the last source before the generated entry.
  const handler = sources.findLast((source) => source !== null && !source.endsWith(entrySource));
  for (let index = sources.length - 1; index >= 0; index--) {
    const file = sources[index];
    const lines = contents?.[index]?.split("\n") ?? [];
    const line = lines.findIndex((text) => /\bexport\s+default\b|\bas\s+default\b/.test(text));
    if (file && line >= 0) return { file, line: line + 1, column: (lines[line] ?? "").search(/\S/) + 1 };
  }
  return handler ? { file: handler, line: 1, column: 1 } : undefined;
}
