import { readdirSync, readFileSync } from "node:fs";

/** Resources that a process and its descendants have used. */
export interface Usage {
  /** User and system time, in milliseconds. Includes ended children whose parent has waited for them. */
  readonly cpuMs: number;
  /** The share of the process itself. */
  readonly ownCpuMs: number;
  /** The sum of the processes' peak resident sets, in bytes. Shared pages count once per process. */
  readonly peakRssBytes: number;
  /** The sum of the current resident sets, in bytes. */
  readonly rssBytes: number;
  readonly processes: number;
}

/** Clock ticks of /proc per second: USER_HZ is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Reads the figures of a process and all its descendants from /proc. */
export function usageOf(root: number): Usage {
  let [cpuMs, ownCpuMs, peakRssBytes, rssBytes, processes] = [0, 0, 0, 0, 0];
  for (const pid of treeOf(root)) {
    const figures = stat(pid);
    if (!figures) continue;
    processes++;
    const usedMs = (figures.ticks / ticksPerSecond) * 1000;
    cpuMs += usedMs;
    if (pid === root) ownCpuMs = usedMs;
    peakRssBytes += peakRssOf(pid);
    rssBytes += residentOf(pid, "VmRSS");
  }
  return { cpuMs, ownCpuMs, peakRssBytes, rssBytes, processes };
}

/** A process and all its descendants, the process first. */
export function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    const parent = Number.isInteger(pid) ? stat(pid)?.parent : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree: number[] = [];
  for (const queue = [root]; queue.length > 0; ) {
    const pid = queue.shift() ?? 0;
    tree.push(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  return tree;
}

function stat(pid: number): { parent: number; ticks: number } | undefined {
  const text = read(`/proc/${pid}/stat`);
  // The second field, the command in brackets, may itself hold blanks and brackets.
  const fields = text
    ?.slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  if (!fields) return undefined;
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15);
  return { parent: fields[1] ?? 0, ticks: utime + stime + cutime + cstime };
}

/** The highest resident set of one process so far, in bytes. */
export function peakRssOf(pid: number): number {
  return residentOf(pid, "VmHWM");
}

function residentOf(pid: number, field: "VmHWM" | "VmRSS"): number {
  const line = (read(`/proc/${pid}/status`) ?? "").split("\n").find((each) => each.startsWith(`${field}:`));
  return Number(line?.match(/\d+/)?.[0] ?? 0) * 1024;
}

/** Undefined for a process that is gone. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
