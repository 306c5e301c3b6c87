// The language's own functions, captured before any handler runs. Changes that a handler makes to prototypes cannot affect the
// guest's part of the protocol. Rules for the other *.guest.ts files that implement the protocol:
// - call no method on a value: use these functions;
// - do not iterate or spread arrays;
// - read no property that could fall through to Object.prototype.

const { bind, call } = Function.prototype;

/** Converts a method to a function that takes its receiver as the first argument. */
const uncurry = <This, Args extends unknown[], Result>(
  method: (this: This, ...args: Args) => Result,
): ((self: This, ...args: Args) => Result) => bind.call(call, method) as never;

export const apply = Reflect.apply;
const setPrototypeOf = Reflect.setPrototypeOf;
export const jsonParse: (text: string) => unknown = JSON.parse;
export const jsonStringify: (value: unknown) => string | undefined = JSON.stringify;
/** `JSON.stringify` with a replacer function, which is called with the holder as `this` and returns the value to print. */
export const replacedJson: (value: unknown, replace: (key: string, value: unknown) => unknown) => string | undefined =
  JSON.stringify;
export const keysOf: (of: object) => string[] = Object.keys;
/** Returns a JSON string literal. */
export const quote = (text: string): string => jsonStringify(text) as string;
export const stringOf = String;
export const parseInteger = Number.parseInt;
export const isFiniteNumber = Number.isFinite;
export const dateNow = Date.now;
export const random = Math.random;
export const captureStack = Error.captureStackTrace;
export const PrimordialPromise = Promise;
export const PrimordialError = Error;
export const PrimordialProxy = Proxy;
export const freeze = Object.freeze;
export const slice = uncurry(String.prototype.slice);
export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const indexOf = uncurry(String.prototype.indexOf);
export const functionText = uncurry(Function.prototype.toString);
export const promiseThen = uncurry(Promise.prototype.then);
const reflectDefine = Reflect.defineProperty;
export const {
  deleteProperty: reflectDelete,
  get: reflectGet,
  getOwnPropertyDescriptor: reflectDescriptor,
  has: reflectHas,
  ownKeys: reflectKeys,
  preventExtensions: reflectPreventExtensions,
  set: reflectSet,
} = Reflect;
const create = Object.create;

/** Returns an object without a prototype, so that lookups stay in it. */
export const bare = <T extends object>(): T => create(null) as T;

/** Removes an object's prototype. Returns the same object. */
export function inheritNothing<T extends object>(object: T): T {
  setPrototypeOf(object, null);
  return object;
}

/** Defines a property by a descriptor without prototype. Returns whether it succeeded. */
export const define = (target: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean =>
  reflectDefine(target, key, inheritNothing(descriptor));

/** Defines an ordinary property, as an assignment would in an unmodified realm. */
export function put(target: object, key: PropertyKey, value: unknown): void {
  define(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Follows a value that may be a promise or thenable. A promise is followed by the original `then`. */
export function follow(value: unknown, done: (value: unknown) => void, failed: (error: unknown) => void): void {
  try {
    promiseThen(value as Promise<unknown>, done, failed);
    return;
  } catch {
    // Not a promise of this realm, but possibly another thenable.
  }
  const promise = new PrimordialPromise<unknown>((resolve) => resolve(value));
  // `then` reads the promise's constructor. An own `undefined` keeps that from reaching the prototype.
  define(promise, "constructor", { value: undefined });
  promiseThen(promise, done, failed);
}
