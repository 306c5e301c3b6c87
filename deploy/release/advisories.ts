// npm run release:advisories: refuses to release what has an advisory of a high grade against it, by npm's own list. Of what is shipped:
// the packages of the lock file that are no one's development alone.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Advisories that were looked at, and do not touch what is shipped: each with why, and the day from which it counts again. */
export const accepted: readonly Accepted[] = [];

export interface Accepted {
  /** As in its address: `GHSA-xxxx-xxxx-xxxx`. */
  readonly advisory: string;
  readonly why: string;
  /** `2026-12-31`. */
  readonly until: string;
}

/** What `npm audit --json` says, as far as it is read here. */
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

/** What keeps a release back, in words; nothing where it may go on. A registry that gives no list keeps it back as well. */
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
