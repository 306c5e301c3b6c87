import { WatchfireError } from "../errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { RbacObject } from "./objects.ts";

const namespaces = { group: "", version: "v1", plural: "namespaces", namespaced: false } as const;

/**
 * Why these objects cannot be applied: the namespaces of theirs, and the runtime's own, that do not exist. Undefined where
 * all do; one that may not be looked at counts as there.
 */
export async function absentNamespaces(
  transport: KubeTransport,
  home: string,
  objects: readonly RbacObject[],
): Promise<WatchfireError | undefined> {
  const users = new Map<string, Set<string>>([[home, new Set()]]);
  for (const { namespace, labels } of objects.map(({ metadata }) => metadata)) {
    if (namespace === undefined) continue;
    const functions = users.get(namespace) ?? new Set();
    users.set(namespace, functions.add(labels?.["watchfire.dev/function"] ?? "the runtime"));
  }
  const names = [...users.keys()].sort();
  const absent: string[] = [];
  for (const name of names) if (await isAbsent(transport, name)) absent.push(name);
  if (absent.length === 0) return undefined;
  const each = absent.map((name) =>
    name === home ? `${name} (the runtime's own)` : `${name} (for ${[...(users.get(name) ?? [])].join(", ")})`,
  );
  const hint = absent.map((name) => `kubectl create namespace ${name}`).join(" && ");
  return new WatchfireError("WF_RBAC_NO_NAMESPACE", {
    what: `there is no namespace ${each.join(", nor ")}`,
    hint: `create what is missing, or correct the manifests: \`${hint}\``,
  });
}

async function isAbsent(transport: KubeTransport, name: string): Promise<boolean> {
  try {
    await transport.json<unknown>({ method: "GET", path: resourcePath(namespaces, undefined, name) });
    return false;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return error.status === 404;
    throw error;
  }
}
