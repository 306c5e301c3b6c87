import type { KubeObject, OwnerReference } from "./object.ts";

/**
 * Returns a reference to an object's owner, for the `metadata.ownerReferences` of an owned object: when the last owner is gone,
 * Kubernetes deletes the object. An owner must be in the same namespace, or cluster-scoped.
 *
 * @param owner as returned by the cluster: with apiVersion, kind, name and uid
 * @param options `controller`: it manages the object, which at most one owner may do; default true
 * @throws TypeError if the owner lacks one of the four
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

/** Returns the owner that manages an object; undefined if there is no such owner. */
export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata?.ownerReferences?.find(({ controller }) => controller);
