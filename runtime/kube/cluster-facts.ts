import { z } from "zod";
import { ApiError } from "./api-error.ts";
import { readLegacy } from "./discovery-document.ts";
import type { Resource } from "./resource.ts";
import type { KubeTransport } from "./transport.ts";

/**
 * The cluster's identity: the uid of the namespace kube-system, which lives as long as the cluster's data.
 * Undefined where the server has no such namespace or does not let us read it.
 */
export async function clusterUid(transport: KubeTransport): Promise<string | undefined> {
  try {
    const path = "/api/v1/namespaces/kube-system";
    const namespace = await transport.json<{ metadata?: { uid?: unknown } }>({ method: "GET", path });
    return typeof namespace.metadata?.uid === "string" ? namespace.metadata.uid : undefined;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}

/** What is known of the CustomResourceDefinition behind a resource. `unknown`: it cannot be read, or there is none. */
export type DefinitionPresence = "present" | "absent" | "unknown";

/**
 * Whether a resource's CustomResourceDefinition is there. A collection that answers 404 has lost its objects only where
 * it is not: a version that is no longer served, or an aggregated API's server being away, keeps them.
 */
export async function definitionPresence(
  transport: KubeTransport,
  resource: Pick<Resource, "group" | "plural">,
): Promise<DefinitionPresence> {
  // A custom resource's group always has a dot; `apps` and its like have no definition to look for.
  if (!resource.group.includes(".")) return "unknown";
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${resource.plural}.${resource.group}`;
  try {
    await transport.json<unknown>({ method: "GET", path });
    return "present";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // A server without the API for definitions answers 404 as well, but without a Status that says what is not found.
    if (error.status !== 404 || error.reason !== "NotFound") return "unknown";
  }
  return (await servedInAnyVersion(transport, resource)) ? "unknown" : "absent";
}

const groupSchema = z.looseObject({ versions: z.array(z.looseObject({ version: z.string() })) });

/** A built-in kind whose version was retired has no definition either, but its objects are still there in another. */
async function servedInAnyVersion(
  transport: KubeTransport,
  { group, plural }: Pick<Resource, "group" | "plural">,
): Promise<boolean> {
  const document = await transport.json<unknown>({ method: "GET", path: `/apis/${group}` }).catch(notFound);
  const parsed = groupSchema.safeParse(document);
  if (!parsed.success) return document !== undefined;
  for (const { version } of parsed.data.versions) {
    const list = await transport.json<unknown>({ method: "GET", path: `/apis/${group}/${version}` }).catch(notFound);
    if (readLegacy(list, group, version)?.resources.some((each) => each.plural === plural)) return true;
  }
  return false;
}

function notFound(error: unknown): undefined {
  if (error instanceof ApiError && error.status === 404) return undefined;
  throw error;
}
