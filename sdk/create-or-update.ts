import { AlreadyExistsError } from "./errors.ts";
import type { ObjectOf, Stored, Writable, Written } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject } from "./object.ts";
import { controllerOf } from "./owner.ts";
import { getOrUndefined } from "./reading.ts";

/** Result of creating or updating an object. */
export interface Kept<T> {
  readonly object: Stored<T>;
  readonly change: "created" | "updated" | "unchanged";
}

/**
 * Creates an object or updates it to its desired state, by server-side apply. Sets the fields in `wanted`, removes those that an
 * earlier call set and this one does not, and keeps fields of others. Takes over fields in `wanted` that others have set. Needs
 * `get`, `patch`, and `create` if it creates.
 *
 * @param wanted all the fields that the function manages, with apiVersion, kind and name
 * @throws AlreadyExistsError if `wanted` has a controller among its owners, and an existing object of that name has another one
 */
export function createOrUpdate<T extends KubeObject = never>(
  kube: Kube,
  wanted: NoInfer<Writable<T>>,
): Promise<Kept<T>>;
export function createOrUpdate<A extends string, K extends string>(
  kube: Kube,
  wanted: Written<A, K>,
): Promise<Kept<ObjectOf<A, K>>>;
export async function createOrUpdate(kube: Kube, wanted: KubeObject): Promise<Kept<KubeObject>> {
  const { apiVersion, kind, metadata: { name, namespace } = {} } = wanted;
  if (!apiVersion || !kind || !name) throw new TypeError("createOrUpdate needs apiVersion, kind and metadata.name");
  const before = await getOrUndefined(kube, { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) });
  const controller = controllerOf(wanted);
  if (before && controller && controllerOf(before)?.uid !== controller.uid) {
    const owner = controllerOf(before);
    const whose = owner ? `${owner.kind} ${owner.name} controls it` : "no one controls it";
    throw new AlreadyExistsError(
      `${kind} ${name} is there, and ${whose}: it is not taken from there to ${controller.kind} ${controller.name}`,
      { status: 409, reason: "AlreadyExists" },
    );
  }
  const object = await kube.apply<KubeObject>(wanted, { force: true });
  if (!before) return { object, change: "created" };
  const isSame = object.metadata.resourceVersion === before.metadata.resourceVersion;
  return { object, change: isSame ? "unchanged" : "updated" };
}
