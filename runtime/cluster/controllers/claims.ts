import { fieldsOf, isFields, type KubeObject } from "../api/object.ts";
import { claimFinalizer } from "../kinds/traits/claim-faults.ts";
import type { Backend } from "../rest/call.ts";

/** The collections of claims and of the pods that use them. */
export const claimCollection = "persistentvolumeclaims";
export const podCollection = "pods";

/** Removes the finalizer of PersistentVolumeClaims in deletion, once no pod uses them. */
export class Claims {
  private readonly backend: Backend;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  /** Reconciles the claims of one namespace. */
  reconcile(namespace: string): void {
    const { store } = this.backend;
    const leaving = [...store.collection(claimCollection).current(`${namespace}/`)].filter(
      ([, { object }]) => object.metadata.deletionTimestamp && object.metadata.finalizers?.includes(claimFinalizer),
    );
    if (leaving.length === 0) return;
    const inUse = new Set(
      [...store.collection(podCollection).current(`${namespace}/`)].flatMap(([, { object }]) => claimsOf(object)),
    );
    for (const [key, { object }] of leaving) {
      if (inUse.has(object.metadata.name ?? "")) continue;
      const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== claimFinalizer);
      if (finalizers.length === 0) store.delete(claimCollection, key);
      else store.put(claimCollection, key, { ...object, metadata: { ...object.metadata, finalizers } });
    }
  }
}

function claimsOf(pod: KubeObject): string[] {
  const { volumes } = fieldsOf(pod.spec);
  return (Array.isArray(volumes) ? volumes : []).flatMap((volume) => {
    const claim = fieldsOf(volume).persistentVolumeClaim;
    return isFields(claim) ? [String(claim.claimName)] : [];
  });
}
