import { readFileSync } from "node:fs";

/** Where a container sees its own cgroup's count of kills: version 2, then version 1. */
const files = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

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
