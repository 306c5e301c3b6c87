import { type ChildProcess, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { dirname } from "node:path";
import type { ExecutorRights } from "./rights.ts";

/**
 * Added to the starter's niceness. On a busy core the starter then gets three times an executor's share, and is scheduled at
 * once.
 */
const nicer = 5;
/** The highest OOM score. The kernel's OOM killer kills an executor before any other process of the machine. */
const worstOomScore = 1000;
/**
 * User ids for executors when the starter is root: 512 of the ids from 60578 to 61183. systemd's table of users and groups
 * (UIDS-GIDS.md) lists these as unused, and a user namespace of 65,536 ids contains them.
 */
const firstUser = 60_600;
const users = 512;
/** Paths of util-linux' setpriv. BusyBox's has no `--pdeathsig`. */
const setprivFiles = ["/usr/bin/setpriv", "/bin/setpriv"];
const setprivFlags = ["--no-new-privs", "--pdeathsig", "KILL"];

/**
 * Restrictions that this process can put on the executors it starts. Determined once: they cannot change while a process runs.
 */
export class Confinement {
  /** All rights except those that depend on the executors' own flags. */
  readonly rights: Omit<ExecutorRights, "jit" | "socketFolder">;
  /** Put in front of an executor's command. Empty if the platform has no setpriv. */
  readonly prefix: readonly string[];
  private started = 0;

  /**
   * `files`: files that an executor running as another user must be able to read or execute. `setprivs`: paths to look for
   * setpriv.
   */
  constructor(files: readonly string[], setprivs: readonly string[] = setprivFiles) {
    const isFirst = process.pid === 1;
    const isSealed = isMemorySealed();
    const isRoot = process.getuid?.() === 0;
    const mayChangeUser = isRoot && mayKillOthers() && [0, users - 1].every((nth) => canBecome(firstUser + nth));
    const setpriv = isFirst && hasNoNewPrivileges() ? undefined : setprivs.find(isUsable);
    this.prefix = setpriv === undefined ? [] : [setpriv, ...setprivFlags, "--"];
    this.rights = {
      user: mayChangeUser && files.every(isOpenToAll) ? "separate" : "same",
      pidNamespace: isFirst ? "own" : "shared",
      memory: isSealed ? "sealed" : "readable",
      newPrivileges: setpriv !== undefined || hasNoNewPrivileges() ? "none" : "possible",
      endsWithStarter: setpriv !== undefined || isFirst ? "kernel" : "thread",
      nice: Math.min(19, getPriority() + nicer),
      // The files in /proc of a sealed process belong to root, also those of this process.
      oomScoreAdj: existsSync("/proc/self/oom_score_adj") && (isRoot || !isSealed) ? worstOomScore : null,
      permissionModel: true,
    };
  }

  /** User and group of the next executor. `undefined` if executors run as their starter's user. */
  get user(): { readonly uid: number; readonly gid: number } | undefined {
    if (this.rights.user === "same") return undefined;
    // The process id makes two starters on one machine begin at different ids.
    const id = firstUser + ((process.pid + this.started++) % users);
    return { uid: id, gid: id };
  }

  /**
   * Sets the niceness and OOM score of a process that has just been started, before it has threads. Does nothing if it has
   * already exited.
   */
  lower({ pid }: Pick<ChildProcess, "pid">): void {
    if (pid === undefined) return;
    const { nice, oomScoreAdj } = this.rights;
    try {
      setPriority(pid, nice);
      if (oomScoreAdj !== null) writeFileSync(`/proc/${pid}/oom_score_adj`, String(oomScoreAdj));
    } catch {
      // The process has exited; its `exit` event reports that.
    }
  }
}

/**
 * Whether a process can be started as the given user. Spawn fails with ENOENT only after the child has changed its user, so that
 * error proves that it could.
 */
function canBecome(id: number): boolean {
  const { error } = spawnSync("/nonexistent/program", { uid: id, gid: id });
  return error !== undefined && "code" in error && error.code === "ENOENT";
}

/** Without CAP_KILL, root cannot kill a process of another user. */
function mayKillOthers(): boolean {
  const effective = ownStatus().match(/^CapEff:\s*([0-9a-f]+)$/m)?.[1];
  return effective === undefined || (BigInt(`0x${effective}`) & (1n << 5n)) !== 0n;
}

/** Whether every user may read a file (or execute it, if it is a program) and traverse all folders above it. */
function isOpenToAll(file: string): boolean {
  // A program can be executed without being readable.
  if ((modeOf(file) & 0o005) === 0) return false;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if ((modeOf(folder) & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

const modeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mode ?? 0;

/** Whether this process is not dumpable. Linux then gives its files in /proc to root, and its own user cannot trace it. */
function isMemorySealed(): boolean {
  const owner = statSync("/proc/self/fd", { throwIfNoEntry: false })?.uid;
  return owner !== undefined && owner !== process.getuid?.();
}

const hasNoNewPrivileges = (): boolean => /^NoNewPrivs:\s*1$/m.test(ownStatus());

/** Reads /proc/self/status. Returns "" on platforms without /proc. */
function ownStatus(): string {
  try {
    return readFileSync("/proc/self/status", "latin1");
  } catch {
    return "";
  }
}

const isUsable = (setpriv: string): boolean =>
  existsSync(setpriv) && spawnSync(setpriv, [...setprivFlags, "--", setpriv, "--version"]).status === 0;
