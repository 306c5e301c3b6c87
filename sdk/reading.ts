import { KubeError, NotFoundError } from "./errors.ts";
import type { ObjectOf, Stored } from "./kinds.ts";
import type { Kube, ListQuery, Ref, TypedQuery, TypedRef } from "./kube.ts";
import type { KubeObject } from "./object.ts";

/** Objects per page, as in client-go's pager (tools/pager/pager.go, `defaultPageSize`). */
const pageSize = 500;

/** Returns the object, or undefined if it does not exist. Needs `get`. */
export function getOrUndefined<A extends string, K extends string>(
  kube: Kube,
  ref: TypedRef<A, K>,
): Promise<Stored<ObjectOf<A, K>> | undefined>;
export function getOrUndefined<T extends KubeObject>(kube: Kube, ref: Ref): Promise<Stored<T> | undefined>;
export async function getOrUndefined(kube: Kube, ref: Ref): Promise<Stored | undefined> {
  try {
    return await kube.get(ref);
  } catch (error) {
    // A kind that the cluster does not serve is a different error from a missing object.
    if (error instanceof NotFoundError && error.reason !== "NotServed") return undefined;
    throw error;
  }
}

/**
 * Returns all objects that a query selects, reading page by page; if a list expires between two pages, it is read again in one
 * piece. All objects are held in the handler's memory: if there may be many, call `kube.list` with `limit` and `continue`. Needs
 * `list`.
 */
export function listAll<A extends string, K extends string>(
  kube: Kube,
  query: TypedQuery<A, K>,
): Promise<Stored<ObjectOf<A, K>>[]>;
export function listAll<T extends KubeObject>(kube: Kube, query: ListQuery): Promise<Stored<T>[]>;
export async function listAll(kube: Kube, query: ListQuery): Promise<Stored[]> {
  const { limit = pageSize, continue: _, ...selected } = query;
  const items: Stored[] = [];
  let next: string | undefined;
  do {
    try {
      const page = await kube.list({ ...selected, limit, ...(next !== undefined && { continue: next }) });
      items.push(...page.items);
      next = page.metadata.continue;
    } catch (error) {
      const isExpired = error instanceof KubeError && error.status === 410;
      if (!isExpired || next === undefined) throw error;
      return (await kube.list(selected)).items;
    }
  } while (next);
  return items;
}
