import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import type { Discovery } from "../kube/discovery.ts";
import type { Resource } from "../kube/resource.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** What rules must know of a kind. */
export type KindFacts = Pick<Resource, "group" | "plural" | "namespaced">;

/** Kind to resource; undefined where it is not known. */
export type KnownKinds = (apiVersion: string, kind: string) => Omit<KindFacts, "group"> | undefined;

/**
 * The kinds that each Kubernetes serves by itself to watchers, by apiVersion: the plural, and whether it is in namespaces; see
 * refresh-built-in-kinds.ts.
 */
export const builtInTable = z
  .record(z.string(), z.record(z.string(), z.tuple([z.string(), z.boolean()])))
  .parse(JSON.parse(readFileSync(new URL("../kube/built-in-kinds.json", import.meta.url), "utf8")));

export const builtInKinds: KnownKinds = (apiVersion, kind) => {
  const [plural, namespaced = false] = builtInTable[apiVersion]?.[kind] ?? [];
  return plural === undefined ? undefined : { plural, namespaced };
};

/** Definitions of a large operator take a megabyte; beyond this it is something else. */
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

/** What a CustomResourceDefinition makes the server serve. */
export interface DefinedResource extends KindFacts {
  readonly kind: string;
  readonly versions: readonly string[];
}

/** The resources of the CustomResourceDefinitions that lie as YAML or JSON in the functions folder or beside a manifest. */
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

/** The kinds of those. */
export function definedKinds(folder: string, manifests: readonly FunctionManifest[]): KnownKinds {
  const found = new Map<string, Omit<KindFacts, "group">>();
  for (const { group, kind, versions, plural, namespaced } of definedResources(folder, manifests)) {
    for (const version of versions) found.set(`${group}/${version} ${kind}`, { plural, namespaced });
  }
  return (apiVersion, kind) => found.get(`${apiVersion} ${kind}`);
}

/** A pipe has no size and no end. */
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

/** The kinds of the functions' triggers and reads as a cluster serves them; the rest is not known. Throws what the transport throws. */
export async function servedKinds(discovery: Discovery, manifests: readonly FunctionManifest[]): Promise<KnownKinds> {
  const found = new Map<string, Resource>();
  for (const { apiVersion, kind } of manifests.flatMap(({ triggers, reads }) => [...triggers, ...reads])) {
    const lookup = await discovery.resolve(apiVersion, kind);
    if (lookup.type === "Served") found.set(`${apiVersion} ${kind}`, lookup.resource);
  }
  return (apiVersion, kind) => found.get(`${apiVersion} ${kind}`);
}

/**
 * The kinds of a function's triggers by the table, else as the cluster served them when it was last asked. One that it has
 * never served is not known; a server that does not answer changes nothing of what is.
 */
export function rememberedKinds(discovery: Pick<Discovery, "resolve">): (of: FunctionManifest) => Promise<KnownKinds> {
  const served = new Map<string, Resource>();
  const kinds = firstOf(builtInKinds, (apiVersion, kind) => served.get(`${apiVersion} ${kind}`));
  return async ({ triggers }) => {
    for (const { apiVersion, kind } of triggers) {
      if (builtInKinds(apiVersion, kind)) continue;
      const lookup = await discovery.resolve(apiVersion, kind).catch(() => undefined);
      if (lookup?.type === "Served") served.set(`${apiVersion} ${kind}`, lookup.resource);
    }
    return kinds;
  };
}

/** Whichever knows first. */
export const firstOf =
  (...all: readonly KnownKinds[]): KnownKinds =>
  (apiVersion, kind) => {
    for (const kinds of all) {
      const facts = kinds(apiVersion, kind);
      if (facts) return { plural: facts.plural, namespaced: facts.namespaced };
    }
    return undefined;
  };
