import type { Condition, KubeObject } from "@watchfire/sdk";
import {
  AlreadyExistsError,
  createOrUpdate,
  defineReconciler,
  ensureFinalizer,
  getOrUndefined,
  NotFoundError,
  ownerReference,
  removeFinalizer,
  requeueAfter,
  setCondition,
} from "@watchfire/sdk";

/** As defined in crd.yaml. */
interface MyApp extends KubeObject {
  spec: { appName: string; version: string; replicas?: number };
  status?: { observedGeneration?: number; replicas?: number; conditions?: readonly Condition[] };
}
const finalizer = "my.domain/config-map";
/** Converts one kind of error to `undefined`. */
const noneOn = (type: typeof NotFoundError) => (error: unknown) => {
  if (!(error instanceof type)) throw error;
};

export default defineReconciler<MyApp>(async ({ key, object, causes }, { kube, events, log }) => {
  if (!object) return;
  const config = { apiVersion: "v1", kind: "ConfigMap", ...key } as const;
  if (object.metadata.deletionTimestamp) {
    const { uid, ownerReferences = [] } = (await getOrUndefined(kube, config))?.metadata ?? {};
    const isOurs = ownerReferences.some((owner) => owner.controller && owner.uid === object.metadata.uid);
    if (isOurs) await kube.delete(config, { preconditions: { uid } });
    await removeFinalizer(kube, object, finalizer);
    return;
  }
  const app = await ensureFinalizer(kube, object, finalizer).catch(noneOn(NotFoundError));
  if (!app) return requeueAfter("1s"); // it was there a moment ago: whether it is gone is known by then
  const { appName, version, replicas = 1 } = app.spec;
  const labels = { "app.kubernetes.io/managed-by": "myapp-controller" };
  const metadata = { ...key, labels, ownerReferences: [ownerReference(app)] };
  const data = { appName, version, replicas: String(replicas) };
  const wanted = { apiVersion: "v1", kind: "ConfigMap", metadata, data } as const;
  const kept = await createOrUpdate(kube, wanted).catch(noneOn(AlreadyExistsError));
  const [status, reason] = kept ? (["True", "ConfigMapKept"] as const) : (["False", "NameTaken"] as const);
  const how = kept ? "is as it should be" : "belongs to someone else; delete it, or rename this MyApp";
  const finding = { status, reason, message: `ConfigMap ${key.name} ${how}` };
  const observedGeneration = app.metadata.generation;
  const conditions = setCondition(app.status?.conditions, { type: "Ready", ...finding, observedGeneration });
  if (conditions !== app.status?.conditions || replicas !== app.status.replicas) {
    const ref = { apiVersion: "my.domain/v1", kind: "MyApp", ...key };
    const patch = { status: { observedGeneration, replicas, conditions } };
    const stored = await kube.patchStatus<MyApp>(ref, patch).catch(noneOn(NotFoundError));
    const message = `CRD myapps.my.domain has no ${stored ? "schema for `status`" : "status subresource"}; add one to its version`;
    if (!stored?.status?.conditions) await events.emit(app, { type: "Warning", reason: "StatusMissing", message });
    if (!kept) await events.emit(app, { type: "Warning", ...finding });
  }
  log.info("reconciled", { reason, generation: observedGeneration, causes });
  return kept ? undefined : requeueAfter("10s"); // the name may become free
});
