import { ConflictError, NotFoundError } from "./errors.ts";
import type { Stored } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject } from "./object.ts";
import { getOrUndefined } from "./reading.ts";

/** Writes of one call, when others write the object as well: as many as `retryOnConflict` makes. */
const attempts = 5;

/**
 * Sees to it that an object has a finalizer, so that a delete waits until `removeFinalizer` takes it away. Writes nothing
 * where the object has it, and where it is being deleted: Kubernetes takes no new finalizer then. Needs `patch`, and `get`
 * where others write the object at the same time.
 *
 * @param object as the cluster gave it
 * @param finalizer a qualified name: `shop.example/cleanup`
 * @returns the object as it is then
 * @throws NotFoundError where the object is gone
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
 * Takes a finalizer off an object; a deleted object goes with its last one. Writes nothing where the object lacks it, or is
 * gone. Needs `patch`, and `get` where others write the object at the same time.
 *
 * @returns the object as it is then; undefined where it is gone
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

/** Writes the finalizers that `next` gives; undefined: nothing to write. The version keeps others' finalizers in place. */
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
    // An object of the same name that came after this one is another's.
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
