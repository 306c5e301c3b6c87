import { type ChildProcess, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { dirname } from "node:path";
import type { ExecutorRights } from "./rights.ts";

/** Added to the starter's niceness: it gets three times an executor's share of a busy core, and its turn at once. */
const nicer = 5;
/** The kernel's OOM killer takes an executor before anything else of the machine: the highest value there is. */
const worstOomScore = 1000;
/**
 * Users for executors where the starter is root: 512 of the ids from 60578 to 61183. systemd's table of users and
 * groups (UIDS-GIDS.md) lists them as unused, and a user namespace of 65,536 has them as well.
 */
const firstUser = 60_600;
const users = 512;
/** util-linux' program; that of BusyBox has no `--pdeathsig`. */
const setprivFiles = ["/usr/bin/setpriv", "/bin/setpriv"];
const setprivFlags = ["--no-new-privs", "--pdeathsig", "KILL"];

/** What this process can take from the executors that it starts. Looked up once: none of it changes while a process runs. */
export class Confinement {
  /** All but what the executors' own flags say. */
  readonly rights: Omit<ExecutorRights, "jit" | "socketFolder">;
  /** What goes before an executor's command; empty where the platform lacks it. */
  readonly prefix: readonly string[];
  private started = 0;

  /** `files`: what an executor must be able to read, or start, as another user. `setprivs`: where setpriv may be. */
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
      // The files in /proc of a sealed process belong to root, its starter's as well.
      oomScoreAdj: existsSync("/proc/self/oom_score_adj") && (isRoot || !isSealed) ? worstOomScore : null,
      permissionModel: true,
    };
  }

  /** The user and group of the next executor; undefined where that is its starter's. */
  get user(): { readonly uid: number; readonly gid: number } | undefined {
    if (this.rights.user === "same") return undefined;
    // Two starters on one machine begin at different ones.
    const id = firstUser + ((process.pid + this.started++) % users);
    return { uid: id, gid: id };
  }

  /** Lowers what a process may claim that has just been started, before it has threads. One that is gone already is left so. */
  lower({ pid }: Pick<ChildProcess, "pid">): void {
    if (pid === undefined) return;
    const { nice, oomScoreAdj } = this.rights;
    try {
      setPriority(pid, nice);
      if (oomScoreAdj !== null) writeFileSync(`/proc/${pid}/oom_score_adj`, String(oomScoreAdj));
    } catch {
      // Its end is told by its exit.
    }
  }
}

/** Whether a process can be started as a user. A program that does not exist is missed only after its process has changed its user. */
function canBecome(id: number): boolean {
  const { error } = spawnSync("/nonexistent/program", { uid: id, gid: id });
  return error !== undefined && "code" in error && error.code === "ENOENT";
}

/** Root without CAP_KILL cannot end what another user runs. */
function mayKillOthers(): boolean {
  const effective = ownStatus().match(/^CapEff:\s*([0-9a-f]+)$/m)?.[1];
  return effective === undefined || (BigInt(`0x${effective}`) & (1n << 5n)) !== 0n;
}

/** Whether a file may be read by all users, or started where it is a program, and all folders above it passed. */
function isOpenToAll(file: string): boolean {
  // A program need not be readable to be started.
  if ((modeOf(file) & 0o005) === 0) return false;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if ((modeOf(folder) & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

const modeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mode ?? 0;

/** Linux gives the files of a process that cannot be dumped to root; it cannot be traced by its own user either. */
function isMemorySealed(): boolean {
  const owner = statSync("/proc/self/fd", { throwIfNoEntry: false })?.uid;
  return owner !== undefined && owner !== process.getuid?.();
}

const hasNoNewPrivileges = (): boolean => /^NoNewPrivs:\s*1$/m.test(ownStatus());

/** Empty on platforms without /proc. */
function ownStatus(): string {
  try {
    return readFileSync("/proc/self/status", "latin1");
  } catch {
    return "";
  }
}

const isUsable = (setpriv: string): boolean =>
  existsSync(setpriv) && spawnSync(setpriv, [...setprivFlags, "--", setpriv, "--version"]).status === 0;
