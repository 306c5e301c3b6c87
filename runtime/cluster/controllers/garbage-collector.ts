import { groupVersion, type KubeObject, type OwnerReference } from "../api/object.ts";
import { keyOf } from "../kinds/resource-type.ts";
import type { Backend } from "../rest/call.ts";
import { foregroundFinalizer, orphanFinalizer, remove } from "../rest/delete.ts";
import { internalCall } from "../rest/internal-call.ts";
import type { Change } from "../storage/change.ts";
import type { Collection } from "../storage/collection.ts";

/** An object's storage location, its collection and key, as one text. */
type Place = string;
const place = (collection: string, key: string): Place => `${collection} ${key}`;

/** Deletes objects whose owners are gone, and completes the deletion of owners by their propagation policy. */
export class GarbageCollector {
  private readonly backend: Backend;
  /** The locations of the dependents, by their owner's uid. */
  private readonly dependents = new Map<string, Set<Place>>();
  private readonly keepOrphans: boolean;
  private readonly enqueue: (place: Place) => void;

  /**
   * @param keepOrphans keeps a written object whose owners do not exist; without effect on dependents of an owner that is deleted
   * @param enqueue schedules a later call of `reconcile` with the location
   */
  constructor(backend: Backend, keepOrphans: boolean, enqueue: (place: Place) => void) {
    this.backend = backend;
    this.keepOrphans = keepOrphans;
    this.enqueue = enqueue;
    for (const collection of backend.store.all())
      for (const [key, { object }] of collection.current("")) this.index(place(collection.id, key), undefined, object);
  }

  /** Updates the index of dependents after a write, and enqueues the objects it affects. */
  observe(collection: Collection, { key, previous, current }: Change): void {
    const where = place(collection.id, key);
    this.index(where, previous?.object, current?.object);
    if (current) {
      const { ownerReferences, deletionTimestamp } = current.object.metadata;
      if ((ownerReferences?.length && !this.keepOrphans) || deletionTimestamp) this.enqueue(where);
      return;
    }
    for (const dependent of this.dependents.get(previous?.object.metadata.uid ?? "") ?? []) this.enqueue(dependent);
    // An owner in foreground deletion may have been waiting for this object.
    for (const { apiVersion, kind, name } of previous?.object.metadata.ownerReferences ?? []) {
      const owner = this.locate(apiVersion, kind, previous?.object.metadata.namespace, name);
      if (owner) this.enqueue(place(owner.collection, owner.key));
    }
  }

  /** Decides whether one object is deleted, released or kept. */
  reconcile(where: Place): void {
    const [collection = "", key = ""] = where.split(" ");
    const object = this.backend.store.get(collection, key)?.object;
    if (!object) return;
    const { metadata } = object;
    if (metadata.deletionTimestamp) {
      if (metadata.finalizers?.includes(orphanFinalizer)) this.orphan(collection, key, object);
      else if (metadata.finalizers?.includes(foregroundFinalizer)) this.foreground(collection, key, object);
    } else if (metadata.ownerReferences?.length) this.judge(object);
  }

  /**
   * Deletes a dependent when all its owners are gone, or when the remaining owners wait for it in foreground deletion.
   */
  private judge(object: KubeObject): void {
    const { ownerReferences = [], namespace } = object.metadata;
    let waiting = false;
    const solid: OwnerReference[] = [];
    for (const reference of ownerReferences) {
      const { apiVersion, kind, name, uid } = reference;
      const owner = this.locate(apiVersion, kind, namespace, name);
      if (owner === undefined) return;
      const found = this.backend.store.get(owner.collection, owner.key)?.object;
      if (found?.metadata.uid !== uid) continue;
      const leaving = found.metadata.deletionTimestamp && found.metadata.finalizers?.includes(foregroundFinalizer);
      if (leaving) waiting = true;
      else solid.push(reference);
    }
    if (solid.length === 0) this.remove(object, waiting ? "Foreground" : "Background");
    else if (solid.length < ownerReferences.length) this.keepOnly(object, solid);
  }

