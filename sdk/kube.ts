import type { KindName, ObjectOf, Stored, Writable, Written } from "./kinds.ts";
import type { KubeObject, UnknownObject } from "./object.ts";

/** Names one object. `namespace` is omitted only for cluster-scoped kinds. */
export interface Ref {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
}

/** Query of a list. */
export interface ListQuery {
  apiVersion: string;
  kind: string;
  /** Default: all namespaces, which the manifest must grant. */
  namespace?: string;
  /** The API's query form: `app=web,tier!=cache`. */
  labelSelector?: string;
  /** The API's query form: `metadata.name!=kube-root-ca.crt`. */
  fieldSelector?: string;
  /** Most items per page; the rest follow with `continue`. Default: all of them, in an answer of at most 16 MiB. */
  limit?: number;
  /** `metadata.continue` of the previous page. */
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

/** Type of a patch. `merge` (RFC 7386) is the default; `strategic` works for built-in kinds only. */
export type PatchType = "merge" | "strategic" | "json";

/** Options of a delete. */
export interface DeleteOptions {
  /** Handling of the objects it owns. Default: the kind's own. */
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  /** If these do not match, the object was replaced or changed, and the delete fails with a ConflictError. */
  preconditions?: { uid?: string; resourceVersion?: string };
}

/** Options of an eviction. */
export interface EvictOptions {
  /** Seconds until the pod is killed. Default: the pod's own. */
  gracePeriodSeconds?: number;
  /** If these do not match, the pod was replaced or changed, and the eviction fails with a ConflictError. */
  preconditions?: { uid?: string; resourceVersion?: string };
}

/** Options of a server-side apply. */
export interface ApplyOptions {
  /** Takes over fields of other managers. Default: their fields are a ConflictError. */
  force?: boolean;
  /**
   * Returns the object from the runtime's memory, without a request, if the function's last write of it was the same apply, and
   * the object that the manifest's `reads` has is still in the state that this apply left. The returned object has no
   * `managedFields`. A change that has not arrived yet is not seen: use it if a trigger runs the function for such a change.
   * Without a read of whole objects of the kind, each apply is sent. Default: each apply is sent.
   */
  skipUnchanged?: boolean;
}

/** Options of a write to a subresource. */
export interface SubresourceOptions {
  /** The verb to grant on `<resource>/<subresource>`: `patch` (default), `update` (a PUT), or `create` (a POST). */
  verb?: "patch" | "update" | "create";
  /** Type of a patch. `merge` (RFC 7386) is the default; `strategic` works for built-in kinds only. */
  type?: "merge" | "strategic";
}

/** A verb that a call needs of the manifest's `permissions`. */
export type Verb = "get" | "list" | "create" | "update" | "patch" | "delete";

/** Query of the kinds. */
export interface KindsQuery {
  /** Only kinds for which all of these are granted, for objects of any name, and served. Default: `["list"]`. */
  verbs?: Verb[];
  /** Only kinds with namespaces, by what is granted in this one. Default: what is granted in all namespaces. */
  namespace?: string;
}

/** A kind that the API server serves. */
export interface ServedKind {
  /** The version that the server prefers. */
  apiVersion: string;
  kind: string;
  /** The resource's name in `permissions`, such as `configmaps`. */
  plural: string;
  /** False for a cluster-scoped kind. */
  namespaced: boolean;
  /** The verbs that are granted and served. */
  verbs: Verb[];
}

/** The `/scale` subresource of an object (autoscaling/v1). */
export interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas: number; selector?: string };
}

/** A Ref whose apiVersion and kind determine the object's type. */
export type TypedRef<A extends string, K extends string> = Omit<Ref, "apiVersion" | "kind"> & KindName<A, K>;

/** A ListQuery whose apiVersion and kind determine the items' type. */
export type TypedQuery<A extends string, K extends string> = Omit<ListQuery, "apiVersion" | "kind"> & KindName<A, K>;

/**
 * Writes a whole object. A whole number may be a BigInt; a number beyond 2^53 that may be rounded is an InvalidError. A literal
 * is checked against the type of its apiVersion and kind: unknown fields are an error. An explicit type argument, as in
 * `create<Shop>(…)`, is used instead.
 */
export interface Write<Options = never> {
  <T extends KubeObject = never>(object: NoInfer<Writable<T>>, ...options: OptionsOf<Options>): Promise<Stored<T>>;
  <const T extends KubeObject>(object: Unnamed<T>, ...options: OptionsOf<Options>): Promise<Stored<T>>;
  <A extends string, K extends string>(
    object: Written<A, K>,
    ...options: OptionsOf<Options>
  ): Promise<Stored<ObjectOf<A, K>>>;
}

/** An object whose type does not fix its apiVersion, so that there is no kind to check it against. */
type Unnamed<T extends KubeObject> = string extends NonNullable<T["apiVersion"]> ? T : never;

type OptionsOf<Options> = [Options] extends [never] ? [] : [options?: Options];

/** Changes the object in place, or returns another. */
// biome-ignore lint/suspicious/noConfusingVoidType: a change may return nothing, which is the common case
export type Change<T> = (object: Stored<T>) => Writable<T> | void | Promise<Writable<T> | void>;

