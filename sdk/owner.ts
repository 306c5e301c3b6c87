import type { KubeObject, OwnerReference } from "./object.ts";

/**
 * A reference to an object's owner, for `metadata.ownerReferences` of what it owns: when the last owner is gone, Kubernetes
 * deletes the object. An owner lies in the same namespace, or is cluster-scoped.
 *
 * @param owner as the cluster gave it: with apiVersion, kind, name and uid
 * @param options `controller`: it manages the object, as one owner at most does; default true
 * @throws TypeError where the owner does not say one of the four
 */
export function ownerReference(owner: KubeObject, { controller = true } = {}): OwnerReference {
  const { apiVersion, kind, metadata: { name, uid } = {} } = owner;
  if (!apiVersion || !kind || !name || !uid) {
    const missing = Object.entries({ apiVersion, kind, "metadata.name": name, "metadata.uid": uid })
      .filter(([, value]) => !value)
      .map(([field]) => field);
    throw new TypeError(`an owner needs ${missing.join(", ")}; take the object that the cluster gave`);
  }
  return { apiVersion, kind, name, uid, ...(controller && { controller }) };
}

/** The owner that manages an object; undefined where it has none. */
export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata?.ownerReferences?.find(({ controller }) => controller);
