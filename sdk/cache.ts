import type { KindName, ObjectOf, Stored } from "./kinds.ts";
import type { Ref, TypedRef } from "./kube.ts";
import type { KubeObject } from "./object.ts";

/** What a look into the cache takes. */
export interface CacheQuery {
  apiVersion: string;
  kind: string;
  /** Left out: all namespaces that the manifest's `reads` names. */
  namespace?: string;
  /** The API's query form: `app=web,tier!=cache`. */
  labelSelector?: string;
  /** One index of the manifest, and the value to have there: `{ byNode: "node-1" }`. */
  index?: Record<string, string>;
}

/** A CacheQuery whose apiVersion and kind say the items' type. */
export type TypedCacheQuery<A extends string, K extends string> = Omit<CacheQuery, "apiVersion" | "kind"> &
  KindName<A, K>;

/** How old what the cache says is. */
export interface CacheAge {
  /** The objects are those of this moment; empty for a kind that is not installed. */
  resourceVersion: string;
  /** Milliseconds since the API server last said anything of this source: a change, a bookmark (each minute), a list. */
  ageMs: number;
}

/** Objects of the cache, in no particular order. */
export interface CachedList<T> extends CacheAge {
  items: T[];
}

/**
 * The objects that the manifest's `reads` names, in the runtime's memory, current by a watch. No call of it asks the API
 * server, and each answers at once, without `await`. What `reads` does not name is a ForbiddenError; a selector that cannot be
 * read, and an answer of more than 16 MiB, are an InvalidError.
 */
export interface Cache {
  /** The object; undefined where there is none. */
  get<A extends string, K extends string>(ref: TypedRef<A, K>): Stored<ObjectOf<A, K>> | undefined;
  get<T extends KubeObject>(ref: Ref): Stored<T> | undefined;
  /** The objects of a kind: all, or those of a namespace, with labels, or with a value in an index. */
  list<A extends string, K extends string>(query: TypedCacheQuery<A, K>): CachedList<Stored<ObjectOf<A, K>>>;
  list<T extends KubeObject>(query: CacheQuery): CachedList<Stored<T>>;
  /** How old the objects of a kind are. */
  age(kind: { apiVersion: string; kind: string }): CacheAge;
}
