import { AlreadyExistsError } from "./errors.ts";
import type { ObjectOf, Stored, Writable, Written } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject } from "./object.ts";
import { controllerOf } from "./owner.ts";
import { getOrUndefined } from "./reading.ts";

/** An object that was brought to its wanted state. */
export interface Kept<T> {
  readonly object: Stored<T>;
  readonly change: "created" | "updated" | "unchanged";
}

/**
 * Brings one object to what it should be, by server-side apply. Fields that `wanted` names are set. Those that an
 * earlier call named and this one does not are removed, and fields of others stay. Fields that others set are taken
 * over. Needs `get`, `patch`, and `create` where it creates.
 *
 * @param wanted the fields that the function cares for, whole, with apiVersion, kind and name
 * @throws AlreadyExistsError where `wanted` has a controller among its owners, and an object of that name is not the same one's
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
