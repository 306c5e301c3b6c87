import { isInexact, moveMember, type NumbersReader, parseJson } from "../../../sdk/exact-json.ts";
import {
  define,
  inheritNothing,
  keysOf,
  PrimordialProxy,
  put,
  reflectDelete,
  reflectDescriptor,
  reflectGet,
  reflectHas,
  reflectKeys,
  reflectPreventExtensions,
  reflectSet,
  slice,
} from "./primordials.guest.ts";

/** Proxy handler of an object that is parsed lazily: not at all, then its metadata, then the rest. */
class Unread implements ProxyHandler<object> {
  /** Keeps one instance alive, so that V8 keeps its type feedback and compiled code for the class. */
  static readonly first = new Unread({}, "", 0, 0, { numbers: undefined });
  #target: object;
  /** The object's JSON; empty once all of it has been parsed. */
  #text: string;
  #metadataAt: number;
  #metadataEnd: number;
  #metadata: unknown;
  #reader: NumbersReader;

  constructor(target: object, text: string, metadataAt: number, metadataEnd: number, reader: NumbersReader) {
    this.#target = target;
    this.#text = text;
    this.#metadataAt = metadataAt;
    this.#metadataEnd = metadataEnd;
    this.#reader = reader;
  }

  /** Parses the rest. Metadata that was handed out stays the same object. */
  #whole(): object {
    if (this.#text === "") return this.#target;
    const parsed = parseJson(this.#text, this.#reader) as Record<string, unknown>;
    const keys = keysOf(parsed);
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index] as string;
      const value = parsed[key];
      if (typeof value === "number" && isInexact(value)) moveMember(parsed, this.#target, key);
      else put(this.#target, key, key === "metadata" && this.#metadata !== undefined ? this.#metadata : value);
    }
    this.#text = "";
    return this.#target;
  }

  get(_: object, key: PropertyKey, receiver: unknown): unknown {
    if (key !== "metadata" || this.#text === "") return reflectGet(this.#whole(), key, receiver);
    this.#metadata ??= parseJson(slice(this.#text, this.#metadataAt, this.#metadataEnd), this.#reader);
    return this.#metadata;
  }

  /** `receiver` is a different object if that object inherits from this one. */
  set(_: object, key: PropertyKey, value: unknown, receiver: unknown): boolean {
    return reflectSet(this.#whole(), key, value, receiver);
  }

  has(_: object, key: PropertyKey): boolean {
    return reflectHas(this.#whole(), key);
  }

  deleteProperty(_: object, key: PropertyKey): boolean {
    return reflectDelete(this.#whole(), key);
  }

  defineProperty(_: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean {
    return define(this.#whole(), key, descriptor);
  }

  getOwnPropertyDescriptor(_: object, key: PropertyKey): PropertyDescriptor | undefined {
    const descriptor = reflectDescriptor(this.#whole(), key);
    return descriptor && inheritNothing(descriptor);
  }

  ownKeys(): (string | symbol)[] {
    return reflectKeys(this.#whole());
  }

  preventExtensions(): boolean {
    return reflectPreventExtensions(this.#whole());
  }
}

// Without a prototype, no trap is looked up on objects that a handler can change.
Object.setPrototypeOf(Unread.prototype, null);
delete (Unread.prototype as { constructor?: unknown }).constructor;

/**
 * Returns the object of a JSON text. Only its metadata is parsed until another property is used; for a Pod that costs a third of
 * parsing the whole. The text must be one well-formed object: the host has validated each byte.
 */
export function objectOf(text: string, metadataAt: number, metadataEnd: number, reader: NumbersReader): object {
  const target = {};
  return new PrimordialProxy(target, new Unread(target, text, metadataAt, metadataEnd, reader));
}
