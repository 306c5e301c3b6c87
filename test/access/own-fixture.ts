// A runtime, its own objects, and a function with all permissions.

import { expect } from "vitest";
import { functionAccount } from "../../runtime/access/account.ts";
import { OwnObjects } from "../../runtime/access/own-objects.ts";
import { configMapName, indexName, labelsOf } from "../../runtime/catalog/names.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { accessTo, everything } from "./api-server.ts";

export const home = "watchfire";
export const account = "watchfire";
const pod = "events-0";
export const sha256 = "0123456789abcdef".repeat(4);

/** Kinds of the runtime's own objects, as an API server serves them. */
const served: Record<string, [plural: string, kind: string, namespaced: boolean][]> = {
  v1: [
    ["configmaps", "ConfigMap", true],
    ["secrets", "Secret", true],
    ["serviceaccounts", "ServiceAccount", true],
    ["pods", "Pod", true],
    ["persistentvolumeclaims", "PersistentVolumeClaim", true],
    ["events", "Event", true],
    ["namespaces", "Namespace", false],
  ],
  "events.k8s.io/v1": [["events", "Event", true]],
  "apps/v1": [["statefulsets", "StatefulSet", true]],
  "batch/v1": [["jobs", "Job", true]],
  "autoscaling/v2": [["horizontalpodautoscalers", "HorizontalPodAutoscaler", true]],
  "coordination.k8s.io/v1": [["leases", "Lease", true]],
  "coordination.k8s.io/v1beta1": [["leases", "Lease", true]],
  "rbac.authorization.k8s.io/v1": [
    ["roles", "Role", true],
    ["rolebindings", "RoleBinding", true],
    ["clusterroles", "ClusterRole", false],
    ["clusterrolebindings", "ClusterRoleBinding", false],
  ],
  "apiextensions.k8s.io/v1": [["customresourcedefinitions", "CustomResourceDefinition", false]],
  "apiregistration.k8s.io/v1": [["apiservices", "APIService", false]],
  "watchfire.dev/v1alpha1": [["functions", "Function", true]],
};

export const discovery = {
  resolve: async (apiVersion: string, kind: string) => {
    const found = served[apiVersion]?.find(([, each]) => each === kind);
    if (!found) throw new Error(`${apiVersion} ${kind} is not served here`);
    const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const resource = { group, version, plural: found[0], kind, namespaced: found[2], verbs: [], shortNames: [] };
    return { type: "Served", resource } as never;
  },
  missing: () => undefined,
  invalidate: () => {},
  served: async () => [],
};

/** A namespace that shares the runtime. */
export const shared = "team-s";
export const own = new OwnObjects({ namespace: home, setNamespaces: [shared], account, pod, reserved: ["mounted"] });
export const accessWithAll = () => accessTo({ manifest: { permissions: [everything] }, own, discovery });

type Ref = { apiVersion: string; kind: string; name: string; namespace?: string };
export const at = (apiVersion: string, kind: string, name: string, namespace?: string): Ref => ({
  apiVersion,
  kind,
  name,
  ...(namespace !== undefined && { namespace }),
});
const objectOf = ({ apiVersion, kind, ...metadata }: Ref, more: object = {}) => ({
  apiVersion,
  kind,
  metadata: { ...metadata, uid: "u", ...(more as { metadata?: object }).metadata },
});

