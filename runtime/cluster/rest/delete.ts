import { isFields, type KubeObject, timestamp } from "../api/object.ts";
import {
  badRequest,
  conflict,
  deleted as deletedStatus,
  fault,
  forbidden,
  invalid,
  notFound,
  type Status,
} from "../api/status.ts";
import { isNumber } from "../exact-json.ts";
import { keyOf } from "../kinds/resource-type.ts";
import { Revision } from "../storage/revision.ts";
import { type Call, callKey } from "./call.ts";
import { selected } from "./list.ts";
import type { ListOptions } from "./list-options.ts";

/** Handling of an object's dependents when it is deleted. */
type Propagation = "Orphan" | "Background" | "Foreground";

/** metav1.DeleteOptions, checked. */
interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: Propagation;
  /** True if the client used the deprecated orphanDependents=false. A deletion in progress then answers 202. */
  answers202: boolean;
  uid?: string;
  resourceVersion?: string;
}

/** The finalizers by which the garbage collector delays a deletion. */
export const orphanFinalizer = "orphan";
export const foregroundFinalizer = "foregroundDeletion";

/** Reads the options from the body, or from the query if there is no body. Throws 400 or 422. */
export function deleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  const given = isFields(body) ? body : fromQuery(query);
  const { propagationPolicy, orphanDependents, gracePeriodSeconds } = given;
  if (propagationPolicy !== undefined && orphanDependents !== undefined)
    throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", [
      fault.invalid(
        "propagationPolicy",
        propagationPolicy,
        "orphanDependents and deletionPropagation cannot be both set",
      ),
    ]);
  const policies = ["Foreground", "Background", "Orphan"];
  if (propagationPolicy !== undefined && !policies.includes(String(propagationPolicy)))
    throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", [
      fault.unsupported("propagationPolicy", propagationPolicy, [...policies, "nil"]),
    ]);
  if (gracePeriodSeconds !== undefined && !isNumber(gracePeriodSeconds))
    throw badRequest("gracePeriodSeconds must be a number");
  const preconditions = isFields(given.preconditions) ? given.preconditions : {};
  const policy = (propagationPolicy ??
    (typeof orphanDependents === "boolean" ? (orphanDependents ? "Orphan" : "Background") : undefined)) as
    | Propagation
    | undefined;
  return {
    answers202: orphanDependents === false,
    ...(policy ? { propagationPolicy: policy } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: Number(gracePeriodSeconds) }),
    ...(typeof preconditions.uid === "string" ? { uid: preconditions.uid } : {}),
    ...(typeof preconditions.resourceVersion === "string" ? { resourceVersion: preconditions.resourceVersion } : {}),
  };
}

function fromQuery(query: URLSearchParams): Record<string, unknown> {
  const grace = query.get("gracePeriodSeconds");
  const policy = query.get("propagationPolicy");
  const orphan = query.get("orphanDependents");
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: orphan === "true" }),
  };
}

/** The outcome of a deletion: the current object, and whether it is gone. */
interface Deleted {
  revision: Revision;
  gone: boolean;
}

/** Namespaces that every cluster needs and that cannot be deleted. */
const immortal = new Set(["default", "kube-system", "kube-public"]);

