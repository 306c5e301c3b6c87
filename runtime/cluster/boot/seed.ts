import type { KubeObject } from "../api/object.ts";
import { keyOf } from "../kinds/resource-type.ts";
import type { Backend } from "../rest/call.ts";
import { create } from "../rest/create.ts";
import { internalCall } from "../rest/internal-call.ts";
import { bindings, roles } from "./roles.ts";

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** The first address of the service range, which the `kubernetes` Service has. */
const serverAddress = "10.96.0.1";

function objects(): KubeObject[] {
  return [
    ...namespaces.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: "kubernetes",
        namespace: "default",
        labels: { component: "apiserver", provider: "kubernetes" },
      },
      spec: { clusterIP: serverAddress, ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }] },
    },
    ...roles,
    ...bindings,
  ];
}

/**
 * Creates the objects that every cluster has: its namespaces, the `kubernetes` Service and the default roles. Existing objects
 * are not changed.
 */
export function seed(backend: Backend): void {
  for (const object of objects()) {
    const call = internalCall(backend, object);
    const { namespace = "", name = "" } = object.metadata;
    if (!call || backend.store.get(call.type.storage, keyOf(namespace, name))) continue;
    create({ ...call, name: "" }, object);
  }
}
