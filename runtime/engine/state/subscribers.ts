import type { AskedField } from "../../informer/fanout/subscriber.ts";

/**
 * Index from key to the functions that know the object, for functions that skip most objects. Caches the last key, because all
 * functions look up the same key in turn.
 */
export class Subscribers<T> {
  private readonly byKey = new Map<string, Set<T>>();
  private lastKey: string | undefined;
  private last: Set<T> | undefined;
  private readonly fields = new Map<string, AskedField>();

  has(key: string, subscriber: T): boolean {
    if (key !== this.lastKey) {
      this.lastKey = key;
      this.last = this.byKey.get(key);
    }
    return this.last?.has(subscriber) ?? false;
  }

  /** Returns the shared field of that name, whose values the functions ask for. Calls `make` at the first request. */
  field(name: string, make: () => AskedField): AskedField {
    const found = this.fields.get(name);
    if (found) return found;
    const made = make();
    this.fields.set(name, made);
    return made;
  }

  /** All functions that know the object. */
  of(key: string): Iterable<T> {
    return this.byKey.get(key) ?? [];
  }

  add(key: string, subscriber: T): void {
    const subscribers = this.byKey.get(key);
    if (subscribers) subscribers.add(subscriber);
    else this.byKey.set(key, new Set([subscriber]));
    this.lastKey = undefined;
  }

  delete(key: string, subscriber: T): void {
    const subscribers = this.byKey.get(key);
    if (subscribers?.delete(subscriber) && subscribers.size === 0) this.byKey.delete(key);
    this.lastKey = undefined;
  }
}