/** Deletes one object, or marks it for deletion if finalizers or a grace period delay it. Throws 404 or 409. */
export function remove(call: Call, options: DeleteOptions): Deleted {
  const { type, backend } = call;
  const existing = backend.store.get(type.storage, callKey(call));
  if (!existing) throw notFound(type, call.name);
  if (type.storage === "namespaces" && immortal.has(call.name))
    throw forbidden(type, call.name, "this namespace may not be deleted");
  const { metadata } = existing.object;
  // The conflict of a failed precondition names the kind; other conflicts name the resource.
  const kindAsNamed = { group: type.group, plural: type.kind };
  if (options.uid !== undefined && options.uid !== metadata.uid)
    throw conflict(
      kindAsNamed,
      call.name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  if (options.resourceVersion !== undefined && options.resourceVersion !== metadata.resourceVersion)
    throw conflict(
      kindAsNamed,
      call.name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
  const marked = mark(call, existing.object, options);
  if (!marked) {
    if (call.dryRun) return { revision: existing, gone: true };
    const gone = backend.store.delete(type.storage, callKey(call));
    return { revision: gone ?? existing, gone: true };
  }
  if (marked === existing.object) return { revision: existing, gone: false };
  if (call.dryRun) return { revision: new Revision(existing.revision, marked), gone: false };
  return { revision: backend.store.put(type.storage, callKey(call), marked), gone: false };
}

/** Returns the object marked for deletion; `undefined` if nothing delays the deletion. */
function mark(call: Call, object: KubeObject, options: DeleteOptions): KubeObject | undefined {
  const { type, backend } = call;
  const { metadata } = object;
  const finalizers = withPropagation(metadata.finalizers ?? [], options.propagationPolicy);
  const grace = type.grace ? Math.max(0, options.gracePeriodSeconds ?? type.grace(object)) : 0;
  const graceSeconds = type.grace?.(object) === 0 ? 0 : grace;
  if (type.storage === customResourceDefinitions && !finalizers.includes(cleanupFinalizer))
    finalizers.push(cleanupFinalizer);
  const held = finalizers.length > 0 || type.storage === "namespaces";
  if (!held && graceSeconds === 0) return undefined;
  const waits = metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY;
  const sooner = metadata.deletionTimestamp === undefined || graceSeconds < waits;
  if (!sooner && finalizers.length === (metadata.finalizers ?? []).length) return object;
  const marked: KubeObject = {
    ...object,
    metadata: {
      ...metadata,
      ...(finalizers.length > 0 ? { finalizers } : {}),
      ...(sooner
        ? {
            deletionTimestamp: timestamp(backend.clock.now() + graceSeconds * 1000),
            deletionGracePeriodSeconds: graceSeconds,
          }
        : {}),
      ...(metadata.generation !== undefined && sooner && type.storage !== customResourceDefinitions
        ? { generation: metadata.generation + 1 }
        : {}),
    },
  };
  if (type.storage !== "namespaces") return marked;
  const { deletionGracePeriodSeconds: _, ...rest } = marked.metadata;
  return {
    ...marked,
    metadata: rest,
    status: { ...(isFields(marked.status) ? marked.status : {}), phase: "Terminating" },
  };
}

const customResourceDefinitions = "customresourcedefinitions.apiextensions.k8s.io";
/** Finalizer that keeps a CRD until its objects are deleted. */
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

function withPropagation(finalizers: readonly string[], policy: Propagation | undefined): string[] {
  if (policy === undefined) return [...finalizers];
  const others = finalizers.filter((one) => one !== orphanFinalizer && one !== foregroundFinalizer);
  if (policy === "Orphan") return [...others, orphanFinalizer];
  return policy === "Foreground" ? [...others, foregroundFinalizer] : others;
}

/** The answer to a DELETE: the object if it still exists or its kind has `returnsDeleted`, else a Status. */
export function deletionAnswer(call: Call, { revision, gone }: Deleted): Revision | Status {
  if (!gone || call.type.returnsDeleted) return revision;
  return deletedStatus(call.type, call.name, revision.object.metadata.uid);
}

/** Deletes every object that the selectors match. Returns the objects before their deletion. */
export function removeAll(call: Call, list: ListOptions, options: DeleteOptions): Revision[] {
  const { type, backend } = call;
  const prefix = call.namespace === "" ? "" : `${call.namespace}/`;
  const targets = [...backend.store.collection(type.storage).current(prefix)].filter(([, entry]) =>
    selected(entry, list),
  );
  const removed: Revision[] = [];
  for (const [, entry] of targets) {
    const { name = "", namespace = "" } = entry.object.metadata;
    if (!backend.store.get(type.storage, keyOf(namespace, name))) continue;
    removed.push(remove({ ...call, name, namespace }, options).revision);
  }
  return removed;
}
