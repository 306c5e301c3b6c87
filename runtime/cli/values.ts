import { readFileSync, statSync } from "node:fs";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import { decodeUtf8 } from "../document/utf8.ts";
import { ManifestValues } from "../manifest/values.ts";
import type { Option } from "./command.ts";

/** Limit of the file, in bytes: that of a manifest. */
const fileLimit = 1024 * 1024;

export const valuesOption = {
  value: "FILE",
  summary: `a YAML map of values for each \${name} in manifests; without it, these are plain text`,
} as const satisfies Option;

/**
 * Reads the file of `--values`; `undefined` if there is no such option.
 * @throws WatchfireError WF_MANIFEST_UNREADABLE, WF_MANIFEST_SYNTAX, WF_MANIFEST_VALUE_INVALID
 */
export function readValues(file: string | undefined): ManifestValues | undefined {
  if (file === undefined) return undefined;
  const unreadable = (what: string, cause?: unknown) =>
    new WatchfireError("WF_MANIFEST_UNREADABLE", {
      what,
      place: { file },
      hint: "name a readable file of at most 1 MiB with --values",
      cause,
    });
  let bytes: Buffer;
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw unreadable("it is not a regular file");
    if (stats.size > fileLimit) throw unreadable("the file is too large");
    bytes = readFileSync(file);
  } catch (cause) {
    if (cause instanceof WatchfireError) throw cause;
    throw unreadable(systemReason(cause), cause);
  }
  return ManifestValues.read(decodeUtf8(bytes, file, "WF_MANIFEST_UNREADABLE"), file);
}
