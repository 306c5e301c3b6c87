import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { relative, sep } from "node:path";
import { systemReason } from "../base/wording.ts";
import { fileCountLimit, fileLimit, inputLimit } from "./limits.ts";
import { SourceFault } from "./source-fault.ts";

/** A folder that builds may read, with everything below it. */
export interface Root {
  /** Its real path. */
  readonly path: string;
  /** Prefix of its files' names in scripts and maps, the same on any machine; "" for the functions folder. */
  readonly label: string;
  /**
   * Hides names with a leading dot, which are settings and credentials rather than code; not used for folders that npm has
   * installed.
   */
  readonly hidesDotNames: boolean;
}

/** A file that went into the build. */
interface InputFile {
  /** Its real path. */
  readonly file: string;
  readonly contents: Buffer;
}

/** Neither waits for a pipe's writer nor acquires a controlling terminal. */
const openFlags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/**
 * The files that one build may read: regular files whose real path is below a root, within the limits on number and size. The
 * open file is checked, so that it cannot be replaced between the check and the reading.
 */
export class Sources {
  private readonly roots: readonly Root[];
  private readonly openFile: (path: string, flags: number) => number;
  private readonly read = new Map<string, InputFile>();
  private bytes = 0;

  constructor(roots: readonly Root[], openFile: (path: string, flags: number) => number = openSync) {
    this.roots = roots;
    this.openFile = openFile;
  }

  /** Real paths of the files that were read. */
  get files(): readonly string[] {
    return [...new Set([...this.read.values()].map(({ file }) => file))];
  }

  /** Returns the root above a path as written; `undefined` if it is outside of all roots. */
  rootOf(path: string): Root | undefined {
    return this.roots.find(({ path: root }) => isBelow(root, path));
  }

  /** Checks a real path. `path`: the file's name in faults. @throws SourceFault if the real path must not be read */
  admit(real: string, path = real): void {
    const root = this.rootOf(real);
    if (!root) throw outside(path);
    if (!root.hidesDotNames || !hasHiddenPart(relative(root.path, real))) return;
    const what = `it is ${this.nameOf(real)}, and no function is built from what a leading dot hides`;
    throw new SourceFault("WF_BUNDLE_HIDDEN", what, path);
  }

  /** Returns a file's name, which is the same on any machine. */
  nameOf(real: string): string {
    const root = this.rootOf(real);
    if (!root) return real;
    const below = relative(root.path, real).split(sep).join("/");
    return root.label === "" ? below : `${root.label}/${below}`;
  }

  /**
   * Returns the status of a path, following links; `undefined` if nothing exists there, or it is outside of the roots.
   * @throws SourceFault for anything but a file or folder, and if the system refuses the call
   */
  stat(path: string): Stats | undefined {
    if (!this.rootOf(path)) return undefined;
    const stats = told(path, () => statSync(path, { throwIfNoEntry: false }));
    if (stats && !stats.isFile() && !stats.isDirectory()) throw notAFile(path, stats);
    return stats;
  }

  /** @throws SourceFault */
  open(path: string): InputFile {
    const known = this.read.get(path);
    if (known) return known;
    const before = this.stat(path);
    if (!before?.isFile()) throw notAFile(path, before);
    const source = told(path, () => this.take(path));
    this.read.set(path, source);
    return source;
  }

  private take(path: string): InputFile {
    const descriptor = this.openFile(path, openFlags);
    try {
      const stats = fstatSync(descriptor);
      if (!stats.isFile()) throw notAFile(path, stats);
      const file = realPathOf(descriptor, path, stats);
      if (file === undefined) throw outside(path);
      this.admit(file, path);
      return { file, contents: this.contentsOf(descriptor, path, stats.size) };
    } finally {
      closeSync(descriptor);
    }
  }

  private contentsOf(descriptor: number, path: string, size: number): Buffer {
    if (this.read.size >= fileCountLimit) throw tooMuch(`more than ${fileCountLimit} files`);
    if (size > fileLimit) throw tooMuch(`a file of ${mebibytes(size)} MiB, more than ${mebibytes(fileLimit)}`, path);
    this.bytes += size;
    if (this.bytes > inputLimit) throw tooMuch(`files of more than ${mebibytes(inputLimit)} MiB in all`);
    const buffer = Buffer.alloc(size);
    let end = 0;
    for (let read = -1; read !== 0 && end < size; end += read)
      read = readSync(descriptor, buffer, end, size - end, end);
    return buffer.subarray(0, end);
  }
}

/** Returns the real path of an open file; `undefined` if it cannot be determined with certainty. */
function realPathOf(descriptor: number, path: string, { dev, ino }: Stats): string | undefined {
  if (process.platform === "linux") return readlinkSync(`/proc/self/fd/${descriptor}`);
  const real = realpathSync.native(path);
  const there = statSync(real, { throwIfNoEntry: false });
  return there?.dev === dev && there.ino === ino ? real : undefined;
}

/** Converts a system error to a fault of the file; otherwise the builder would end without a reason. */
function told<T>(path: string, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    // Node's own permission errors have no number: for a look-up, such a path does not exist.
    if (!(error instanceof Error && "errno" in error)) throw error;
    throw new SourceFault("WF_BUNDLE_UNREADABLE", systemReason(error), path);
  }
}

export const isBelow = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/**
 * Whether a path contains a hidden name. A mounted ConfigMap's `..data` does not count, nor names in `node_modules`, which a
 * package manager created.
 */
function hasHiddenPart(path: string): boolean {
  for (const part of path.split(sep)) {
    if (part === "node_modules") return false;
    if (/^\.[^.]/.test(part)) return true;
  }
  return false;
}

export const outside = (path: string): SourceFault =>
  new SourceFault("WF_BUNDLE_OUTSIDE", "it is outside of the functions folder and of the packages", path);

function notAFile(path: string, stats: Stats | undefined): SourceFault {
  const is = stats?.isDirectory()
    ? "a folder"
    : stats?.isFIFO()
      ? "a pipe"
      : stats?.isSocket()
        ? "a socket"
        : stats
          ? "a device"
          : "gone";
  return new SourceFault("WF_BUNDLE_NOT_A_FILE", `it is ${is}`, path);
}

const tooMuch = (what: string, path?: string): SourceFault =>
  new SourceFault("WF_BUNDLE_LIMIT", `the build takes ${what}`, path);

const mebibytes = (bytes: number): number => Math.ceil(bytes / 2 ** 20);
