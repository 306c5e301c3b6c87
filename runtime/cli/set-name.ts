import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { defaultSet } from "../catalog/names.ts";
import { dnsLabel } from "../kube/names.ts";
import type { Option } from "./command.ts";

export const setOption = {
  value: "NAME",
  summary: "the set that the functions belong to; default: the name in package.json, or `default`",
} as const satisfies Option;

/** Longest name of a DNS label. */
const labelLimit = 63;

/** Returns a set's name. @throws WatchfireError WF_CLI_USAGE if it is invalid */
export function readSet(text: string): string {
  if (dnsLabel.test(text)) return text;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "--set takes a name of lower-case letters, digits and dashes, 63 at most",
    actual: text,
  });
}

/**
 * Returns the name in `package.json` as a DNS label: `@acme/my-functions` becomes `acme-my-functions`. The file is in the folder,
 * its parent, or further up as far as the working directory; above that, it may belong to anything. `default` without a file or
 * a name.
 */
export function setNameOf(folder: string, workingDirectory: string): string {
  const start = resolve(workingDirectory, folder);
  const isWithin = (at: string) => at === workingDirectory || at.startsWith(`${workingDirectory}${sep}`);
  for (let at = start; isWithin(at) || at === start || at === dirname(start); at = dirname(at)) {
    const file = join(at, "package.json");
    if (existsSync(file)) return labelOf(nameIn(file)) || defaultSet;
    if (at === dirname(at)) break;
  }
  return defaultSet;
}

function nameIn(file: string): string {
  try {
    const { name } = JSON.parse(readFileSync(file, "utf8")) as { readonly name?: unknown };
    return typeof name === "string" ? name : "";
  } catch {
    return "";
  }
}

/** Returns "" if the name contains nothing that a label may contain. */
const labelOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, labelLimit + 1)
    .replace(/^-+/, "")
    .slice(0, labelLimit)
    .replace(/-+$/, "");
