/** Descriptions of common system error codes. */
const codes: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the file system is read-only",
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
  ENOSPC: "the disk is full",
  EADDRINUSE: "another process listens there",
};

/** Returns the reason why the operating system refused an operation, with its code. */
export function systemReason(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  const words = codes[code];
  return words === undefined ? error.message : `${words} (${code})`;
}
