import { equal, type KubeObject, type ObjectMeta } from "../api/object.ts";
import { conflict, fault, invalid, modified, notFound } from "../api/status.ts";
import { defaulted } from "../kinds/shape.ts";
import { Revision } from "../storage/revision.ts";
import { admitIdentity, admitObject, admitResourceVersion, withManagedFields } from "./admission.ts";
import { type Call, callKey } from "./call.ts";
import { create } from "./create.ts";

/** The outcome of an update. */
export interface Updated {
  revision: Revision;
  created: boolean;
  /** True if the write removed the last finalizer of an object in deletion, so that the object is gone. */
  deleted?: boolean;
}

/** Replaces an object by a PUT's body, which is in the stored form. Throws 4xx. */
export function update(call: Call, body: KubeObject): Updated {
  const { type, backend } = call;
  const existing = backend.store.get(type.storage, callKey(call));
  if (!existing) {
    if (!type.createOnUpdate || call.subresource !== "" || body.metadata.resourceVersion || body.metadata.uid)
      throw notFound(type, call.name);
    const metadata = { ...body.metadata, name: call.name };
    return { revision: create(call, { ...body, metadata }), created: true };
  }
  admitResourceVersion(call, body);
  const { uid } = body.metadata;
  const stored = existing.object.metadata.uid;
  if (uid && uid !== stored)
    throw conflict(
      type,
      call.name,
      `StorageError: invalid object, Code: 4, Key: /registry/${type.plural}/${callKey(call)}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored}`,
    );
  return replace(call, existing, body, withManagedFields);
}

/** Computes the managedFields of the object to store. */
type Track = (call: Call, object: KubeObject, old: KubeObject) => KubeObject;

/** Stores `body` in place of `existing`, as far as the endpoint allows a client to change it. Throws 4xx. */
export function replace(call: Call, existing: Revision, body: KubeObject, track: Track): Updated {
  const { type } = call;
  const old = existing.object;
  const { metadata } = admitIdentity(call, body);
  const fixed = (["uid", "deletionTimestamp"] as const).filter(
    (name) => metadata[name] && metadata[name] !== old.metadata[name],
  );
  if (fixed.length > 0) {
    const faults = fixed.map((name) => fault.invalid(`metadata.${name}`, metadata[name], "field is immutable"));
    throw invalid(type, call.name, faults);
  }
  if (metadata.resourceVersion && metadata.resourceVersion !== old.metadata.resourceVersion)
    throw modified(type, call.name);
  const merged = withKept(call, { ...body, metadata: keptMetadata(metadata, old.metadata) }, old);
  const object = withGeneration(call, defaulted(type, merged, old), old);
  admitObject(call, object, old);
  call.backend.admit(call, object);
  if (type.warn) call.warnings.push(...type.warn(object));
  return commit(call, existing, track(call, object, old));
}

/** Stores a new state of an object, or removes the object if its last finalizer was removed. */
export function commit(call: Call, existing: Revision, object: KubeObject): Updated {
  const { type, backend, dryRun } = call;
  if (equal(object, existing.object)) return { revision: existing, created: false };
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = object.metadata;
  const spent = type.storage === "namespaces" && hasNamespaceFinalizers(object);
  if (deletionTimestamp && !spent && finalizers.length === 0 && (deletionGracePeriodSeconds ?? 0) === 0) {
    if (dryRun) return { revision: new Revision(existing.revision, object), created: false, deleted: true };
    const gone = backend.store.delete(type.storage, callKey(call));
    return { revision: new Revision(gone?.revision ?? 0, object), created: false, deleted: true };
  }
  if (dryRun) return { revision: new Revision(existing.revision, object), created: false };
  return { revision: backend.store.put(type.storage, callKey(call), object), created: false };
}

function hasNamespaceFinalizers({ spec }: KubeObject): boolean {
  const finalizers = (spec as { finalizers?: unknown[] } | undefined)?.finalizers;
  return Array.isArray(finalizers) && finalizers.length > 0;
}

/** Restores the system fields, which a client cannot change. */
function keptMetadata(metadata: ObjectMeta, old: ObjectMeta): ObjectMeta {
  const kept: ObjectMeta = { ...metadata };
  for (const field of [
    "name",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "generateName",
    "selfLink",
  ] as const) {
    const value = old[field];
    if (value === undefined) delete kept[field];
    else (kept as Record<string, unknown>)[field] = value;
  }
  return kept;
}

/**
 * Restores what the endpoint cannot change. `/status` changes the status (and, for built-in kinds, annotations and finalizers);
 * the resource itself changes everything else.
 */
function withKept(call: Call, object: KubeObject, old: KubeObject): KubeObject {
  const { type, subresource } = call;
  if (!type.status) return object;
  if (subresource !== "status") {
    const { status: _, ...rest } = object;
    return (old.status === undefined ? rest : { ...rest, status: old.status }) as KubeObject;
  }
  const { managedFields } = object.metadata;
  const metadata = type.custom
    ? { ...old.metadata, ...(managedFields ? { managedFields } : {}) }
    : { ...object.metadata, labels: type.storage.endsWith(".apps") ? old.metadata.labels : object.metadata.labels };
  const result: KubeObject = { ...old, metadata: metadata as ObjectMeta };
  if (object.status === undefined) delete result.status;
  else result.status = object.status;
  return result;
}

/**
 * Increases metadata.generation if the write changes the desired state: everything but metadata and, if it is a separate
 * endpoint, status.
 */
function withGeneration(call: Call, object: KubeObject, old: KubeObject): KubeObject {
  const { type } = call;
  if (!type.generation && !type.custom) return object;
  const asked = ({ metadata: _, status, ...rest }: KubeObject) => (type.status ? rest : { ...rest, status });
  if (equal(asked({ ...object, apiVersion: old.apiVersion }), asked(old))) return object;
  return { ...object, metadata: { ...object.metadata, generation: (old.metadata.generation ?? 0) + 1 } };
}
