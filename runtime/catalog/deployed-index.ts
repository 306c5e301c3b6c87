import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { dnsLabel, dnsSubdomain } from "../kube/names.ts";
import type { AppliedObject } from "./api-objects.ts";
import type { ConfigMap } from "./config-map.ts";
import { indexName, labelsOf } from "./names.ts";
import { placeOf } from "./packed-function.ts";

/** As many as one index of 1 MiB could name, about; a runtime of this many would want a second one. */
const functionLimit = 2000;

const key = "functions.json";
const signatureKey = "signature.json";

const schema = z.strictObject({
  version: z.literal(1),
  functions: z
    .array(
      z.strictObject({
        name: z.string().regex(dnsLabel),
        configMap: z.string().regex(dnsSubdomain),
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
      }),
    )
    .max(functionLimit)
    .refine((functions) => new Set(functions.map(({ name }) => name)).size === functions.length, {
      error: "two entries have the same name",
    }),
});

/** One function of the deployed set. */
export type IndexEntry = z.output<typeof schema>["functions"][number];

/** The index's text: one line a function, so that a person can read what changed. */
export function indexText(entries: readonly IndexEntry[]): string {
  const rows = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((entry) => `  ${JSON.stringify(entry)}`);
  return `{"version":1,"functions":[\n${rows.join(",\n")}\n]}\n`;
}

/** The ConfigMap that names the set, the one thing that changes in place. Without data it names none yet. */
export function indexConfigMap(account: string, namespace: string, data: Readonly<Record<string, string>>) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: indexName(account), namespace, labels: labelsOf(account, namespace) },
    data,
  } satisfies AppliedObject;
}

/** The data of an index that names these, and what signs it if it is to be signed. */
export function indexData(
  entries: readonly IndexEntry[],
  sign?: (content: string) => string,
): Readonly<Record<string, string>> {
  const content = indexText(entries);
  return { [key]: content, ...(sign && { [signatureKey]: sign(content) }) };
}

/** What a signature of the index is of: its text as it lies there. */
export const contentOf = ({ data }: ConfigMap): string => data[key] ?? "";

/** The text of the index's signature, if there is one. */
export const signatureOf = ({ data }: ConfigMap): string | undefined => data[signatureKey];

/** Whether an index names no set yet: the first deployment has begun and has not ended. */
export const isUnset = ({ data }: ConfigMap): boolean => Object.keys(data).length === 0;

/** @throws WatchfireError WF_DEPLOYED_INDEX */
export function readIndex({ metadata, data }: ConfigMap): readonly IndexEntry[] {
  const fault = (what: string) =>
    new WatchfireError("WF_DEPLOYED_INDEX", { what, place: { file: placeOf(metadata.name) } });
  let value: unknown;
  try {
    value = JSON.parse(data[key] ?? "");
  } catch {
    throw fault(`${key} is no JSON`);
  }
  const { data: index, error } = schema.safeParse(value);
  if (!index) throw fault(z.prettifyError(error).replaceAll("\n", " "));
  return index.functions;
}
