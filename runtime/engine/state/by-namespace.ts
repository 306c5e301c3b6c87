import { YoungMap } from "../../v8/young-map.ts";
/** Values by object key, grouped by namespace, so that work on one namespace does not cost time for the others. */
export class ByNamespace<T> implements Iterable<readonly [string, T]> {
  private readonly groups = new YoungMap<string, Map<string, T>>();
  private readonly groupOf: (key: string) => string;

  /** @param groupOf the group that a key belongs to. Default: its namespace. */
  constructor(groupOf: (key: string) => string = namespaceOf) {
    this.groupOf = groupOf;
  }

  get(key: string): T | undefined {
    return this.groups.get(this.groupOf(key))?.get(key);
  }

  has(key: string): boolean {
    if (this.groups.size === 0) return false;
    return this.groups.get(this.groupOf(key))?.has(key) ?? false;
  }

  set(key: string, value: T): void {
    const namespace = this.groupOf(key);
    const group = this.groups.get(namespace);
    if (group) group.set(key, value);
    else this.groups.set(namespace, new Map([[key, value]]));
  }

  delete(key: string): void {
    const namespace = this.groupOf(key);
    const group = this.groups.get(namespace);
    if (group?.delete(key) && group.size === 0) this.groups.delete(namespace);
  }

  /** The namespaces that have values. */
  get namespaces(): Iterable<string> {
    return this.groups.keys();
  }

  /** The values of one namespace, or ("") of all. */
  *in(namespace: string): Iterable<readonly [string, T]> {
    if (namespace !== "") yield* this.groups.get(namespace) ?? [];
    else for (const group of this.groups.values()) yield* group;
  }

  [Symbol.iterator](): Iterator<readonly [string, T]> {
    return this.in("")[Symbol.iterator]();
  }
}

/** The namespace in an object's key; "" for a cluster-scoped object. */
export const namespaceOf = (key: string): string => key.slice(0, key.indexOf("/"));

/** Splits an object's key into its two parts. */
export const nameOf = (key: string): { readonly namespace: string; readonly name: string } => ({
  namespace: namespaceOf(key),
  name: key.slice(key.indexOf("/") + 1),
});
