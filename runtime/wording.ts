// How faults word what others say: libraries, the operating system, and values.

/** A library's sentence as part of ours: no full stop, and a small first letter unless the word has its own form (`API`). */
export function lowerFirst(sentence: string): string {
  const text = sentence.replace(/\.$/, "");
  return /^[A-Z](?![A-Za-z]*[A-Z])/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** At most this many characters of an actual value are shown: enough to recognise it on one terminal line. */
const actualLimit = 80;

/** A value as JSON, cut to what fits on a line. */
export function shorten(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > actualLimit ? `${text.slice(0, actualLimit)}…` : text;
}

/** The system's codes that a user meets, in words. */
const systemCodes: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the file system is read-only",
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
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
