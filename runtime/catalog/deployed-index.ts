import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { dnsLabel, dnsSubdomain } from "../kube/names.ts";
import type { AppliedObject } from "./api-objects.ts";
import type { ConfigMap } from "./config-map.ts";
import { indexName, labelsOf, setLabel } from "./names.ts";
import { placeOf } from "./packed-function.ts";

/** Most functions of one runtime: about as many as an index of 1 MiB can name. */
const functionLimit = 2000;

/** Highest number of a revision. A higher one is not a deployment's. */
export const lastRevision = 1_000_000_000;

const key = "functions.json";
const signatureKey = "signature.json";
const revisionKey = "revision";

export const entrySchema = z.strictObject({
  name: z.string().regex(dnsLabel),
  configMap: z.string().regex(dnsSubdomain),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const schema = z.strictObject({
  version: z.literal(1),
  functions: z
    .array(entrySchema)
    .max(functionLimit)
    .refine((functions) => new Set(functions.map(({ name }) => name)).size === functions.length, {
      error: "two entries have the same name",
    }),
});

/** A set of functions of one runtime. */
export interface SetIdentity {
  /** The runtime's account and namespace. */
  readonly account: string;
  readonly namespace: string;
  readonly set: string;
}

/** One function of a deployed set. */
export type IndexEntry = z.output<typeof entrySchema>;

/** Formats the index: one line per function, so that a person can read what changed. */
export function indexText(entries: readonly IndexEntry[]): string {
  const rows = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((entry) => `  ${JSON.stringify(entry)}`);
  return `{"version":1,"functions":[\n${rows.join(",\n")}\n]}\n`;
}

/**
 * Returns the ConfigMap that names the functions of a set, the only object that is changed in place. Without data it names no
 * function yet.
 */
export function indexConfigMap({ account, namespace, set }: SetIdentity, data: Readonly<Record<string, string>>) {
  const labels = { ...labelsOf(account, namespace), [setLabel]: set };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: indexName(account, set), namespace, labels },
    data,
  } satisfies AppliedObject;
}

/**
 * Returns the data of an index with these entries, its signature if a signer is given, the number of its revision if there is
 * one, and its canary.
 */
export function indexData(
  entries: readonly IndexEntry[],
  sign?: (content: string) => string,
  revision?: number,
  canary: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const content = indexText(entries);
  return {
    [key]: content,
    ...(sign && { [signatureKey]: sign(content) }),
    ...(revision !== undefined && { [revisionKey]: String(revision) }),
    ...canary,
  };
}

/** Returns the number of the index's revision; `undefined` if a version without revisions wrote it. */
export function revisionOf({ data }: ConfigMap): number | undefined {
  const number = Number(data[revisionKey]);
  return Number.isInteger(number) && number > 0 && number <= lastRevision ? number : undefined;
}

/** Returns the signed content of an index: its text, unparsed. */
export const contentOf = ({ data }: ConfigMap): string => data[key] ?? "";

/** Returns the text of the index's signature, if any. */
export const signatureOf = ({ data }: ConfigMap): string | undefined => data[signatureKey];

/** Whether an index names no functions yet: a set's first deployment is in progress, or it only holds the lock. */
export const isUnset = ({ data }: ConfigMap): boolean => Object.keys(data).length === 0;

/** @throws WatchfireError WF_DEPLOYED_INDEX */
export function readIndex({ metadata, data }: ConfigMap): readonly IndexEntry[] {
  const fault = (what: string) =>
    new WatchfireError("WF_DEPLOYED_INDEX", { what, place: { file: placeOf(metadata.name) } });
  let value: unknown;
  try {
    value = JSON.parse(data[key] ?? "");
  } catch {
    throw fault(`${key} is not JSON`);
  }
  const { data: index, error } = schema.safeParse(value);
  if (!index) throw fault(z.prettifyError(error).replaceAll("\n", " "));
  return index.functions;
}
