import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { isAllowed } from "./access-review.ts";
import { ApiError } from "./api-error.ts";
import { readLegacy } from "./discovery-document.ts";
import type { KubeTransport } from "./transport.ts";

/** Identity of a cluster: the uid of the namespace kube-system, which lives as long as the cluster's data. */
type ClusterIdentity =
  | { readonly uid: string }
  /** The server has no such namespace (404), or reading it is forbidden (403). */
  | { readonly uid: undefined; readonly status: number; readonly message: string };

/**
 * Reads the cluster's identity. Throws ApiError for every other answer, or what the transport throws.
 * @throws WatchfireError WF_KUBE_PROTOCOL if the answer is not a namespace
 */
export async function clusterIdentity(transport: KubeTransport, signal?: AbortSignal): Promise<ClusterIdentity> {
  const path = "/api/v1/namespaces/kube-system";
  try {
    const namespace = await transport.json<{ metadata?: { uid?: unknown } } | null>({
      method: "GET",
      path,
      ...(signal && { signal }),
    });
    const uid = namespace?.metadata?.uid;
    if (typeof uid === "string") return { uid };
    const what = `${transport.description} answered ${path} with something other than a namespace`;
    throw new WatchfireError("WF_KUBE_PROTOCOL", { what });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 404)) throw error;
    // A proxy that passes other paths may refuse this one with its own message.
    if (error.isForeign && !(await hasGroups(transport, signal))) throw error;
    return { uid: undefined, status: error.status, message: error.message };
  }
}

/** Whether an API server answers: every API server lists its groups. */
async function hasGroups(transport: KubeTransport, signal?: AbortSignal): Promise<boolean> {
  const request = { method: "GET", path: "/apis", ...(signal && { signal }) } as const;
  const answer = await transport.json<{ kind?: unknown } | null>(request).catch(() => undefined);
  return answer?.kind === "APIGroupList";
}

/** Whether the CustomResourceDefinition of a resource exists. `unknown`: it cannot be read, or the resource has no definition. */
export type DefinitionPresence = "present" | "absent" | "unknown";

/** A kind whose definition is looked up; its plural if it has been served to this process. */
export interface DefinedKind {
  readonly group: string;
  readonly kind: string;
  readonly plural?: string | undefined;
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/**
 * Checks whether a kind's CustomResourceDefinition exists. If it does not, a collection that answers 404 has lost its objects. If
 * only a version is no longer served, or an aggregated API's server is down, the objects remain.
 */
export async function definitionPresence(transport: KubeTransport, of: DefinedKind): Promise<DefinitionPresence> {
  // A custom resource's group always has a dot; groups such as `apps` have no definition.
  if (!of.group.includes(".") || !(await mayLook(transport, of))) return "unknown";
  try {
    if (of.plural !== undefined) await definition(transport, `${of.plural}.${of.group}`);
    else if (!(await isDefined(transport, of))) return await absence(transport, of);
    return "present";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // A server without the API for definitions answers 404 as well, but without a Status that says what was not found.
    return of.plural !== undefined && error.status === 404 && error.reason === "NotFound"
      ? absence(transport, of)
      : "unknown";
  }
}

/**
 * Whether the account may read the definition. The right is optional, and checked first so that audit logs do not fill with
 * refusals.
 */
function mayLook(transport: KubeTransport, { group, plural }: DefinedKind): Promise<boolean> {
  const definitions = { group: "apiextensions.k8s.io", resource: "customresourcedefinitions", namespace: undefined };
  const look = plural === undefined ? { verb: "list", name: undefined } : { verb: "get", name: `${plural}.${group}` };
  // A server that answers 404 has no API for access reviews; that does not mean the access is denied.
  return isAllowed(transport, { ...definitions, ...look }, "self").catch((error: unknown) => notFound(error) ?? true);
}

const definitionSchema = z.looseObject({ spec: z.looseObject({ names: z.looseObject({ kind: z.string() }) }) });

function definition(transport: KubeTransport, name: string): Promise<unknown> {
  return transport.json<unknown>({ method: "GET", path: `${definitionsPath}/${name}` });
}

const namesSchema = z.looseObject({
  items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })),
});

/** Looks through the definitions of the group. Only their metadata is listed, because schemas are large. */
async function isDefined(transport: KubeTransport, { group, kind }: DefinedKind): Promise<boolean> {
  const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
  const list = await transport.json<unknown>({ method: "GET", path: definitionsPath, headers: { accept } });
  for (const { metadata } of namesSchema.parse(list).items) {
    if (!metadata.name.endsWith(`.${group}`)) continue;
    const found = definitionSchema.parse(await definition(transport, metadata.name));
    if (found.spec.names.kind === kind) return true;
  }
  return false;
}

/**
 * Distinguishes a removed kind from a built-in one whose version was retired: the latter has no definition either, but its
 * objects remain in another version.
 */
async function absence(transport: KubeTransport, of: DefinedKind): Promise<"absent" | "unknown"> {
  return (await servedInAnyVersion(transport, of)) ? "unknown" : "absent";
}

const groupSchema = z.looseObject({ versions: z.array(z.looseObject({ version: z.string() })) });

async function servedInAnyVersion(transport: KubeTransport, { group, kind }: DefinedKind): Promise<boolean> {
  const document = await transport.json<unknown>({ method: "GET", path: `/apis/${group}` }).catch(notFound);
  const parsed = groupSchema.safeParse(document);
  if (!parsed.success) return document !== undefined;
  for (const { version } of parsed.data.versions) {
    const list = await transport.json<unknown>({ method: "GET", path: `/apis/${group}/${version}` }).catch(notFound);
    if (readLegacy(list, group, version)?.resources.some((each) => each.kind === kind)) return true;
  }
  return false;
}

function notFound(error: unknown): undefined {
  if (error instanceof ApiError && error.status === 404) return undefined;
  throw error;
}
