import { z } from "zod";
import type { Resource } from "./resource.ts";

/** Accept header that asks for everything in one document (apidiscovery.k8s.io/v2, stable since 1.30), or for the older form. */
export const aggregatedAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

const aggregatedSchema = z.looseObject({
  kind: z.literal("APIGroupDiscoveryList"),
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string().optional() }).optional(),
      versions: z
        .array(
          z.looseObject({
            version: z.string(),
            freshness: z.string().optional(),
            resources: z
              .array(
                z.looseObject({
                  resource: z.string(),
                  responseKind: z.looseObject({ kind: z.string() }).nullish(),
                  scope: z.string(),
                  verbs: z.array(z.string()).nullish(),
                  subresources: z.array(z.looseObject({ subresource: z.string() })).nullish(),
                }),
              )
              .nullish(),
          }),
        )
        .nullish(),
    }),
  ),
});

const legacySchema = z.looseObject({
  kind: z.literal("APIResourceList"),
  resources: z
    .array(
      z.looseObject({
        name: z.string(),
        namespaced: z.boolean(),
        kind: z.string(),
        verbs: z.array(z.string()).nullish(),
      }),
    )
    .nullish(),
});

/** The resources of one group and version. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly Resource[];
}

/**
 * Reads an aggregated discovery document; `undefined` if it is of another form. A group version that the server marks stale is
 * omitted, so that it is requested separately: its own server was unreachable when the document was made.
 */
export function readAggregated(document: unknown): GroupVersion[] | undefined {
  const parsed = aggregatedSchema.safeParse(document);
  if (!parsed.success) return undefined;
  return parsed.data.items.flatMap((item) => {
    const group = item.metadata?.name ?? "";
    const fresh = (item.versions ?? []).filter((version) => version.freshness !== "Stale");
    return fresh.map(({ version, resources }) => ({
      group,
      version,
      resources: (resources ?? []).map((each) => ({
        group,
        version,
        kind: each.responseKind?.kind ?? "",
        plural: each.resource,
        namespaced: each.scope === "Namespaced",
        verbs: each.verbs ?? [],
        subresources: (each.subresources ?? []).map((sub) => sub.subresource),
      })),
    }));
  });
}

/** Reads the APIResourceList of one group version; `undefined` if it is of another form. */
export function readLegacy(document: unknown, group: string, version: string): GroupVersion | undefined {
  const parsed = legacySchema.safeParse(document);
  if (!parsed.success) return undefined;
  const all = parsed.data.resources ?? [];
  const resources = all
    .filter((each) => !each.name.includes("/"))
    .map((each) => ({
      group,
      version,
      kind: each.kind,
      plural: each.name,
      namespaced: each.namespaced,
      verbs: each.verbs ?? [],
      subresources: all
        .filter((sub) => sub.name.startsWith(`${each.name}/`))
        .map((sub) => sub.name.slice(each.name.length + 1)),
    }));
  return { group, version, resources };
}
