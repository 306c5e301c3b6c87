import { randomBytes } from "node:crypto";
import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../api/object.ts";
import { forbidden } from "../api/status.ts";
import type { Call } from "./call.ts";

/** The folder in which a container finds its account's token. */
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
/** Seconds that a token in a pod is valid (`defaultTokenExpiration` of the ServiceAccount plugin). */
const tokenSeconds = 3607;

/** Seconds that a pod stays on a node that is not ready or cannot be reached. */
const toleratedSeconds = 300;
const toleratedTaints = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/** Priorities that every cluster has. */
const systemPriorities: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

/**
 * Completes a new pod as the admission plugins of the real server do: the volume with its account's token, its priority, and the
 * nodes that it tolerates. Returns any other object unchanged. Throws a 403 if the pod names an account, a PriorityClass or a
 * RuntimeClass that does not exist.
 */
export function admitPod(call: Call, object: KubeObject): KubeObject {
  if (call.type.kind !== "Pod" || call.type.group !== "" || !isFields(object.spec)) return object;
  const spec = { ...object.spec };
  const refuse = (why: string) => forbidden(call.type, object.metadata.name ?? "", why);
  const stored = (collection: string, key: string) => call.backend.store.get(collection, key)?.object;
  const accountName = String(spec.serviceAccountName ?? "default");
  const account = stored("serviceaccounts", `${call.namespace}/${accountName}`);
  if (!account)
    throw refuse(
      `error looking up service account ${call.namespace}/${accountName}: serviceaccount "${accountName}" not found`,
    );
  addToken(spec, account);
  spec.tolerations = [...listOf(spec.tolerations), ...missingTolerations(listOf(spec.tolerations))];

  const className = String(spec.priorityClassName ?? "");
  const priorityClass = className === "" ? undefined : stored("priorityclasses.scheduling.k8s.io", className);
  const value = className === "" ? 0 : (priorityClass?.value ?? systemPriorities[className]);
  if (value === undefined) throw refuse(`no PriorityClass with name ${className} was found`);
  if (spec.priority !== undefined && spec.priority !== value)
    throw refuse(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
    );
  spec.priority = value;
  const preemption = priorityClass?.preemptionPolicy ?? "PreemptLowerPriority";
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== null && spec.preemptionPolicy !== preemption)
    throw refuse(
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${preemption} from the given PriorityClass name`,
    );
  spec.preemptionPolicy = preemption;

  const runtime = spec.runtimeClassName;
  if (typeof runtime !== "string") return { ...object, spec };
  const runtimeClass = stored("runtimeclasses.node.k8s.io", runtime);
  if (!runtimeClass) throw refuse(`pod rejected: RuntimeClass "${runtime}" not found`);
  const overhead = at(runtimeClass, "overhead.podFixed");
  if (!isFields(overhead)) return { ...object, spec };
  if (isFields(spec.overhead) && Object.keys(spec.overhead).length > 0 && !equal(spec.overhead, overhead))
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  spec.overhead = overhead;
  return { ...object, spec };
}

/** Refuses a valid new pod that sets an overhead which no RuntimeClass of it does. Throws a 403. */
export function admitOverhead(call: Call, object: KubeObject): void {
  if (call.type.kind !== "Pod" || call.type.group !== "") return;
  const { overhead, runtimeClassName } = fieldsOf(object.spec);
  if (!isFields(overhead) || Object.keys(overhead).length === 0) return;
  const runtimeClass = call.backend.store.get("runtimeclasses.node.k8s.io", String(runtimeClassName ?? ""))?.object;
  if (isFields(at(runtimeClass, "overhead.podFixed"))) return;
  throw forbidden(
    call.type,
    object.metadata.name ?? "",
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
  );
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Mounts the token of a pod's account, unless the pod or the account does not want that. */
function addToken(spec: Fields, account: KubeObject): void {
  const secrets = listOf(account.imagePullSecrets);
  if (listOf(spec.imagePullSecrets).length === 0 && secrets.length > 0) spec.imagePullSecrets = secrets;
  if ((spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) !== true) return;
  const name = `kube-api-access-${randomBytes(3).toString("hex").slice(0, 5)}`;
  let isMounted = false;
  const mounted = (container: unknown): unknown => {
    const own = fieldsOf(container);
    const mounts = listOf(own.volumeMounts);
    if (mounts.some((mount) => fieldsOf(mount).mountPath === tokenFolder)) return container;
    isMounted = true;
    return { ...own, volumeMounts: [...mounts, { name, readOnly: true, mountPath: tokenFolder }] };
  };
  for (const list of ["initContainers", "containers"])
    if (Array.isArray(spec[list])) spec[list] = spec[list].map(mounted);
  if (!isMounted) return;
  const namespaceFile = { path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } };
  const sources = [
    { serviceAccountToken: { expirationSeconds: tokenSeconds, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    { downwardAPI: { items: [namespaceFile] } },
  ];
  spec.volumes = [...listOf(spec.volumes), { name, projected: { sources, defaultMode: 0o644 } }];
}

/** The tolerations of nodes in trouble that a pod has not set itself. */
function missingTolerations(given: readonly unknown[]): Fields[] {
  return toleratedTaints
    .filter(
      (key) =>
        !given
          .map(fieldsOf)
          .some((one) => (!one.key || one.key === key) && (!one.effect || one.effect === "NoExecute")),
    )
    .map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: toleratedSeconds }));
}
