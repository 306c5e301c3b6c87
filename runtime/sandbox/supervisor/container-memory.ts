import { readFileSync } from "node:fs";

/** Files in which a container sees its own cgroup's count of OOM kills: cgroup version 2, then version 1. */
const files = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/** Files with its memory limit: version 2, then version 1. */
const limitFiles = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/** Version 1 represents "no limit" as a number slightly below 2^63. */
const unlimited = 2 ** 62;

/**
 * Returns how many processes of this container the kernel has killed because the container reached its memory limit, or 0 if that
 * is not available.
 */
export function memoryKills(): number {
  for (const file of files) {
    try {
      return Number(readFileSync(file, "latin1").match(/^oom_kill (\d+)$/m)?.[1] ?? 0);
    } catch {
      // The other version, or no cgroup.
    }
  }
  return 0;
}

/** Returns the container's memory limit in bytes, or `undefined` if it has no limit or the limit is not available. */
export function memoryLimit(): number | undefined {
  for (const file of limitFiles) {
    try {
      return limitIn(readFileSync(file, "latin1"));
    } catch {
      // The other version, or no cgroup.
    }
  }
  return undefined;
}

/** Parses a limit file: bytes, or `max`. */
export function limitIn(text: string): number | undefined {
  const bytes = Number(text);
  return Number.isInteger(bytes) && bytes > 0 && bytes < unlimited ? bytes : undefined;
}
