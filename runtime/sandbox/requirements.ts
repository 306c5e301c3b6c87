import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/**
 * Node flags that an executor must have.
 *
 * - `--no-node-snapshot`: without it, isolates are unsafe.
 * - `--single-threaded`: without it, an isolate's code stays unoptimised and a loop takes 4.5 times as long, because it includes
 *   `--no-concurrent-recompilation`. V8 also collects garbage only on the isolate's thread and leaves the other cores to other
 *   isolates. 1,000 loads, and an event, take 3 % less CPU.
 * - `--permission`: without it, code that escaped its isolate could read any file.
 */
export const requiredFlags = ["--no-node-snapshot", "--single-threaded", "--permission"] as const;

/** Argument that makes an executor watch descriptor 4. Passed if nothing else ends the executor with its starter. */
export const lifelineArgument = "--lifeline";

/** Major versions of Node for which isolated-vm 7 has binaries. */
const supportedNode = [24, 26];

/** Oldest accepted version. In earlier ones, guests can corrupt the process' memory (GHSA-864f-rcv7-6rh4). */
const minimumIsolatedVm = [7, 0, 1] as const;

/** Returns why this process must not run functions' code, or `undefined` if it may. */
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

/** Returns the version of isolated-vm that this process would load. */
export function installedIsolatedVm(): string {
  const file = createRequire(import.meta.url).resolve("isolated-vm/package.json");
  return String((JSON.parse(readFileSync(file, "utf8")) as { version: unknown }).version);
}
