import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Time limit of one git command, in milliseconds: a large work tree takes a few seconds. */
const timeoutMs = 15_000;

/** A work tree's commit. `dirty`: it has changes, or new files that are not ignored. */
interface GitState {
  readonly commit: string;
  readonly dirty: boolean;
}

/**
 * Returns the commit of the git work tree that a folder is in. `null` without git, without a work tree, or before its first
 * commit. No file system monitor that the repository configures is started.
 */
export async function gitState(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<GitState | null> {
  const git = async (...args: string[]): Promise<string> => {
    const safe = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-C", folder];
    const options = { env: { ...env }, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    return (await promisify(execFile)("git", [...safe, ...args], options)).stdout.trim();
  };
  try {
    const commit = await git("rev-parse", "--verify", "HEAD");
    // Without an answer, the work tree must not pass for clean.
    const dirty = await git("status", "--porcelain").then(
      (changes) => changes !== "",
      () => true,
    );
    return /^[0-9a-f]{40,64}$/.test(commit) ? { commit, dirty } : null;
  } catch {
    return null;
  }
}
