/** Metadata of an object, as JSON carries it: timestamps are text. */
export interface ObjectMeta {
  name?: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

/** Names an owner of an object: when the last owner is gone, the object is collected. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** What every Kubernetes object has. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object of which nothing more is known. */
export interface UnknownObject extends KubeObject {
  [field: string]: unknown;
}

/** Names one object. `namespace` is left out for cluster-scoped kinds alone. */
export interface Ref {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
}

/** What a list takes. */
export interface ListQuery {
  apiVersion: string;
  kind: string;
  /** Left out: all namespaces, which the manifest must grant. */
  namespace?: string;
  /** The API's query form: `app=web,tier!=cache`. */
  labelSelector?: string;
  /** The API's query form: `metadata.name!=kube-root-ca.crt`. */
  fieldSelector?: string;
  /** At most this many items; the rest follow with `continue`. Left out: all of them, in an answer of at most 16 MiB. */
  limit?: number;
  /** `metadata.continue` of the page before. */
  continue?: string;
}

/** A list, or one page of it. */
export interface ObjectList<T> {
  items: T[];
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
}

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  path: string;
  from?: string;
  value?: unknown;
}

/** How a patch is read. `merge` (RFC 7386) is the default; `strategic` holds for built-in kinds only. */
export type PatchType = "merge" | "strategic" | "json";

/** What a delete takes beyond the object's name. */
export interface DeleteOptions {
  /** What becomes of the objects it owns; the kind's own default where left out. */
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  /** The delete is refused with a ConflictError where the object is another one by now. */
  preconditions?: { uid?: string; resourceVersion?: string };
}

/** The `/scale` subresource of an object (autoscaling/v1). */
export interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas: number; selector?: string };
}

/**
 * The cluster, as far as the manifest's `permissions` grant it. Every call is checked in the runtime before anything is
 * sent: what no rule grants is a ForbiddenError that names the missing rule. Writes carry the field manager
 * `watchfire:<function>`. Each call can throw the errors of this package; `signal` of the context ends calls under way.
 */
export interface Kube {
  /** The object; NotFoundError where there is none. Needs `get`. */
  get<T extends KubeObject = UnknownObject>(ref: Ref): Promise<T>;
  /** The objects of a kind, or one page of them. Each carries its apiVersion and kind. Needs `list`. */
  list<T extends KubeObject = UnknownObject>(query: ListQuery): Promise<ObjectList<T>>;
  /** Creates it and gives it back as stored; AlreadyExistsError where the name is taken. Needs `create`. */
  create<T extends KubeObject>(object: T): Promise<T>;
  /** Replaces it. With `metadata.resourceVersion`, a change in between is a ConflictError. Needs `update`. */
  update<T extends KubeObject>(object: T): Promise<T>;
  /** Changes some fields: an object for `merge` and `strategic`, a list of operations for `json`. Needs `patch`. */
  patch<T extends KubeObject = UnknownObject>(
    ref: Ref,
    patch: object | JsonPatchOperation[],
    options?: { type?: PatchType },
  ): Promise<T>;
  /** Server-side apply; creates what is not there. `force` takes over fields of other managers. Needs `patch`, and `create` where it creates. */
  apply<T extends KubeObject>(object: T, options?: { force?: boolean }): Promise<T>;
  /** Deletes it; gives the API's answer, a Status or the object that now waits for its finalizers. Needs `delete`. */
  delete(ref: Ref, options?: DeleteOptions): Promise<UnknownObject>;
  /** Replaces its status alone. Needs `update` on `<resource>/status`. */
  updateStatus<T extends KubeObject>(object: T): Promise<T>;
  /** Merges into its status alone: `{ status: { … } }`. Needs `patch` on `<resource>/status`. */
  patchStatus<T extends KubeObject = UnknownObject>(ref: Ref, patch: object): Promise<T>;
  /** Its scale. Needs `get` on `<resource>/scale`. */
  getScale(ref: Ref): Promise<Scale>;
  /** Sets the number of replicas. Needs `patch` on `<resource>/scale`. */
  setScale(ref: Ref, replicas: number): Promise<Scale>;
  /**
   * Reads the object, lets `change` alter it (or return another in its place), and updates it; on a ConflictError does so
   * again, up to five times in all, with backoff and jitter. Needs `get` and `update`.
   */
  retryOnConflict<T extends KubeObject = UnknownObject>(
    ref: Ref,
    // biome-ignore lint/suspicious/noConfusingVoidType: a change may return nothing, which is the common case
    change: (object: T) => T | void | Promise<T | void>,
  ): Promise<T>;
}
