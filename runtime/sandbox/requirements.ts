import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/**
 * Flags without which isolates are unsafe (the first), or code that left its isolate reads any file (the last). Without the
 * second an isolate's code stays unoptimised, and a loop takes 4.5 times as long: it includes `--no-concurrent-recompilation`.
 * With it V8 also collects on the isolate's thread alone, and leaves the other cores to other isolates. So 1,000 loads take 3 %
 * less CPU, and so does an event.
 */
export const requiredFlags = ["--no-node-snapshot", "--single-threaded", "--permission"] as const;

/** Said to an executor that is to watch descriptor 4: where nothing else ends it with its starter. */
export const lifelineArgument = "--lifeline";

/** Majors of Node that isolated-vm 7 has binaries for. */
const supportedNode = [24, 26];

/** Below it, guests can corrupt the process' memory (GHSA-864f-rcv7-6rh4). */
const minimumIsolatedVm = [7, 0, 1] as const;

/** Why this process must not run anyone's code; undefined where it may. */
export function refusal(nodeVersion: string, flags: readonly string[], isolatedVmVersion: string): string | undefined {
  const major = Number(nodeVersion.split(".")[0]);
  if (!supportedNode.includes(major)) return `Node ${nodeVersion} is not one of ${supportedNode.join(", ")}`;
  const missing = requiredFlags.filter((flag) => !flags.includes(flag));
  if (missing.length > 0) return `the flags ${missing.join(" ")} are missing`;
  if (isOlder(isolatedVmVersion))
    return `isolated-vm ${isolatedVmVersion} is older than ${minimumIsolatedVm.join(".")}`;
  return undefined;
}

function isOlder(version: string): boolean {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10));
  for (const [index, wanted] of minimumIsolatedVm.entries()) {
    const part = parts[index] ?? 0;
    if (part !== wanted) return !(part > wanted);
  }
  return false;
}

/** The version of isolated-vm that this process would load. */
export function installedIsolatedVm(): string {
  const file = createRequire(import.meta.url).resolve("isolated-vm/package.json");
  return String((JSON.parse(readFileSync(file, "utf8")) as { version: unknown }).version);
}
