import { ConflictError, NotFoundError } from "./errors.ts";
import type { Stored } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject } from "./object.ts";
import { getOrUndefined } from "./reading.ts";

/** Write attempts of one call when others write the object as well, as in `retryOnConflict`. */
const attempts = 5;

/**
 * Adds a finalizer to an object, so that a delete waits until `removeFinalizer` is called. Writes nothing if the object has the
 * finalizer, or is being deleted: Kubernetes accepts no new finalizer then. Needs `patch`, and `get` if others write the object
 * at the same time.
 *
 * @param object as returned by the cluster
 * @param finalizer a qualified name: `shop.example/cleanup`
 * @returns the resulting object
 * @throws NotFoundError if the object is gone
 */
export async function ensureFinalizer<T extends KubeObject>(
  kube: Kube,
  object: Stored<T>,
  finalizer: string,
): Promise<Stored<T>> {
  const changed = await change(kube, object, ({ metadata: { finalizers = [], deletionTimestamp } }) =>
    deletionTimestamp !== undefined || finalizers.includes(finalizer) ? undefined : [...finalizers, finalizer],
  );
  if (!changed) throw new NotFoundError(`${object.kind} ${object.metadata.name} is gone`, { status: 404 });
  return changed;
}

/**
 * Removes a finalizer from an object; a deleted object disappears with its last one. Writes nothing if the object lacks it, or is
 * gone. Needs `patch`, and `get` if others write the object at the same time.
 *
 * @returns the resulting object; undefined if it is gone
 */
export async function removeFinalizer<T extends KubeObject>(
  kube: Kube,
  object: Stored<T>,
  finalizer: string,
): Promise<Stored<T> | undefined> {
  return change(kube, object, ({ metadata: { finalizers = [] } }) =>
    finalizers.includes(finalizer) ? finalizers.filter((each) => each !== finalizer) : undefined,
  );
}

type Finalized = { readonly metadata: { readonly finalizers?: string[]; readonly deletionTimestamp?: string } };

/** Writes the finalizers that `next` returns; `undefined`: no write. The resourceVersion protects others' finalizers. */
async function change<T extends KubeObject>(
  kube: Kube,
  object: Stored<T>,
  next: (object: Finalized) => string[] | undefined,
): Promise<Stored<T> | undefined> {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid } = metadata;
  const ref = { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) };
  let current: Stored<T> | undefined = object;
  for (let attempt = 1; ; attempt++) {
    // A later object with the same name is a different one.
    if (!current || current.metadata.uid !== uid) return undefined;
    const finalizers = next(current);
    if (!finalizers) return current;
    const { resourceVersion } = current.metadata;
    try {
      return await kube.patch<T>(ref, { metadata: { uid, resourceVersion, finalizers } });
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      if (!(error instanceof ConflictError) || attempt === attempts) throw error;
    }
    current = await getOrUndefined<T>(kube, ref);
  }
}
