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

/** An object of which its metadata alone was read so far, if anything: what a Proxy asks for it. */
class Unread implements ProxyHandler<object> {
  /** While one lives, V8 keeps what it has learnt of their shape, and the code that it has compiled for it. */
  static readonly first = new Unread({}, "", 0, 0, { numbers: undefined });
  #target: object;
  /** Its JSON; empty once all of it was parsed. */
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

  /** `receiver`: another object where one inherits from this one. */
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

// No trap is looked up where a handler could put one.
Object.setPrototypeOf(Unread.prototype, null);
delete (Unread.prototype as { constructor?: unknown }).constructor;

/**
 * The object that a JSON text stands for, to this reader. Only its metadata is parsed until something else is asked of it, which costs a third of
 * the whole for a Pod. The text is one object and well formed: the host has looked at each byte.
 */
export function objectOf(text: string, metadataAt: number, metadataEnd: number, reader: NumbersReader): object {
  const target = {};
  return new PrimordialProxy(target, new Unread(target, text, metadataAt, metadataEnd, reader));
}