/**
 * The cluster, as far as the manifest's `permissions` allow. Every call is checked in the runtime before anything is sent:
 * without a matching rule it fails with a ForbiddenError that names the missing rule. Writes use the field manager
 * `watchfire:<function>`. Calls can throw the errors of this package; the context's `signal` ends calls in progress.
 */
export interface Kube {
  /** Returns the object, or throws NotFoundError. Needs `get`. */
  get<A extends string, K extends string>(ref: TypedRef<A, K>): Promise<Stored<ObjectOf<A, K>>>;
  get<T extends KubeObject>(ref: Ref): Promise<Stored<T>>;
  /** Returns the objects of a kind, or one page of them. Each has its apiVersion and kind. Needs `list`. */
  list<A extends string, K extends string>(query: TypedQuery<A, K>): Promise<ObjectList<Stored<ObjectOf<A, K>>>>;
  list<T extends KubeObject>(query: ListQuery): Promise<ObjectList<Stored<T>>>;
  /** Creates an object and returns it as stored; AlreadyExistsError if the name is taken. Needs `create`. */
  create: Write;
  /** Replaces an object. With `metadata.resourceVersion`, an intermediate change causes a ConflictError. Needs `update`. */
  update: Write;
  /** Changes some fields: pass an object for `merge` and `strategic`, a list of operations for `json`. Needs `patch`. */
  patch<A extends string, K extends string>(
    ref: TypedRef<A, K>,
    patch: object | JsonPatchOperation[],
    options?: { type?: PatchType },
  ): Promise<Stored<ObjectOf<A, K>>>;
  patch<T extends KubeObject>(
    ref: Ref,
    patch: object | JsonPatchOperation[],
    options?: { type?: PatchType },
  ): Promise<Stored<T>>;
  /**
   * Applies an object server-side, creating it if it is missing. `force` takes over fields of other managers. Needs `patch`, and
   * `create` if it creates. `skipUnchanged` sends nothing if it would change nothing, as far as the manifest's `reads` knows.
   */
  apply: Write<ApplyOptions>;
  /** Deletes an object; returns the API's answer, a Status or the object that now waits for its finalizers. Needs `delete`. */
  delete(ref: Ref, options?: DeleteOptions): Promise<UnknownObject>;
  /** Replaces an object's status only. Needs `update` on `<resource>/status`. */
  updateStatus: Write;
  /** Merges into an object's status only: `{ status: { … } }`. Needs `patch` on `<resource>/status`. */
  patchStatus<A extends string, K extends string>(ref: TypedRef<A, K>, patch: object): Promise<Stored<ObjectOf<A, K>>>;
  patchStatus<T extends KubeObject>(ref: Ref, patch: object): Promise<Stored<T>>;
  /** Returns an object's scale. Needs `get` on `<resource>/scale`. */
  getScale(ref: Ref): Promise<Scale>;
  /** Sets the number of replicas. Needs `patch` on `<resource>/scale`. */
  setScale(ref: Ref, replicas: number): Promise<Scale>;
  /**
   * Replaces the pods of a Deployment, StatefulSet or DaemonSet one by one, as `kubectl rollout restart` does: sets the annotation
   * `kubectl.kubernetes.io/restartedAt` of its pod template to the current second. Returns at once, and does not wait for the
   * pods. Needs `patch`.
   */
  restart<A extends string, K extends string>(ref: TypedRef<A, K>): Promise<Stored<ObjectOf<A, K>>>;
  restart<T extends KubeObject>(ref: Ref): Promise<Stored<T>>;
  /**
   * Evicts a pod: deletes it unless a PodDisruptionBudget forbids it, which is a TooManyRequestsError. Returns the API's answer, a
   * Status. Needs `create` on `pods/eviction`.
   */
  evict(pod: Ref, options?: EvictOptions): Promise<UnknownObject>;
  /**
   * Writes to a subresource of an object, such as `resize` of a Pod; returns the API's answer. Needs `patch` on
   * `<resource>/<name>`, or the verb of the options. Never writes to `attach`, `exec`, `portforward`, `proxy` or `token`.
   */
  subresource(ref: Ref, name: string, body: object, options?: SubresourceOptions): Promise<UnknownObject>;
  /**
   * Returns the kinds that the API server serves and the manifest grants, from a document that is at most ten minutes old. Needs
   * no permission. Kinds of an aggregated API whose server does not answer are missing.
   */
  kinds(query?: KindsQuery): Promise<ServedKind[]>;
  /**
   * Reads the object, lets `change` modify it (or return a replacement), and updates it. After a ConflictError it starts over, up
   * to five attempts in all, with backoff and jitter. Needs `get` and `update`.
   */
  retryOnConflict<A extends string, K extends string>(
    ref: TypedRef<A, K>,
    change: Change<ObjectOf<A, K>>,
  ): Promise<Stored<ObjectOf<A, K>>>;
  retryOnConflict<T extends KubeObject>(ref: Ref, change: Change<T>): Promise<Stored<T>>;
}
