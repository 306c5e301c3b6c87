import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { builtInTable } from "../kube/built-in-kinds.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Resource } from "../kube/resource.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** Facts about a kind that rules depend on. */
export type KindFacts = Pick<Resource, "group" | "plural" | "namespaced">;

/** Maps a kind to its resource; `undefined` if it is unknown. */
export type KnownKinds = (apiVersion: string, kind: string) => Omit<KindFacts, "group"> | undefined;

export const builtInKinds: KnownKinds = (apiVersion, kind) => {
  const [plural, namespaced = false] = builtInTable[apiVersion]?.[kind] ?? [];
  return plural === undefined ? undefined : { plural, namespaced };
};

/** Largest file that is read, in bytes. Definitions of a large operator take a megabyte. */
const fileLimit = 4 * 1024 * 1024;

const definitionSchema = z.looseObject({
  kind: z.literal("CustomResourceDefinition"),
  spec: z.looseObject({
    group: z.string(),
    scope: z.enum(["Namespaced", "Cluster"]),
    names: z.looseObject({ kind: z.string(), plural: z.string() }),
    versions: z.array(z.looseObject({ name: z.string() })),
  }),
});

/** A resource that a CustomResourceDefinition makes the server serve. */
export interface DefinedResource extends KindFacts {
  readonly kind: string;
  readonly versions: readonly string[];
}

/** Returns the resources of the CustomResourceDefinitions in YAML or JSON files in the functions folder or next to a manifest. */
export function definedResources(folder: string, manifests: readonly FunctionManifest[]): DefinedResource[] {
  return [...new Set([folder, ...manifests.map(({ file }) => dirname(file))])]
    .flatMap(definitionsIn)
    .map(({ spec: { group, scope, names, versions } }) => ({
      group,
      kind: names.kind,
      plural: names.plural,
      namespaced: scope === "Namespaced",
      versions: versions.map(({ name }) => name),
    }));
}

/** Returns the kinds of those resources. */
export function definedKinds(folder: string, manifests: readonly FunctionManifest[]): KnownKinds {
  const found = new Map<string, Omit<KindFacts, "group">>();
  for (const { group, kind, versions, plural, namespaced } of definedResources(folder, manifests)) {
    for (const version of versions) found.set(`${group}/${version} ${kind}`, { plural, namespaced });
  }
  return (apiVersion, kind) => found.get(`${apiVersion} ${kind}`);
}

/** Only regular files are read: a pipe has no size and no end. */
const isRead = (stats: Stats | undefined): boolean => (stats?.isFile() ?? false) && (stats?.size ?? 0) < fileLimit;

function definitionsIn(folder: string): z.infer<typeof definitionSchema>[] {
  const files = readdirSync(folder)
    .filter((name) => /\.(?:ya?ml|json)$/.test(name))
    .map((name) => join(folder, name))
    .filter((file) => isRead(statSync(file, { throwIfNoEntry: false })));
  return files.flatMap((file) => {
    const text = readFileSync(file, "utf8");
    if (!text.includes("CustomResourceDefinition")) return [];
    return parseAllDocuments(text).flatMap((document) => definitionSchema.safeParse(document.toJS()).data ?? []);
  });
}

/**
 * Returns the kinds of the functions' triggers and reads as a cluster serves them; others are unknown. Throws what the transport
 * throws.
 */
export async function servedKinds(discovery: Discovery, manifests: readonly FunctionManifest[]): Promise<KnownKinds> {
  const found = new Map<string, Resource>();
  for (const { apiVersion, kind } of manifests.flatMap(({ triggers, reads }) => [...triggers, ...reads])) {
    const lookup = await discovery.resolve(apiVersion, kind);
    if (lookup.type === "Served") found.set(`${apiVersion} ${kind}`, lookup.resource);
  }
  return (apiVersion, kind) => found.get(`${apiVersion} ${kind}`);
}

/**
 * Returns the kinds of a function's triggers and reads from the built-in table, or as the cluster last served them. A kind that was never
 * served is unknown; a server that does not answer does not change known kinds.
 */
export function rememberedKinds(discovery: Pick<Discovery, "resolve">): (of: FunctionManifest) => Promise<KnownKinds> {
  const served = new Map<string, Resource>();
  const kinds = firstOf(builtInKinds, (apiVersion, kind) => served.get(`${apiVersion} ${kind}`));
  return async ({ triggers, reads }) => {
    for (const { apiVersion, kind } of [...triggers, ...reads]) {
      if (builtInKinds(apiVersion, kind)) continue;
      const lookup = await discovery.resolve(apiVersion, kind).catch(() => undefined);
      if (lookup?.type === "Served") served.set(`${apiVersion} ${kind}`, lookup.resource);
    }
    return kinds;
  };
}

/** Asks several sources in turn; the first that knows the kind answers. */
export const firstOf =
  (...all: readonly KnownKinds[]): KnownKinds =>
  (apiVersion, kind) => {
    for (const kinds of all) {
      const facts = kinds(apiVersion, kind);
      if (facts) return { plural: facts.plural, namespaced: facts.namespaced };
    }
    return undefined;
  };
