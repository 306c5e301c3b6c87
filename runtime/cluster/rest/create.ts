import { randomBytes, randomUUID } from "node:crypto";
import { type KubeObject, type ObjectMeta, timestamp } from "../api/object.ts";
import { ApiError, alreadyExists } from "../api/status.ts";
import { keyOf, present } from "../kinds/resource-type.ts";
import { asJson, asObject, defaulted } from "../kinds/shape.ts";
import { Revision } from "../storage/revision.ts";
import { admitDefinition, admitIdentity, admitNamespace, admitObject, withManagedFields } from "./admission.ts";
import type { Call } from "./call.ts";
import { admitOverhead, admitPod } from "./pod-admission.ts";

/**
 * Letters of a generated name's suffix. There are no vowels, so the suffix forms no words (apimachinery `util/rand`).
 */
const letters = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;
/** Maximum length of a generated name's prefix, which leaves room for the suffix. */
const generatedLimit = 63 - suffixLength;

/** Stores a new object. The body's unknown fields are already dropped. Throws 4xx. */
export function create(call: Call, body: KubeObject): Revision {
  const object = prepareNew(call, body);
  return store(call, withManagedFields(call, object, undefined));
}

/** Prepares a new object for storage, except for its managedFields. Throws 4xx. */
export function prepareNew(call: Call, body: KubeObject): KubeObject {
  const { type, backend } = call;
  if (body.metadata.resourceVersion)
    throw new ApiError(500, "", "resourceVersion should not be set on objects to be created");
  const identified = admitIdentity(call, body);
  const name = identified.metadata.name || generatedName(identified.metadata.generateName);
  admitNamespace(call, name);
  admitDefinition(call, name);
  const metadata: ObjectMeta = {
    ...identified.metadata,
    ...(name === "" ? {} : { name }),
    uid: randomUUID(),
    creationTimestamp: timestamp(backend.clock.now()),
  };
  for (const field of [
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
  ] as const)
    delete metadata[field];
  if (type.generation || type.custom) metadata.generation = 1;
  const fresh: KubeObject = { ...identified, metadata };
  if (type.status) delete fresh.status;
  const stored = type.toStorage ? type.toStorage(fresh) : fresh;
  const object = admitPod(call, defaulted(type, stored, undefined));
  admitObject(call, object, undefined);
  admitOverhead(call, object);
  backend.admit(call, object);
  // A POST names no object in its path, and is authorized already.
  if (call.name !== "") backend.admitNew(call);
  if (type.warn) call.warnings.push(...type.warn(object));
  return object;
}

/** Stores a prepared new object. Throws a 409 if the name is taken. */
export function store(call: Call, object: KubeObject): Revision {
  const { type, backend, dryRun } = call;
  const name = object.metadata.name ?? "";
  const key = keyOf(call.namespace, name);
  if (backend.store.get(type.storage, key)) throw alreadyExists(type, name);
  if (dryRun) return new Revision(0, object);
  return backend.store.put(type.storage, key, object);
}

function generatedName(prefix: string | undefined): string {
  if (!prefix) return "";
  const suffix = [...randomBytes(suffixLength)].map((byte) => letters[byte % letters.length]).join("");
  return prefix.slice(0, generatedLimit) + suffix;
}

/** Converts a stored object to the served JSON form, on which patches work. */
export function seen(call: Call, object: KubeObject) {
  return asJson(present(call.type, object));
}

/** Converts a patched object back to the stored form. */
export function kept(call: Call, patched: ReturnType<typeof asJson>): KubeObject {
  const object = asObject(patched);
  return call.type.toStorage ? call.type.toStorage(object) : object;
}
