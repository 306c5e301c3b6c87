import { AlreadyExistsError, ConflictError, InvalidError, NotFoundError } from "../errors.ts";
import type { Ref, ServedKind } from "../kube.ts";
import type { KubeObject, ObjectMeta, UnknownObject } from "../object.ts";
import type { Call, Operation, Operations } from "../operations.ts";
import { matchesFields, matchesLabels } from "./selectors.ts";

type Stored = UnknownObject & { apiVersion: string; kind: string; metadata: ObjectMeta & { name: string } };
type Answers = { readonly [O in Operation]?: (args: Operations[O]["args"]) => Operations[O]["result"] };

/**
 * In-memory objects for a unit test. It enforces unique names and resourceVersions, and keeps a deleted object until its last
 * finalizer is removed. It has no schemas, defaults, owners or field managers. Apply merges; strategic and JSON patches are
 * refused, so pass your own `kube.patch` if a handler uses them. For the rest, test on `watchfire cluster`.
 */
export class MemoryCluster {
  private readonly stored = new Map<string, Stored>();
  private revision = 0;

  constructor(objects: readonly KubeObject[] = []) {
    for (const object of objects) this.put(object as Stored);
  }

  /** Copies of all objects, in order of creation. */
  get objects(): UnknownObject[] {
    return [...this.stored.values()].map((object) => structuredClone(object));
  }

  /** The newest resourceVersion. */
  get resourceVersion(): string {
    return String(this.revision);
  }

  /** Executes the operations of `ctx.kube`. */
  readonly call: Call = async (operation, args) => {
    const answer = this.answers[operation];
    if (!answer) throw new Error(`the test harness has no ${operation}`);
    return structuredClone(answer(structuredClone(args)));
  };

  private readonly answers: Answers = {
    "kube.get": ({ ref }) => this.find(ref),
    "kube.list": ({ apiVersion, kind, namespace, labelSelector = "", fieldSelector = "" }) => ({
      items: [...this.stored.values()].filter(
        (object) =>
          object.apiVersion === apiVersion &&
          object.kind === kind &&
          (namespace === undefined || object.metadata.namespace === namespace) &&
          matchesLabels(labelSelector, object.metadata.labels ?? {}) &&
          matchesFields(fieldSelector, object),
      ),
      metadata: { resourceVersion: String(this.revision) },
    }),
    "kube.create": ({ object }) => {
      const { generateName } = object.metadata ?? {};
      const name = object.metadata?.name ?? (generateName && `${generateName}${this.revision}`);
      const created = { ...object, metadata: { ...object.metadata, name } } as Stored;
      if (this.stored.has(keyOf(created)))
        throw new AlreadyExistsError(`${describe(created)} already exists`, { status: 409 });
      return this.put(created);
    },
    "kube.update": ({ object }) => {
      const { status, metadata } = this.current(object);
      return this.put({
        ...object,
        ...(status !== undefined && { status }),
        metadata: { ...object.metadata, uid: metadata.uid },
      });
    },
    "kube.updateStatus": ({ object }) =>
      this.put({ ...this.current(object), status: (object as UnknownObject).status }),
    "kube.patch": ({ ref, patch, type = "merge" }) => {
      if (type !== "merge") throw new Error(`the test harness has no ${type} patch: give kube.patch yourself`);
      const patched = merge(this.find(ref), patch) as Stored;
      this.current(patched);
      return this.put(patched);
    },
    "kube.patchStatus": ({ ref, patch }) => {
      const found = this.find(ref);
      return this.put({ ...found, status: (merge(found, patch) as UnknownObject).status });
    },
    "kube.apply": ({ object }) => this.put(merge(this.stored.get(keyOf(object as Stored)) ?? {}, object)),
    "kube.delete": ({ ref }) => this.remove(ref),
    "kube.getScale": ({ ref }) => scaleOf(this.find(ref)),
    "kube.setScale": ({ ref, replicas }) => scaleOf(this.put(merge(this.find(ref), { spec: { replicas } }))),
    "kube.restart": ({ ref }) => {
      const annotations = { "kubectl.kubernetes.io/restartedAt": new Date(this.revision * 1000).toISOString() };
      return this.put(merge(this.find(ref), { spec: { template: { metadata: { annotations } } } }));
    },
    "kube.evict": ({ ref }) => this.remove(ref),
    "kube.kinds": ({ namespace }) => this.kinds().filter(({ namespaced }) => namespaced || namespace === undefined),
    "kube.subresource": ({ ref, name, body, verb = "patch", type = "merge" }) => {
      if (verb !== "patch" || type !== "merge") {
        const what = verb === "patch" ? `${type} patch` : verb;
        throw new Error(`the test harness has no ${what} of ${name}: give kube.subresource yourself`);
      }
      return this.put(merge(this.find(ref), body));
    },
  };

