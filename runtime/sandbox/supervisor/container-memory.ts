import { readFileSync } from "node:fs";

/** Where a container sees its own cgroup's count of kills: version 2, then version 1. */
const files = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/** Where its limit is. */
const limitFiles = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/** Version 1 has a number for "no limit" as well: nearly all that 63 bits hold. */
const unlimited = 2 ** 62;

/** How many processes of this container the kernel has killed because the container was at its memory limit; 0 where it does not say. */
export function memoryKills(): number {
  for (const file of files) {
    try {
      return Number(readFileSync(file, "latin1").match(/^oom_kill (\d+)$/m)?.[1] ?? 0);
    } catch {
      // The other version, or no cgroup at all.
    }
  }
  return 0;
}

/** The container's memory limit in bytes; undefined where it has none, or the kernel does not say. */
export function memoryLimit(): number | undefined {
  for (const file of limitFiles) {
    try {
      return limitIn(readFileSync(file, "latin1"));
    } catch {
      // The other version, or no cgroup at all.
    }
  }
  return undefined;
}

/** What such a file says: bytes, or `max`. */
export function limitIn(text: string): number | undefined {
  const bytes = Number(text);
  return Number.isInteger(bytes) && bytes > 0 && bytes < unlimited ? bytes : undefined;
}