export const rbac = "rbac.authorization.k8s.io/v1";
export const ownRefs: Ref[] = [
  at("v1", "ConfigMap", indexName(account, "default"), home),
  at("v1", "ConfigMap", configMapName(account, "greet", sha256), home),
  ...checkpointSecrets(account).map((name) => at("v1", "Secret", name, home)),
  at("v1", "Secret", "mounted", home),
  at("v1", "ConfigMap", "mounted", home),
  at("v1", "ConfigMap", "kube-root-ca.crt", home),
  at("v1", "ServiceAccount", account, home),
  at("v1", "ServiceAccount", functionAccount(account, "greet"), home),
  at("coordination.k8s.io/v1", "Lease", account, home),
  at("coordination.k8s.io/v1beta1", "Lease", account, home),
  at(rbac, "Role", "watchfire.watchfire", home),
  at(rbac, "Role", "watchfire-greet.watchfire", "team-a"),
  at(rbac, "RoleBinding", "watchfire-greet.watchfire.runtime", "team-a"),
  at(rbac, "ClusterRole", "watchfire-greet.watchfire"),
  at(rbac, "ClusterRoleBinding", "watchfire.watchfire"),
  at(rbac, "ClusterRoleBinding", "watchfire:events"),
  at("apps/v1", "StatefulSet", "events", home),
  at("v1", "Pod", pod, home),
  at("v1", "Pod", "events-1", home),
  at("v1", "PersistentVolumeClaim", "data-events-0", home),
  at("v1", "Event", "watchfire-functions.1234", home),
  at("watchfire.dev/v1alpha1", "Function", "greet", home),
  at("watchfire.dev/v1alpha1", "Function", "greet", "another"),
  at("v1", "ConfigMap", indexName(account, "main"), shared),
  at("v1", "ConfigMap", configMapName(account, "greet", sha256), shared),
  at("v1", "ServiceAccount", functionAccount(account, "greet"), shared),
  at("apiextensions.k8s.io/v1", "CustomResourceDefinition", "functions.watchfire.dev"),
  at("apiregistration.k8s.io/v1", "APIService", "v1alpha1.watchfire.dev"),
];

/** Every operation that writes, on one object. */
export const writes = (ref: Ref): [string, object][] => [
  ["kube.create", { object: objectOf(ref) }],
  ["kube.update", { object: objectOf(ref) }],
  ["kube.patch", { ref, patch: { data: {} } }],
  ["kube.patch", { ref, patch: {}, type: "strategic" }],
  ["kube.patch", { ref, patch: [{ op: "remove", path: "/data" }], type: "json" }],
  ["kube.apply", { object: objectOf(ref), force: true }],
  ["kube.delete", { ref }],
  ["kube.updateStatus", { object: objectOf(ref) }],
  ["kube.patchStatus", { ref, patch: {} }],
  ["kube.setScale", { ref, replicas: 0 }],
  ["kube.subresource", { ref, name: "finalize", body: objectOf(ref), verb: "update" }],
  ...(ref.kind === "Pod" ? [["kube.evict", { ref }] satisfies [string, object]] : []),
  ...(ref.kind === "StatefulSet" ? [["kube.restart", { ref }] satisfies [string, object]] : []),
];

const refusal = {
  type: "ForbiddenError",
  status: 403,
  reason: "Forbidden",
  message: expect.stringMatching(/^WF_ACCESS_OWN_OBJECT: the runtime refuses to .+; .*reserved\.md/),
  details: { refusedBy: "runtime" },
};

export async function expectRefused(...calls: readonly (readonly [string, object])[]) {
  const { call, received } = await accessWithAll();
  for (const [operation, args] of calls) {
    const reply = await call(operation, args);
    expect([operation, args, reply.ok ? reply : reply.error]).toEqual([operation, args, refusal]);
  }
  expect(received).toEqual([]);
}

export async function expectSent(...calls: readonly (readonly [string, object])[]) {
  const { call, received } = await accessWithAll();
  for (const [operation, args] of calls) {
    expect([args, await call(operation, args)]).toMatchObject([args, { ok: true }]);
  }
  expect(received).toHaveLength(calls.length);
}

export const configMap = (name: string, metadata: object = {}, namespace = home) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace, uid: "u", ...metadata },
});
export const notes = at("v1", "ConfigMap", "notes", home);
export const elsewhere = at("v1", "ConfigMap", "notes", "team-a");
export const labels = labelsOf(account, home);
