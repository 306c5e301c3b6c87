// npm run release:advisories: refuses a release with an advisory of high severity in npm's list. Checks the shipped packages:
// those of the lock file except development dependencies.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

/**
 * Advisories that were examined and do not affect shipped code: each with the reason, and the day on which the exception ends.
 */
export const accepted: readonly Accepted[] = [];

export interface Accepted {
  /** As in its address: `GHSA-xxxx-xxxx-xxxx`. */
  readonly advisory: string;
  readonly why: string;
  /** `2026-12-31`. */
  readonly until: string;
}

/** The fields of `npm audit --json` that are read. */
export interface Audit {
  readonly error?: { readonly summary?: string };
  readonly message?: string;
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (string | Via)[] }>>;
}

interface Via {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly severity: string;
  readonly range: string;
}

const grave = new Set(["high", "critical"]);

/** Returns the reasons against a release; empty if there is no reason. A registry without an advisory list counts as a reason. */
export function graveIn(audit: Audit, exceptions: readonly Accepted[], today: string): string[] {
  const { vulnerabilities, error, message } = audit;
  if (!vulnerabilities)
    return [`the registry gave no list of advisories: ${message ?? error?.summary ?? "it did not say why"}`];
  const found = new Map<string, Via>();
  for (const { via } of Object.values(vulnerabilities))
    for (const each of via) if (typeof each !== "string" && grave.has(each.severity)) found.set(each.url, each);
  const isAccepted = (url: string) =>
    exceptions.some(({ advisory, until }) => url.endsWith(`/${advisory}`) && today < until);
  return [...found.values()]
    .filter(({ url }) => !isAccepted(url))
    .map(({ name, range, severity, title, url }) => `${name} ${range}: ${severity}: ${title} (${url})`);
}

if (import.meta.main) {
  const words = ["audit", "--json", "--package-lock-only", "--omit=dev"];
  const { stdout } = spawnSync("npm", words, { cwd: join(import.meta.dirname, "../.."), encoding: "utf8" });
  const faults = graveIn(JSON.parse(stdout || "{}") as Audit, accepted, new Date().toISOString().slice(0, 10));
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (faults.length === 0) process.stdout.write("no advisory of a high grade is against what is shipped\n");
  process.exitCode = faults.length > 0 ? 1 : 0;
}