  /** The kinds of the objects, with all verbs. A guess of the plural is enough here. */
  private kinds(): ServedKind[] {
    const kinds = new Map<string, ServedKind>();
    for (const { apiVersion, kind, metadata } of this.stored.values()) {
      const namespaced = metadata.namespace !== undefined;
      const verbs: ServedKind["verbs"] = ["get", "list", "create", "update", "patch", "delete"];
      kinds.set(`${apiVersion} ${kind}`, { apiVersion, kind, plural: `${kind.toLowerCase()}s`, namespaced, verbs });
    }
    return [...kinds.values()];
  }

  private remove(ref: Ref): UnknownObject {
    const found = this.find(ref);
    if (found.metadata.finalizers?.length) {
      const { deletionTimestamp = new Date(this.revision * 1000).toISOString() } = found.metadata;
      return this.put({ ...found, metadata: { ...found.metadata, deletionTimestamp } });
    }
    this.stored.delete(keyOf(found));
    return { apiVersion: "v1", kind: "Status", status: "Success" };
  }

  private find({ apiVersion, kind, name, namespace }: Ref): Stored {
    const object = { apiVersion, kind, metadata: { name, namespace } } as Stored;
    const found = this.stored.get(keyOf(object));
    if (!found) throw new NotFoundError(`${describe(object)} not found`, { status: 404, reason: "NotFound" });
    return found;
  }

  /** Returns the stored form of an object that replaces it; ConflictError if it was read before the last change. */
  private current(object: KubeObject): Stored {
    const { apiVersion = "", kind = "", metadata: { name = "", namespace, resourceVersion, uid } = {} } = object;
    const found = this.find({ apiVersion, kind, name, ...(namespace !== undefined && { namespace }) });
    const isOther = uid !== undefined && uid !== found.metadata.uid;
    if (isOther || (resourceVersion !== undefined && resourceVersion !== found.metadata.resourceVersion)) {
      throw new ConflictError(`${describe(found)} has been modified`, { status: 409, reason: "Conflict" });
    }
    return found;
  }

  private put(object: unknown): Stored {
    const stored = structuredClone(object) as Stored;
    if (!stored.apiVersion || !stored.kind || !stored.metadata?.name) {
      throw new InvalidError("an object needs apiVersion, kind and metadata.name", { status: 422, reason: "Invalid" });
    }
    const before = this.stored.get(keyOf(stored));
    // As in an API server, a write without a change does not create a version.
    if (before && isSame(unversioned(stored), unversioned(before))) return before;
    this.revision++;
    stored.metadata.uid ??= `uid-${this.revision}`;
    stored.metadata.resourceVersion = String(this.revision);
    const isOver = stored.metadata.deletionTimestamp !== undefined && !stored.metadata.finalizers?.length;
    if (isOver) this.stored.delete(keyOf(stored));
    else this.stored.set(keyOf(stored), stored);
    return stored;
  }
}

const unversioned = ({ metadata: { resourceVersion: _, ...metadata }, ...object }: Stored) => ({ ...object, metadata });

const keyOf = ({ apiVersion, kind, metadata }: Stored): string =>
  [apiVersion, kind, metadata.namespace ?? "", metadata.name].join(" ");

const describe = ({ kind, metadata: { name, namespace } }: Stored): string =>
  `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;

const scaleOf = ({ metadata, spec }: Stored) => {
  const { replicas = 1 } = (spec ?? {}) as { replicas?: number };
  return { apiVersion: "autoscaling/v1", kind: "Scale", metadata, spec: { replicas }, status: { replicas } };
};

/** Applies a JSON merge patch (RFC 7386) to a copy. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field];
    else merged[field] = merge(merged[field], value);
  }
  return merged;
}

/** Whether two values are the same JSON. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, no) => isSame(item, b[no]));
  if (!isRecord(a) || !isRecord(b)) return a === b;
  const fields = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...fields].every((field) => isSame(a[field], b[field]));
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
