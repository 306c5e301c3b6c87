/** The script's name of the guest's bootstrap inside isolates; its frames are left out of the stacks that authors see. */
const guestScriptName = "watchfire:guest";

/** How the names of bundles begin. */
const bundleScripts = "app:///";
/** A frame of a bundle; everything else in a stack is the runtime's or V8's. */
const bundleFramePattern = /^(\s+at .*?)\(?(app:\/\/\/[^\s:]+):(\d+):(\d+)\)?$/;
/** A frame of a bundle, of the guest's bootstrap or of V8's own. */
const anyFramePattern = new RegExp(`^\\s+at .*(?:${bundleScripts}|${guestScriptName}|<anonymous>)`);
/** Characters of a line beyond which it is no frame: V8 writes none so long, and a pattern is tried on no more. */
const longestFrame = 1000;
/** Frames of one text that are looked at; a guest's stack holds at most 4000 characters. */
export const mostFrames = 200;

/** A frame as V8 writes it: what was called, and where in the bundle. Line and column count from 1. */
interface BundleFrame {
  readonly label: string;
  readonly line: number;
  readonly column: number;
}

/** The frame of a bundle that a line holds. Any text may look like one, so that the numbers may be of no file. */
export function bundleFrameOf(line: string): BundleFrame | undefined {
  const match = line.length > longestFrame ? null : bundleFramePattern.exec(line);
  if (!match) return undefined;
  const [, before = "", , lineText, columnText] = match;
  return { label: before.replace(/^\s+at /, "").trim(), line: Number(lineText), column: Number(columnText) };
}

/** True if a text can hold frames. */
export const mayHoldFrames = (text: string): boolean => text.includes(bundleScripts) || text.includes(guestScriptName);

/** Replaces a text's frames, or removes those for which `rewrite` returns `undefined`. Other lines stay as they are. */
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

/** Rewrites each string of a JSON text that can hold frames. Returns any other text as it is. Looks at each character once. */
export function rewriteStrings(text: string, rewrite: (value: string) => string): string {
  let rewritten = "";
  let copied = 0;
  try {
    for (let from = text.indexOf('"'); from >= 0; ) {
      const to = endOfString(text, from);
      // Without an end it is no JSON, and neither is what stands before it.
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

/** How a line begins that says why a stack has the bundle's positions. */
const noteStart = "    (positions of the bundle: ";

/** The frames of a text with the bundle's positions, without the runtime's own, and a last line that says why. */
export function unmappedText(text: string, why: string): string {
  let hasFrames = false;
  const shown = rewriteFrames(text, (line) => {
    if (!bundleFrameOf(line)) return undefined;
    hasFrames = true;
    return line;
  });
  return hasFrames ? `${shown}\n${noteStart}${why})` : shown;
}

/** True for a line that tells a position, or why it is one of the bundle. */
export const isStackLine = (line: string): boolean => /^\s+at /.test(line) || line.startsWith(noteStart);

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
