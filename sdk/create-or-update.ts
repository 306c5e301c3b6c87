import { AlreadyExistsError } from "./errors.ts";
import type { ObjectOf, Stored, Writable, Written } from "./kinds.ts";
import type { Kube, Ref } from "./kube.ts";
import type { KubeObject } from "./object.ts";
import { controllerOf } from "./owner.ts";
import { getOrUndefined } from "./reading.ts";

/** Result of creating or updating an object. */
export interface Kept<T> {
  readonly object: Stored<T>;
  readonly change: "created" | "updated" | "unchanged";
}

/** `ctx.cache` of a function whose `reads` names the kind. */
interface KeptObjects {
  get(ref: never): unknown;
}

/**
 * Creates an object or updates it to its desired state, by server-side apply. Sets the fields in `wanted`, removes those that an
 * earlier call set and this one does not, and keeps fields of others. Takes over fields in `wanted` that others have set. Needs
 * `get`, `patch`, and `create` if it creates.
 *
 * @param wanted all the fields that the function manages, with apiVersion, kind and name
 * @param cache `ctx.cache`: reads the object from there, and sends nothing if the function's last write of it was the same and
 *   nothing has changed it since, as `skipUnchanged` of `kube.apply`. The manifest's `reads` must name the kind, and a trigger
 *   should run the function when such an object changes. Default: two requests
 * @throws AlreadyExistsError if `wanted` has a controller among its owners, and an existing object of that name has another one
 */
export function createOrUpdate<T extends KubeObject = never>(
  kube: Kube,
  wanted: NoInfer<Writable<T>>,
  cache?: KeptObjects,
): Promise<Kept<T>>;
export function createOrUpdate<A extends string, K extends string>(
  kube: Kube,
  wanted: Written<A, K>,
  cache?: KeptObjects,
): Promise<Kept<ObjectOf<A, K>>>;
export async function createOrUpdate(kube: Kube, wanted: KubeObject, cache?: KeptObjects): Promise<Kept<KubeObject>> {
  const { apiVersion, kind, metadata: { name, namespace } = {} } = wanted;
  if (!apiVersion || !kind || !name) throw new TypeError("createOrUpdate needs apiVersion, kind and metadata.name");
  const ref: Ref = { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) };
  // The read may leave out an object that somebody else controls.
  const before = (cache?.get(ref as never) as Stored<KubeObject> | undefined) ?? (await getOrUndefined(kube, ref));
  const controller = controllerOf(wanted);
  if (before && controller && controllerOf(before)?.uid !== controller.uid) {
    const owner = controllerOf(before);
    const whose = owner ? `${owner.kind} ${owner.name} controls it` : "no one controls it";
    throw new AlreadyExistsError(
      `${kind} ${name} is there, and ${whose}: it is not taken from there to ${controller.kind} ${controller.name}`,
      { status: 409, reason: "AlreadyExists" },
    );
  }
  const object = await kube.apply<KubeObject>(wanted, { force: true, ...(cache && { skipUnchanged: true }) });
  if (!before) return { object, change: "created" };
  const isSame = object.metadata.resourceVersion === before.metadata.resourceVersion;
  return { object, change: isSame ? "unchanged" : "updated" };
}
