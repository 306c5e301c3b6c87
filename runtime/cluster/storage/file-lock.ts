import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ClusterError } from "../cluster-error.ts";
import { makeFolder } from "./folder.ts";
import { writing } from "./writing.ts";

/**
 * Locks that this process holds. Its pid alone cannot distinguish them from those of an earlier process with the same pid. All
 * are removed when the process exits by itself.
 */
const held = new Set<string>();
process.on("exit", () => {
  for (const path of held) rmSync(path, { force: true });
});

/**
 * Prevents a second process from using a file: `<file>.lock` holds the owner's pid. A dead owner's lock is taken over.
 */
export class FileLock {
  private readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** @throws ClusterError STATE_LOCKED if a live owner holds it, FILE_REFUSED if the lock file cannot be created */
  static take(file: string): FileLock {
    const path = resolve(`${file}.lock`);
    writing(file, () => makeFolder(dirname(path)));
    while (!writing(file, () => claimed(path))) {
      const owner = ownerOf(path);
      if (owner !== undefined && (owner === process.pid ? held.has(path) : lives(owner))) {
        throw new ClusterError("STATE_LOCKED", { what: `the process ${owner} uses it`, file });
      }
      rmSync(path, { force: true });
    }
    held.add(path);
    return new FileLock(path);
  }

  release(): void {
    held.delete(this.path);
    rmSync(this.path, { force: true });
  }
}

/** Creates the lock file. False if it exists already. */
function claimed(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function ownerOf(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
