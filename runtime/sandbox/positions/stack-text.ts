/** Script name of the guest's bootstrap inside isolates. Its frames are left out of the stacks that authors see. */
const guestScriptName = "watchfire:guest";

/** Prefix of the bundles' script names. */
const bundleScripts = "app:///";
/** A frame of a bundle. All other frames are the runtime's or V8's. */
const bundleFramePattern = /^(\s+at .*?)\(?(app:\/\/\/[^\s:]+):(\d+):(\d+)\)?$/;
/** A frame of a bundle, of the guest's bootstrap or of V8 itself. */
const anyFramePattern = new RegExp(`^\\s+at .*(?:${bundleScripts}|${guestScriptName}|<anonymous>)`);
/** Maximum characters of a line that is matched as a frame. V8 writes no longer ones, and this bounds the pattern's cost. */
const longestFrame = 1000;
/** Maximum number of frames of one text that are processed. A guest's stack has at most 4000 characters. */
export const mostFrames = 200;

/** A frame as V8 writes it: the called function, and the position in the bundle. Line and column count from 1. */
interface BundleFrame {
  readonly label: string;
  readonly line: number;
  readonly column: number;
}

/** Parses a line as a frame of a bundle. Any text may look like one, so the position may not exist. */
export function bundleFrameOf(line: string): BundleFrame | undefined {
  const match = line.length > longestFrame ? null : bundleFramePattern.exec(line);
  if (!match) return undefined;
  const [, before = "", , lineText, columnText] = match;
  return { label: before.replace(/^\s+at /, "").trim(), line: Number(lineText), column: Number(columnText) };
}

/** Whether a text can contain frames. */
export const mayHoldFrames = (text: string): boolean => text.includes(bundleScripts) || text.includes(guestScriptName);

/** Replaces a text's frames, or removes those for which `rewrite` returns `undefined`. Other lines are unchanged. */
export function rewriteFrames(text: string, rewrite: (line: string) => string | undefined): string {
  let frames = 0;
  return text
    .split("\n")
    .flatMap((line) => {
      if (line.length > longestFrame || frames === mostFrames || !anyFramePattern.test(line)) return line;
      frames++;
      return rewrite(line) ?? [];
    })
    .join("\n");
}

/** Rewrites each string of a JSON text that can contain frames. Returns any other text unchanged. Reads each character once. */
export function rewriteStrings(text: string, rewrite: (value: string) => string): string {
  let rewritten = "";
  let copied = 0;
  try {
    for (let from = text.indexOf('"'); from >= 0; ) {
      const to = endOfString(text, from);
      // A string without an end: the text is not JSON.
      if (to < 0) return text;
      const value = JSON.parse(text.slice(from, to)) as string;
      rewritten += text.slice(copied, from) + JSON.stringify(mayHoldFrames(value) ? rewrite(value) : value);
      copied = to;
      from = text.indexOf('"', to);
    }
  } catch {
    return text;
  }
  return rewritten + text.slice(copied);
}

/** Prefix of a line that says why a stack has the bundle's positions. */
const noteStart = "    (positions of the bundle: ";

/** Returns a text with the bundle's positions, without the runtime's frames, and with a last line that says why. */
export function unmappedText(text: string, why: string): string {
  let hasFrames = false;
  const shown = rewriteFrames(text, (line) => {
    if (!bundleFrameOf(line)) return undefined;
    hasFrames = true;
    return line;
  });
  return hasFrames ? `${shown}\n${noteStart}${why})` : shown;
}

/** Whether a line is a frame, or the note why frames have the bundle's positions. */
export const isStackLine = (line: string): boolean => /^\s+at /.test(line) || line.startsWith(noteStart);

/** Returns the index after the quotation mark that ends the JSON string which begins at `from`, or -1 if it has no end. */
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
