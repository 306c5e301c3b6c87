// How faults word what others say: libraries, the operating system, and values.

/** A library's sentence as part of ours: no full stop, and a small first letter unless the word has its own form (`API`). */
export function lowerFirst(sentence: string): string {
  const text = sentence.replace(/\.$/, "");
  return /^[A-Z](?![A-Za-z]*[A-Z])/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** Ends a text that was cut; whoever takes secrets out of texts looks before it for the beginning of one. */
export const cutMark = "…";

/** The text in at most `limit` characters, the mark among them where any are gone; never half of one. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "") + cutMark;
}

/** Control characters, line breaks that are none in JSON, and what turns a text's direction around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
export const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text that a person's terminal may show: control characters other than tab and newline are written out. */
export const clean = (text: string): string =>
  text.replace(controlCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** At most this many characters of an actual value are shown, the mark among them: enough to recognise it on one terminal line. */
const actualLimit = 81;

/** A value as JSON, cut to what fits on a line. */
export function shorten(value: unknown): string {
  // A text is cut before as well: a guest's may have millions of characters.
  const shown = typeof value === "string" ? value.slice(0, actualLimit) : value;
  const text = JSON.stringify(shown) ?? String(shown);
  return cut(text, actualLimit);
}

/** The system's codes that a user meets, in words. */
const systemCodes: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the file system is read-only",
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
  ELOOP: "a link leads in a circle",
  ENAMETOOLONG: "the name is too long",
  EIO: "the disk fails to read or write",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open",
  EADDRINUSE: "another process listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no such host",
};

/** Why the operating system refused something, with its code where a reader may want to look it up. */
export function systemReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  const words = code === undefined ? undefined : systemCodes[code];
  if (words !== undefined) return `${words} (${code})`;
  return lowerFirst(error instanceof Error ? error.message : String(error));
}
