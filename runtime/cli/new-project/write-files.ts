import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** A user's mistake in the choices for a project, in one sentence. */
export class ProjectError extends Error {}

/** The system refuses to write into a folder. */
export class FolderError extends ProjectError {
  readonly folder: string;

  /** @param cause the system's error */
  constructor(folder: string, cause: unknown) {
    super(`${folder} cannot be written: ${(cause as Error).message}`, { cause });
    this.folder = folder;
  }
}

/**
 * Writes files, by their paths in a folder. Never replaces a file.
 * @throws FolderError if the system refuses to write
 */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  try {
    for (const [path, text] of Object.entries(files)) {
      const file = resolve(folder, path);
      makeFolder(dirname(file));
      writeFileSync(file, text, { flag: "wx" });
    }
  } catch (cause) {
    throw new FolderError(folder, cause);
  }
}

/** Creates a folder and its parents. Node's `recursive` never returns for a path below /proc (Node 24.21). */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}
