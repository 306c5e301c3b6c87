// Helpers for texts in error messages that come from libraries, the operating system and users' values.

/**
 * Prepares a library's sentence for use inside another: removes the full stop, and lowers the first letter unless the word has
 * several capitals (`API`).
 */
export function lowerFirst(sentence: string): string {
  const text = sentence.replace(/\.$/, "");
  return /^[A-Z](?![A-Za-z]*[A-Z])/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** Ends a text that was cut. Code that redacts secrets checks whether one begins right before it. */
export const cutMark = "…";

/** Cuts a text to `limit` characters, including the mark, without splitting a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "") + cutMark;
}

/** Control characters, line separators that JSON allows in strings, and characters that change the text direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
export const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes control characters other than tab and newline, so that the text is safe to print on a terminal. */
export const clean = (text: string): string =>
  text.replace(controlCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Maximum characters of an actual value in a message, including the mark: enough to recognise it on one terminal line. */
const actualLimit = 81;

/** Returns a value as JSON, cut to fit on one line. */
export function shorten(value: unknown): string {
  // Cut before the conversion as well, because a guest's text may have millions of characters.
  const shown = typeof value === "string" ? value.slice(0, actualLimit) : value;
  const text = JSON.stringify(shown) ?? String(shown);
  return cut(text, actualLimit);
}

/** Descriptions of the operating system's error codes that users encounter. */
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

/** Describes why the operating system refused an operation, with the error code for looking it up. */
export function systemReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  const words = code === undefined ? undefined : systemCodes[code];
  if (words !== undefined) return `${words} (${code})`;
  return lowerFirst(error instanceof Error ? error.message : String(error));
}
