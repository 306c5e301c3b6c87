import type { KindName, ObjectOf, Stored, Writable, Written } from "./kinds.ts";
import type { KubeObject, UnknownObject } from "./object.ts";

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

/** A Ref whose apiVersion and kind say the object's type. */
export type TypedRef<A extends string, K extends string> = Omit<Ref, "apiVersion" | "kind"> & KindName<A, K>;

/** A ListQuery whose apiVersion and kind say the items' type. */
export type TypedQuery<A extends string, K extends string> = Omit<ListQuery, "apiVersion" | "kind"> & KindName<A, K>;

/**
 * A write of a whole object. A whole number may be a BigInt; a number beyond 2^53 that may be rounded is an InvalidError. A literal is checked against the type of its apiVersion and kind: a field that the kind does
 * not have is an error. A type that is named, as in `create<Shop>(…)`, is taken instead.
 */
export interface Write<Options = never> {
  <T extends KubeObject = never>(object: NoInfer<Writable<T>>, ...options: OptionsOf<Options>): Promise<Stored<T>>;
  <const T extends KubeObject>(object: Unnamed<T>, ...options: OptionsOf<Options>): Promise<Stored<T>>;
  <A extends string, K extends string>(
    object: Written<A, K>,
    ...options: OptionsOf<Options>
  ): Promise<Stored<ObjectOf<A, K>>>;
}

/** An object whose type leaves its apiVersion open: there is no kind to check it against. */
type Unnamed<T extends KubeObject> = string extends NonNullable<T["apiVersion"]> ? T : never;

type OptionsOf<Options> = [Options] extends [never] ? [] : [options?: Options];

/** Alters the object in place, or gives another. */
// biome-ignore lint/suspicious/noConfusingVoidType: a change may return nothing, which is the common case
export type Change<T> = (object: Stored<T>) => Writable<T> | void | Promise<Writable<T> | void>;

/**
 * The cluster, as far as the manifest's `permissions` grant it. Every call is checked in the runtime before anything is
 * sent: what no rule grants is a ForbiddenError that names the missing rule. Writes carry the field manager
 * `watchfire:<function>`. Each call can throw the errors of this package; `signal` of the context ends calls under way.
 */
export interface Kube {
  /** The object; NotFoundError where there is none. Needs `get`. */
  get<A extends string, K extends string>(ref: TypedRef<A, K>): Promise<Stored<ObjectOf<A, K>>>;
  get<T extends KubeObject>(ref: Ref): Promise<Stored<T>>;
  /** The objects of a kind, or one page of them. Each carries its apiVersion and kind. Needs `list`. */
  list<A extends string, K extends string>(query: TypedQuery<A, K>): Promise<ObjectList<Stored<ObjectOf<A, K>>>>;
  list<T extends KubeObject>(query: ListQuery): Promise<ObjectList<Stored<T>>>;
  /** Creates it and gives it back as stored; AlreadyExistsError where the name is taken. Needs `create`. */
  create: Write;
  /** Replaces it. With `metadata.resourceVersion`, a change in between is a ConflictError. Needs `update`. */
  update: Write;
  /** Changes some fields: an object for `merge` and `strategic`, a list of operations for `json`. Needs `patch`. */
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
  /** Server-side apply; creates what is not there. `force` takes over fields of other managers. Needs `patch`, and `create` where it creates. */
  apply: Write<{ force?: boolean }>;
  /** Deletes it; gives the API's answer, a Status or the object that now waits for its finalizers. Needs `delete`. */
  delete(ref: Ref, options?: DeleteOptions): Promise<UnknownObject>;
  /** Replaces its status alone. Needs `update` on `<resource>/status`. */
  updateStatus: Write;
  /** Merges into its status alone: `{ status: { … } }`. Needs `patch` on `<resource>/status`. */
  patchStatus<A extends string, K extends string>(ref: TypedRef<A, K>, patch: object): Promise<Stored<ObjectOf<A, K>>>;
  patchStatus<T extends KubeObject>(ref: Ref, patch: object): Promise<Stored<T>>;
  /** Its scale. Needs `get` on `<resource>/scale`. */
  getScale(ref: Ref): Promise<Scale>;
  /** Sets the number of replicas. Needs `patch` on `<resource>/scale`. */
  setScale(ref: Ref, replicas: number): Promise<Scale>;
  /**
   * Reads the object, lets `change` alter it (or return another in its place), and updates it. On a ConflictError it
   * does so again, up to five times in all, with backoff and jitter. Needs `get` and `update`.
   */
  retryOnConflict<A extends string, K extends string>(
    ref: TypedRef<A, K>,
    change: Change<ObjectOf<A, K>>,
  ): Promise<Stored<ObjectOf<A, K>>>;
  retryOnConflict<T extends KubeObject>(ref: Ref, change: Change<T>): Promise<Stored<T>>;
}
