import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { WatchfireError } from "../../../errors.ts";

/** Locks of this process, which its own pid cannot tell apart. */
const held = new Set<string>();

/** Keeps a second process away from a file: `<file>.lock` holds the owner's pid. A dead owner's lock is taken over. */
export class FileLock {
  private readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Throws WF_DEV_CLUSTER_LOCKED while another owner lives. */
  static take(file: string): FileLock {
    const path = `${file}.lock`;
    mkdirSync(dirname(file), { recursive: true });
    for (;;) {
      try {
        writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
        held.add(path);
        return new FileLock(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        const owner = ownerOf(path);
        if (owner !== undefined && (owner === process.pid ? held.has(path) : lives(owner)))
          throw new WatchfireError("WF_DEV_CLUSTER_LOCKED", {
            what: "the file is in use",
            place: { file },
            actual: owner,
          });
        rmSync(path, { force: true });
      }
    }
  }

  release(): void {
    held.delete(this.path);
    rmSync(this.path, { force: true });
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
