import { createHash } from "node:crypto";
import { z } from "zod";
import { clean } from "../../base/wording.ts";
import { dnsLabel } from "../../kube/names.ts";
import type { AppliedObject, ClusterObject } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import { type IndexEntry, indexText, lastRevision, type SetIdentity } from "../deployed-index.ts";
import { audienceOf } from "../index-trust.ts";
import { configMapName, keptLabelsOf, revisionName } from "../names.ts";
import type { SigningKey, TrustedKeys } from "../signature.ts";

const key = "revision.json";
const signatureKey = "signature.json";

/** Longest message of a revision, in characters: a commit message with its body. */
export const messageLimit = 2000;

const kindSchema = z.object({ apiVersion: z.string(), kind: z.string(), plural: z.string(), namespaced: z.boolean() });

/** Whoever may write ConfigMaps may have written it. Fields of later versions are ignored. */
const schema = z.object({
  version: z.literal(1),
  number: z.int().min(1).max(lastRevision),
  at: z.iso.datetime().nullable(),
  by: z.union([z.object({ account: z.string() }), z.object({ unknown: z.string() })]),
  git: z.object({ commit: z.string().regex(/^[0-9a-f]{7,64}$/), dirty: z.boolean() }).nullable(),
  message: z.string(),
  kinds: z.array(kindSchema),
  functions: z.array(z.object({ name: z.string().regex(dnsLabel), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
});

type RevisionRecord = z.output<typeof schema>;

/** Author, origin and reason of a deployment. */
export interface RevisionNote {
  /** The account, by its name at the API server, or why it is unknown. */
  readonly by: { readonly account: string } | { readonly unknown: string };
  /** The commit of the sources, and whether the work tree has changes that are not committed. `null`: no work tree. */
  readonly git: { readonly commit: string; readonly dirty: boolean } | null;
  /** May be empty. */
  readonly message: string;
  /** Kinds of triggers and reads that are not built in; rights are computed with them if the cluster no longer serves them. */
  readonly kinds: readonly z.output<typeof kindSchema>[];
  /** The revision that the deployment replaces. If another is current by then, it is refused. Default: any. */
  readonly replaces?: number;
}

/** A recorded revision of a set. */
export interface Revision extends RevisionRecord {
  readonly configMap: ClusterObject;
  /** Hash of the functions' names and hashes, in hex: equal for equal code and manifests. */
  readonly digest: string;
  /** True if a signature is there; it is verified only by `isSignedBy`. */
  readonly isSigned: boolean;
}

/** Longest name of an account that is shown, in characters. */
const accountLimit = 256;

/** Returns the account that deployed a revision, or why it is not known, as text of a bounded length. */
export const accountOf = ({ by }: Pick<Revision, "by">): string =>
  clean("account" in by ? by.account : `unknown: ${by.unknown}`).slice(0, accountLimit);

/** Hash of an index's text. */
export const digestOf = (entries: readonly IndexEntry[]): string =>
  createHash("sha256").update(indexText(entries)).digest("hex");

/** Returns the entries of the index that the revision had. */
export const entriesOf = ({ functions }: Pick<RevisionRecord, "functions">, account: string): IndexEntry[] =>
  functions.map(({ name, sha256 }) => ({ name, configMap: configMapName(account, name, sha256), sha256 }));

/** Returns the ConfigMap that records a revision. `at`: epoch milliseconds, also the signature's serial; `null`: unknown. */
export function revisionConfigMap(
  identity: SetIdentity,
  { replaces: _, ...note }: RevisionNote,
  { number, at, entries, key: signing }: RevisionParts,
): AppliedObject {
  const { account, namespace, set } = identity;
  const functions = entries.map(({ name, sha256 }) => ({ name, sha256 }));
  const record: RevisionRecord = {
    version: 1,
    number,
    at: at === null ? null : new Date(at).toISOString(),
    by: note.by,
    git: note.git,
    message: note.message,
    kinds: [...note.kinds],
    functions,
  };
  const content = `${JSON.stringify(record)}\n`;
  const statement = { purpose: "deployed-revision", audience: audienceOf(namespace, account, set), content } as const;
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: revisionName(account, set, number),
      namespace,
      labels: keptLabelsOf(account, namespace, set),
    },
    immutable: true,
    data: { [key]: content, ...(signing && { [signatureKey]: signing.sign({ ...statement, serial: at ?? 0 }) }) },
  };
}

interface RevisionParts {
  readonly number: number;
  readonly at: number | null;
  readonly entries: readonly IndexEntry[];
  /** Default: no signature. */
  readonly key: SigningKey | undefined;
}

/** Returns the revision that a ConfigMap records. `undefined` if it is no record, or under another's name. */
export function readRevision(configMap: ClusterObject, { account, set }: SetIdentity): Revision | undefined {
  const { data = {} } = readConfigMap(configMap) ?? {};
  let value: unknown;
  try {
    value = JSON.parse(data[key] ?? "");
  } catch {
    return undefined;
  }
  const record = schema.safeParse(value).data;
  if (!record || configMap.metadata.name !== revisionName(account, set, record.number)) return undefined;
  const digest = digestOf(entriesOf(record, account));
  return { ...record, configMap, digest, isSigned: signatureKey in data };
}

/** Returns why no key of these signed the revision for this set; `undefined` if one did. */
export function distrustOf(
  { configMap }: Revision,
  { account, namespace, set }: SetIdentity,
  keys: TrustedKeys,
): string | undefined {
  const { data = {} } = readConfigMap(configMap) ?? {};
  const audience = audienceOf(namespace, account, set);
  const found = keys.verify(data[signatureKey], {
    purpose: "deployed-revision",
    audience,
    content: data[key] ?? "",
  });
  return typeof found === "number" ? undefined : found.why;
}
