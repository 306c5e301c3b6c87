import { readdirSync, statSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { Redactor } from "../access/redactor.ts";
import { version } from "../base/version.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** The state of a runtime for somebody who helps: no code, no bodies of objects, no values of variables or Secrets. */
export const supportReportSchema = z.object({
  /** ISO 8601. */
  takenAt: z.string(),
  versions: z.record(z.string(), z.string()),
  process: z.object({ uptimeSeconds: z.number(), residentBytes: z.number(), heapBytes: z.number() }),
  /** The settings that the runtime was started with. */
  options: z.record(z.string(), z.unknown()),
  /** The files of the data folder, with their sizes. */
  files: z.array(z.object({ name: z.string(), bytes: z.number() })),
  /** As `/status`. */
  status: z.unknown(),
  /** The lines of `/metrics`, without the functions' own series. */
  metrics: z.array(z.string()),
  /** The last warnings and errors of the runtime itself, oldest first. */
  warnings: z.array(z.string()),
  /** The manifests as understood, without the values of `env`. */
  functions: z.array(z.unknown()),
});
export type SupportReport = z.infer<typeof supportReportSchema>;

interface SupportParts {
  readonly options: Readonly<Record<string, unknown>>;
  /** The data folder. */
  readonly data: string;
  readonly status: object;
  /** As Prometheus text. */
  readonly metrics: string;
  readonly warnings: readonly string[];
  readonly manifests: readonly FunctionManifest[];
  readonly redactor: Pick<Redactor, "redactData">;
  /** The process' variables, whose values are removed wherever they appear. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Further texts to remove, such as the token of the data folder. */
  readonly secrets: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Series that handlers write. Their labels may contain anything. */
const isUsers = /^(?:# \w+ )?watchfire_user_/;

/** Variables whose values are no secrets: those of the system, of Kubernetes and of the runtime. */
const isPublic =
  /^(?:PATH|HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TZ|HOSTNAME|NODE(?:_(?!AUTH)\w+)?|npm_\w+|KUBERNETES_\w+|KUBECONFIG|POD_\w+|WATCHFIRE_(?:DATA|LOG_LEVEL|LAUNCHER_FD))$/;

/** Makes the report. Every function's values are removed from all of it, and so are the values of the process' variables. */
export async function supportReport(parts: SupportParts): Promise<SupportReport> {
  const { options, data, status, metrics, warnings, manifests, redactor, variables, secrets, now } = parts;
  const { rss, heapUsed } = process.memoryUsage();
  let report: SupportReport = {
    takenAt: new Date(now).toISOString(),
    versions: versionsHere(),
    process: { uptimeSeconds: Math.round(process.uptime()), residentBytes: rss, heapBytes: heapUsed },
    options: { ...options },
    files: filesOf(data),
    status,
    metrics: metrics.split("\n").filter((line) => line !== "" && !isUsers.test(line)),
    warnings: [...warnings],
    functions: manifests.map(withoutValues),
  };
  const own = new Redactor();
  const values = Object.entries(variables).flatMap(([name, value]) => (isPublic.test(name) ? [] : (value ?? [])));
  const passwords = values.flatMap((value) => URL.parse(value)?.password ?? []).map((text) => decodeURIComponent(text));
  own.learn(processName, { secrets: [...secrets, ...passwords, ...values], configuration: [] });
  report = own.redactData(processName, report);
  for (const { name } of manifests) {
    // There may be hundreds of functions, and thousands of lines.
    await nextTurn();
    report = redactor.redactData(name, report);
  }
  return report;
}

/** Stands for the process among the names of functions. */
const processName = "";

/** Returns the versions of this program and of what it runs on. */
export const versionsHere = (): Record<string, string> => ({
  watchfire: version,
  node: process.versions.node,
  v8: process.versions.v8,
  ...(process.versions.sqlite !== undefined && { sqlite: process.versions.sqlite }),
  platform: `${process.platform} ${process.arch} ${release()}`,
});

/** Returns the names and sizes of a folder's files; empty if it cannot be read. */
export function filesOf(folder: string): SupportReport["files"] {
  try {
    return readdirSync(folder).flatMap((name) => {
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      return found?.isFile() ? [{ name, bytes: found.size }] : [];
    });
  } catch {
    return [];
  }
}

/** Returns the manifest without literal values of variables. References to Secrets and ConfigMaps stay. */
const withoutValues = ({ env, ...manifest }: FunctionManifest): object => ({
  ...manifest,
  env: env.map(({ value, ...of }) => (value === undefined ? of : { ...of, value: "[redacted]" })),
});
