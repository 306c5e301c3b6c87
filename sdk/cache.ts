import type { KindName, ObjectOf, Stored } from "./kinds.ts";
import type { Ref, TypedRef } from "./kube.ts";
import type { KubeObject } from "./object.ts";

/** Query of the cache. */
export interface CacheQuery {
  apiVersion: string;
  kind: string;
  /** Default: all namespaces that the manifest's `reads` names. */
  namespace?: string;
  /** The API's query form: `app=web,tier!=cache`. */
  labelSelector?: string;
  /** One index of the manifest, and the value to look up: `{ byNode: "node-1" }`. */
  index?: Record<string, string>;
}

/** A CacheQuery whose apiVersion and kind determine the items' type. */
export type TypedCacheQuery<A extends string, K extends string> = Omit<CacheQuery, "apiVersion" | "kind"> &
  KindName<A, K>;

/** Age of the cache's data. */
export interface CacheAge {
  /** The resourceVersion that the objects reflect; empty for a kind that is not installed. */
  resourceVersion: string;
  /** Milliseconds since the API server last sent anything for this source: a change, a bookmark (each minute), or a list. */
  ageMs: number;
}

/** Objects of the cache, in no particular order. */
export interface CachedList<T> extends CacheAge {
  items: T[];
}

/**
 * The objects that the manifest's `reads` selects, kept in the runtime's memory and updated by a watch. Calls never ask the API
 * server and return at once, without `await`. Objects outside of `reads` cause a ForbiddenError; a malformed selector, and an
 * answer of more than 16 MiB, an InvalidError.
 */
export interface Cache {
  /** Returns the object; `undefined` if it does not exist. */
  get<A extends string, K extends string>(ref: TypedRef<A, K>): Stored<ObjectOf<A, K>> | undefined;
  get<T extends KubeObject>(ref: Ref): Stored<T> | undefined;
  /** Returns the objects of a kind: all, or those of a namespace, with labels, or with a value in an index. */
  list<A extends string, K extends string>(query: TypedCacheQuery<A, K>): CachedList<Stored<ObjectOf<A, K>>>;
  list<T extends KubeObject>(query: CacheQuery): CachedList<Stored<T>>;
  /** Returns the age of the data about a kind. */
  age(kind: { apiVersion: string; kind: string }): CacheAge;
}

/** One entry of a manifest's `reads`: a kind, the names of its indexes, and the type of its objects. */
export interface Read<A extends string, K extends string, Index extends string = never, T = ObjectOf<A, K>> {
  readonly apiVersion: A;
  readonly kind: K;
  readonly index: Index;
  readonly object: T;
}

type AnyRead = Read<string, string, string, unknown>;

/** The entry of an apiVersion and a kind. */
type ReadAt<R extends AnyRead, A, K> = Extract<R, { readonly apiVersion: A; readonly kind: K }>;

type KindAt<R extends AnyRead, A> = Extract<R, { readonly apiVersion: A }>["kind"];

/** `{}` would accept any name. */
type IndexesOf<R extends AnyRead> = [R["index"]] extends [never] ? never : Partial<Record<R["index"], string>>;

/** The cache of a function whose `reads` are the union R: other kinds and other indexes are type errors. */
export interface CacheOf<R extends AnyRead> {
  /** Returns the object; `undefined` if it does not exist. */
  get<const A extends R["apiVersion"], const K extends KindAt<R, A>>(
    ref: Omit<Ref, "apiVersion" | "kind"> & { readonly apiVersion: A; readonly kind: K },
  ): Stored<ReadAt<R, A, K>["object"]> | undefined;
  /** Returns the objects of a kind: all, or those of a namespace, with labels, or with a value in an index. */
  list<const A extends R["apiVersion"], const K extends KindAt<R, A>>(
    query: Omit<CacheQuery, "apiVersion" | "kind" | "index"> & {
      readonly apiVersion: A;
      readonly kind: K;
      readonly index?: IndexesOf<ReadAt<R, A, K>>;
    },
  ): CachedList<Stored<ReadAt<R, A, K>["object"]>>;
  /** Returns the age of the data about a kind. */
  age<const A extends R["apiVersion"]>(kind: { readonly apiVersion: A; readonly kind: KindAt<R, A> }): CacheAge;
}
