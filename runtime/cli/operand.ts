import { readdirSync } from "node:fs";
import { parseDuration } from "@watchfire/sdk";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { HistoryLimits } from "../history/run-history.ts";
import * as names from "../kube/names.ts";
import { leaseMs, mostLeaseMs } from "../lease/elector.ts";
import { parseSize } from "../manifest/quantity.ts";

/** Returns the functions folder. @throws WatchfireError WF_MANIFEST_FOLDER unless it is a folder and can be read */
export function readFolder(folder: string): string {
  try {
    readdirSync(folder);
    return folder;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const known = { ENOENT: "there is no such folder", ENOTDIR: "it is a file, not a folder" }[code ?? ""];
    const what = known ?? `it cannot be read: ${systemReason(cause)}`;
    throw new WatchfireError("WF_MANIFEST_FOLDER", { what, place: { file: folder }, cause });
  }
}

/** @throws WatchfireError WF_CLI_USAGE unless `text` is a port, 0 to 65535 */
export function readPort(option: string, text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes a port, 0 to 65535`, actual: text });
}

/** Splits `HOST:PORT`. An IPv6 host must be in brackets. @throws WatchfireError WF_CLI_USAGE */
export function readListen(option: string, text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  if (!host || match?.[3] === undefined) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: `${option} takes HOST:PORT`,
      actual: text,
      hint: "such as 127.0.0.1:9464",
    });
  }
  return { host, port: readPort(option, match[3]) };
}

/** Splits `NAMESPACE/NAME`. For `NAME` alone the namespace is "". @throws WatchfireError WF_CLI_USAGE */
export function readObject(option: string, text: string): { namespace: string; name: string } {
  const parts = text.split("/");
  const [first = "", second] = parts;
  if (parts.length <= 2 && parts.every((part) => part !== "")) {
    return second === undefined ? { namespace: "", name: first } : { namespace: first, name: second };
  }
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `${option} takes NAMESPACE/NAME, or NAME where the kind has no namespace`,
    actual: text,
  });
}

/** Returns a namespace's name. @throws WatchfireError WF_CLI_USAGE if it is invalid */
export function readNamespace(text: string, option = "--namespace"): string {
  if (names.dnsLabel.test(text)) return text;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes a namespace's name`, actual: text });
}

/** Returns a ServiceAccount's name. @throws WatchfireError WF_CLI_USAGE if it is invalid */
export function readAccount(text: string): string {
  if (names.dnsSubdomain.test(text)) return text;
  throw new WatchfireError("WF_CLI_USAGE", { what: "--service-account takes a ServiceAccount's name", actual: text });
}

/** Returns an object's name. @throws WatchfireError WF_CLI_USAGE if it is invalid */
export function readName(option: string, text: string): string {
  if (names.objectName.test(text)) return text;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes an object's name`, actual: text });
}

/** Returns the bytes of a size such as `256Mi`. @throws WatchfireError WF_CLI_USAGE */
export function readSize(option: string, text: string): number {
  const bytes = parseSize(text);
  if (bytes !== undefined && bytes > 0) return bytes;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes a size, such as 256Mi`, actual: text });
}

/** Returns the milliseconds of a duration such as `10m` or `7d`. @throws WatchfireError WF_CLI_USAGE */
export function readDuration(option: string, text: string): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const duration = days === undefined ? parseDuration(text) : Number(days) * 86_400_000;
  if (duration !== undefined) return duration;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes a duration`, actual: text, hint: "such as 10m" });
}

/** Returns how long a Lease lasts, in milliseconds. @throws WatchfireError WF_CLI_USAGE */
export function readLeaseDuration(text: string): number {
  const ms = readDuration("--lease-duration", text);
  // A Lease has whole seconds.
  if (ms >= leaseMs && ms <= mostLeaseMs && ms % 1000 === 0) return ms;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "--lease-duration takes whole seconds from 10s to 2m",
    actual: text,
  });
}

/** The smallest history, in bytes: an eighth of it is the write-ahead log. */
const leastHistory = 2 ** 20;

/** Returns the history's limits; `undefined` for a size of 0. @throws WatchfireError WF_CLI_USAGE */
export function readHistory(options: {
  readonly "history-size": string;
  readonly "history-age": string;
}): HistoryLimits | undefined {
  const ageMs = readDuration("--history-age", options["history-age"]);
  if (ageMs === 0) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "--history-age takes more than no time",
      actual: options["history-age"],
      hint: "`--history-size 0` turns the history off",
    });
  }
  const bytes = parseSize(options["history-size"]);
  if (bytes === 0) return undefined;
  if (bytes !== undefined && bytes >= leastHistory) return { bytes, ageMs };
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "--history-size takes a size of at least 1Mi, or 0",
    actual: options["history-size"],
  });
}
