import type { AskedField, SkipRule } from "../../informer/fanout/subscriber.ts";
import { objectKey } from "../../informer/scan/change.ts";
import type { Filter } from "../filter/filter.ts";

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

/**
 * Returns the rule by which the informer may skip changes for a subscriber; `undefined` if its filter requires nothing of an object.
 * Functions of one dispatcher share a field, and those of another dispatcher do not, since they know other objects.
 */
export function skipRuleOf<T extends object>(
  subscriber: T,
  { demanded }: Pick<Filter, "demanded">,
  subscribers: Subscribers<T>,
): SkipRule | undefined {
  if (!demanded) return undefined;
  const { field, value, read } = demanded;
  const make = (): AskedField => ({ read, knowing: ({ meta }) => subscribers.of(objectKey(meta)) });
  return { field: subscribers.field(field, make), value, token: subscriber };
}
