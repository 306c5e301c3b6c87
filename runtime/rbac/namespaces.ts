import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { RbacObject } from "./objects.ts";

const resource = { group: "", version: "v1", plural: "namespaces", namespaced: false } as const;

/** Namespaces in which no objects can be created, and why. */
interface Absence {
  readonly namespaces: ReadonlySet<string>;
  readonly fault: WatchfireError;
}

/**
 * Returns which namespaces of these objects do not exist, or are being deleted; `undefined` if all exist.
 * @throws WatchfireError WF_RBAC_NO_NAMESPACE if the runtime's own does not exist: then nothing can be done
 */
export async function absenceAmong(
  transport: KubeTransport,
  home: string,
  objects: readonly RbacObject[],
): Promise<Absence | undefined> {
  const users = new Map<string, Set<string>>([[home, new Set()]]);
  for (const { namespace, labels } of objects.map(({ metadata }) => metadata)) {
    if (namespace === undefined) continue;
    const functions = users.get(namespace) ?? new Set();
    users.set(namespace, functions.add(labels?.["watchfire.dev/function"] ?? "the runtime"));
  }
  const namespaces = await absentNamespaces(transport, [...users.keys()].sort());
  if (namespaces.size === 0) return undefined;
  const absent = [...namespaces];
  const each = absent.map((name) =>
    name === home ? `${name} (the runtime's own)` : `${name} (for ${[...(users.get(name) ?? [])].join(", ")})`,
  );
  const hint = absent.map((name) => `kubectl create namespace ${name}`).join(" && ");
  const fault = new WatchfireError("WF_RBAC_NO_NAMESPACE", {
    what: `there is no namespace ${each.join(", nor ")}, or it is being deleted`,
    hint: `create what is missing and grant the rights in it, or correct the manifests: \`${hint}\``,
  });
  if (namespaces.has(home)) throw fault;
  return { namespaces, fault };
}

/** Returns the namespaces that do not exist, or are being deleted. A namespace that must not be read counts as existing. */
export async function absentNamespaces(
  transport: KubeTransport,
  names: Iterable<string>,
  signal?: AbortSignal,
): Promise<Set<string>> {
  const absent = new Set<string>();
  for (const name of names) if (await isAbsent(transport, name, signal)) absent.add(name);
  return absent;
}

async function isAbsent(transport: KubeTransport, name: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    const path = resourcePath(resource, undefined, name);
    const request = { method: "GET", path, ...(signal && { signal }) } as const;
    const found = await transport.json<{ metadata?: { deletionTimestamp?: unknown } } | null>(request);
    // In a namespace that is being deleted, rights are removed first, and objects may take minutes: nothing can be granted or
    // created there.
    return found?.metadata?.deletionTimestamp !== undefined;
  } catch (error) {
    // A proxy may refuse the request with its own message. Only an API server can say that the namespace does not exist.
    if (error instanceof ApiError && error.status === 403) return false;
    if (error instanceof ApiError && error.status === 404 && !error.isForeign) return true;
    throw error;
  }
}