  /** Removes the references to owners that are gone or being deleted. */
  private keepOnly(object: KubeObject, ownerReferences: OwnerReference[]): void {
    const type = internalCall(this.backend, object)?.type;
    if (!type) return;
    const { namespace, name = "" } = object.metadata;
    this.backend.store.put(type.storage, keyOf(namespace, name), {
      ...object,
      metadata: { ...object.metadata, ownerReferences },
    });
  }

  private orphan(collection: string, key: string, owner: KubeObject): void {
    const uid = owner.metadata.uid ?? "";
    for (const where of [...(this.dependents.get(uid) ?? [])]) {
      const [own = "", ownKey = ""] = where.split(" ");
      const object = this.backend.store.get(own, ownKey)?.object;
      if (!object) continue;
      const { ownerReferences, ...metadata } = object.metadata;
      const left = (ownerReferences ?? []).filter((one) => one.uid !== uid);
      this.backend.store.put(own, ownKey, {
        ...object,
        metadata: left.length > 0 ? { ...metadata, ownerReferences: left } : metadata,
      });
    }
    this.release(collection, key, owner, orphanFinalizer);
  }

  private foreground(collection: string, key: string, owner: KubeObject): void {
    const uid = owner.metadata.uid ?? "";
    let blocking = 0;
    for (const where of [...(this.dependents.get(uid) ?? [])]) {
      const [own = "", ownKey = ""] = where.split(" ");
      const object = this.backend.store.get(own, ownKey)?.object;
      if (!object) continue;
      if (!object.metadata.deletionTimestamp) this.judge(object);
      const left = this.backend.store.get(own, ownKey)?.object;
      const blocks = left?.metadata.ownerReferences?.some((one) => one.uid === uid && one.blockOwnerDeletion);
      if (blocks) blocking++;
    }
    if (blocking === 0) this.release(collection, key, owner, foregroundFinalizer);
  }

  /** Removes a finalizer from an object in deletion; removing the last one deletes the object. */
  private release(collection: string, key: string, object: KubeObject, finalizer: string): void {
    const { finalizers = [], ...metadata } = object.metadata;
    const left = finalizers.filter((one) => one !== finalizer);
    const namespaceHeld = collection === "namespaces";
    if (left.length === 0 && !namespaceHeld && !metadata.deletionGracePeriodSeconds) {
      this.backend.store.delete(collection, key);
      return;
    }
    this.backend.store.put(collection, key, {
      ...object,
      metadata: left.length > 0 ? { ...metadata, finalizers: left } : metadata,
    });
  }

  private remove(object: KubeObject, propagationPolicy: "Foreground" | "Background"): void {
    const call = internalCall(this.backend, object);
    if (call)
      remove(call, {
        answers202: false,
        propagationPolicy,
        ...(object.metadata.uid ? { uid: object.metadata.uid } : {}),
      });
  }

  /** Returns the owner's location. `undefined` for a kind that is not served, whose dependents are left alone. */
  private locate(apiVersion: string, kind: string, namespace: string | undefined, name: string) {
    const { group, version } = groupVersion(apiVersion);
    const type = this.backend.registry.ofKind(group, version, kind);
    return type && { collection: type.storage, key: keyOf(type.namespaced ? namespace : undefined, name) };
  }

  private index(where: Place, before: KubeObject | undefined, after: KubeObject | undefined): void {
    const old = before?.metadata.ownerReferences;
    const fresh = after?.metadata.ownerReferences;
    if (!old && !fresh) return;
    for (const { uid } of old ?? []) {
      const places = this.dependents.get(uid);
      places?.delete(where);
      if (places?.size === 0) this.dependents.delete(uid);
    }
    for (const { uid } of fresh ?? []) {
      const places = this.dependents.get(uid) ?? new Set();
      this.dependents.set(uid, places.add(where));
    }
  }
}
