import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import type { Bundle } from "../../bundle/bundle.ts";
import { entrySource } from "../../bundle/source-path.ts";
import type { Place } from "../../errors.ts";
import { guestScriptName } from "./guest-script.ts";

/** Of the script's own frames; everything else in a stack is ours or V8's. */
const frame = /^(\s+at .*?)\(?(app:\/\/\/[^\s:]+):(\d+):(\d+)\)?$/;

/** How the names of bundles begin. */
const ownScripts = "app:///";
/** A frame of a bundle, of the guest's bootstrap or of V8's own. */
const notAuthors = new RegExp(`^\\s+at .*(?:${ownScripts}|${guestScriptName}|<anonymous>)`);
/** Characters of a line beyond which it is no frame: V8 writes none so long, and a pattern is tried on no more. */
const longestFrame = 1000;
/** Frames of one text that are looked up in the map; a guest's stack holds at most 4000 characters. */
const mostFrames = 200;

/** Maps that stay read, of all functions: one takes several times its text's size. */
const mostRead = 4;
/** Those whose maps are read, the one that was asked last at the end. */
const read = new Set<StackMapper>();

/** Puts an isolate's stacks into the author's files. The map is read when a stack comes, and kept while few others are. */
export class StackMapper {
  private readonly bundle: Pick<Bundle, "sourceMap">;
  private parsed: TraceMap | undefined;
  /** Kept, since whoever fails at a limit is told of it: looking through 5 MB of sources takes 70 ms. */
  private begins: { readonly place: Place | undefined } | undefined;

  constructor(bundle: Pick<Bundle, "sourceMap">) {
    this.bundle = bundle;
  }

  private get trace(): TraceMap {
    read.delete(this);
    const trace = this.parsed ?? new TraceMap(this.bundle.sourceMap);
    this.parsed = trace;
    read.add(this);
    const [oldest] = read;
    if (oldest && read.size > mostRead) {
      oldest.parsed = undefined;
      read.delete(oldest);
    }
    return trace;
  }

  /**
   * A stack, or a text that may hold some. It has the frames of the author's code with their places, no others, and the
   * rest as it is.
   */
  map(text: string): string {
    if (!text.includes(ownScripts) && !text.includes(guestScriptName)) return text;
    let frames = 0;
    return text
      .split("\n")
      .flatMap((line) => {
        if (line.length > longestFrame || frames === mostFrames || !notAuthors.test(line)) return line;
        frames++;
        const found = this.placeOf(line);
        return found ? frameText(found) : [];
      })
      .join("\n");
  }

  /** The same for each string of a JSON text; the text as it is where it is no JSON. Each character is looked at once. */
  mapJson(text: string): string {
    if (!text.includes(ownScripts) && !text.includes(guestScriptName)) return text;
    let mapped = "";
    let copied = 0;
    try {
      for (let from = text.indexOf('"'); from >= 0; ) {
        const to = endOfString(text, from);
        // Without an end it is no JSON, and neither is what stands before it.
        if (to < 0) return text;
        mapped += text.slice(copied, from) + JSON.stringify(this.map(JSON.parse(text.slice(from, to)) as string));
        copied = to;
        from = text.indexOf('"', to);
      }
    } catch {
      return text;
    }
    return mapped + text.slice(copied);
  }

  /** The place of the topmost frame that is the author's. */
  place(stack: string): Place | undefined {
    for (const line of stack.split("\n", mostFrames)) {
      const found = this.placeOf(line);
      if (found) return found.place;
    }
    return undefined;
  }

  /** Where the handler begins: the line of its file that has the default export, else the file's first. */
  entry(): Place | undefined {
    this.begins ??= { place: this.findEntry() };
    return this.begins.place;
  }

  private findEntry(): Place | undefined {
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

  private placeOf(text: string): Frame | undefined {
    const match = text.length > longestFrame ? null : frame.exec(text);
    if (!match) return undefined;
    const [, before = "", , lineText, columnText] = match;
    const [line, column] = [Number(lineText), Number(columnText)];
    // Any text may look like a frame: the map takes offence at places that no file has.
    if (line < 1 || column < 1) return undefined;
    const position = originalPositionFor(this.trace, { line, column: column - 1 });
    if (position.source === null || position.source.endsWith(entrySource)) return undefined;
    const label = before.replace(/^\s+at /, "").trim();
    return { label, place: { file: position.source, line: position.line, column: position.column + 1 } };
  }
}

/** Behind the quotation mark that ends the JSON string which begins at `from`; -1 where none does. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === quotationMark) return at + 1;
  }
  return -1;
}

const quotationMark = 0x22;
const backslash = 0x5c;

/** A frame of the author's code. */
interface Frame {
  readonly label: string;
  readonly place: Place;
}

function frameText({ label, place }: Frame): string {
  const at = `${place.file}:${place.line}:${place.column}`;
  return label === "" ? `    at ${at}` : `    at ${label} (${at})`;
}
