import { createHash } from "node:crypto";
import { z } from "zod";
import type { ConfigMap } from "./config-map.ts";
import { contentOf, entrySchema, type IndexEntry } from "./deployed-index.ts";

/** Fields of the index's ConfigMap. Versions that know no canaries ignore them. */
const key = "canary.json";
const signatureKey = "canary-signature.json";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** Whoever may write ConfigMaps may have written it. Fields of later versions are ignored. */
const schema = z.object({
  version: z.literal(1),
  base: sha256,
  share: z.number().gt(0).lt(100),
  at: z.iso.datetime(),
  by: z.union([z.object({ account: z.string() }), z.object({ unknown: z.string() })]),
  git: z.object({ commit: z.string().regex(/^[0-9a-f]{7,64}$/), dirty: z.boolean() }).nullable(),
  message: z.string(),
  functions: z.array(entrySchema),
});

/** The record of a canary, or of the end of one: then it names no functions. */
interface CanaryRecord extends Omit<z.output<typeof schema>, "version" | "base"> {}

/** The canary of a set. */
export interface Canary extends CanaryRecord {
  /** Differs for each `deploy --canary`, and for its end. */
  readonly id: string;
}

/** Fields of an index that name a canary. */
interface CanaryFields {
  readonly text: string;
  readonly signature: string | undefined;
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Formats a record. `index`: the text of the index that it belongs to; with any other it is ignored. */
export const canaryText = (record: CanaryRecord, index: string): string =>
  `${JSON.stringify({ version: 1, base: hashOf(index), ...record })}\n`;

/** Returns the fields of the index's ConfigMap. */
export const canaryData = ({ text, signature }: CanaryFields): Readonly<Record<string, string>> => ({
  [key]: text,
  ...(signature !== undefined && { [signatureKey]: signature }),
});

/** Returns what the signature of a canary is over, and the signature. */
export const signedCanary = ({ data }: ConfigMap): { readonly content: string; readonly signature?: string } => ({
  content: data[key] ?? "",
  ...(data[signatureKey] !== undefined && { signature: data[signatureKey] }),
});

/**
 * Returns the canary that an index names, or the record of its end. `undefined` if there is neither, if it cannot be read, or if
 * it was written for other current code: somebody has replaced that without knowing of the canary.
 */
export function readCanary(index: ConfigMap): Canary | undefined {
  const text = index.data[key];
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { base, version: _, ...record } = schema.safeParse(value).data ?? {};
  if (base !== hashOf(contentOf(index))) return undefined;
  return { ...(record as CanaryRecord), id: hashOf(text).slice(0, 16) };
}

/** Decides, with the key, which keys a canary gets: the same for all functions of the set, and for a larger share of the same code. */
export const saltOf = ({ functions }: Pick<Canary, "functions">): string =>
  hashOf(JSON.stringify(functions.map(({ name, sha256 }: IndexEntry) => [name, sha256]).sort())).slice(0, 16);
