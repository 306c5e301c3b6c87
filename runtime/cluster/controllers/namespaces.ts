import { isFields, type KubeObject, timestamp } from "../api/object.ts";
import type { Backend } from "../rest/call.ts";
import { create } from "../rest/create.ts";
import { remove } from "../rest/delete.ts";
import { internalCall } from "../rest/internal-call.ts";

const accounts = "serviceaccounts";
const configMaps = "configmaps";
/** The ConfigMap with the CA by which pods trust the API server. */
const rootCa = "kube-root-ca.crt";

/** Creates the ServiceAccount and CA ConfigMap of each namespace, and empties namespaces in deletion. */
export class Namespaces {
  private readonly backend: Backend;
  private readonly ca: string;

  /** `ca` is the cluster's CA certificate, PEM. */
  constructor(backend: Backend, ca: string) {
    this.backend = backend;
    this.ca = ca;
  }

  reconcile(name: string): void {
    const namespace = this.backend.store.get("namespaces", name)?.object;
    if (!namespace) return;
    if (namespace.metadata.deletionTimestamp) this.terminate(name, namespace);
    else this.furnish(name);
  }

  private furnish(namespace: string): void {
    const { store } = this.backend;
    if (!store.get(accounts, `${namespace}/default`))
      this.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace } });
    if (!store.get(configMaps, `${namespace}/${rootCa}`))
      this.create({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name: rootCa,
          namespace,
          annotations: {
            "kubernetes.io/description":
              "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
          },
        },
        data: { "ca.crt": this.ca },
      });
  }

  private create(object: KubeObject): void {
    const call = internalCall(this.backend, object);
    if (call) create({ ...call, name: "", manager: "kube-controller-manager" }, object);
  }

  /** Deletes the objects in the namespace, and once it is empty the namespace itself. */
  private terminate(name: string, namespace: KubeObject): void {
    const { store, registry } = this.backend;
    let left = 0;
    for (const type of registry.stored()) {
      if (!type.namespaced) continue;
      for (const [, { object }] of [...store.collection(type.storage).current(`${name}/`)]) {
        const call = internalCall(this.backend, {
          ...object,
          apiVersion: type.group === "" ? type.version : `${type.group}/${type.version}`,
        });
        if (!call) continue;
        if (!object.metadata.deletionTimestamp)
          remove(call, { answers202: false, gracePeriodSeconds: 0, propagationPolicy: "Background" });
        if (store.get(type.storage, `${name}/${object.metadata.name}`)) left++;
      }
    }
    if (left > 0) {
      this.report(name, namespace, left);
      return;
    }
    const spec = isFields(namespace.spec) ? namespace.spec : {};
    const finalizers = (Array.isArray(spec.finalizers) ? spec.finalizers : []).filter((one) => one !== "kubernetes");
    const own = namespace.metadata.finalizers ?? [];
    if (finalizers.length === 0 && own.length === 0) store.delete("namespaces", name);
    else if (spec.finalizers && finalizers.length !== (spec.finalizers as unknown[]).length)
      store.put("namespaces", name, { ...namespace, spec: { ...spec, finalizers } });
  }

  /** Reports in the status why the namespace is not deleted yet. */
  private report(name: string, namespace: KubeObject, left: number): void {
    const status = isFields(namespace.status) ? namespace.status : {};
    const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isFields) : [];
    const type = "NamespaceFinalizersRemaining";
    const message = `Some content in the namespace has finalizers remaining: ${left} object(s)`;
    if (conditions.some((one) => one.type === type && one.message === message)) return;
    const condition = {
      type,
      status: "True",
      reason: "SomeFinalizersRemain",
      message,
      lastTransitionTime: timestamp(this.backend.clock.now()),
    };
    const others = conditions.filter((one) => one.type !== type);
    this.backend.store.put("namespaces", name, {
      ...namespace,
      status: { ...status, conditions: [...others, condition] },
    });
  }
}
