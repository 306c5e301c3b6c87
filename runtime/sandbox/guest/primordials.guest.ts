// The language's own functions, taken before any handler runs. What the handler does to prototypes afterwards cannot
// change how the guest's side of the protocol works. House rules for the other *.guest.ts files that carry the
// protocol. No method is called on a value (use these), and no array is iterated or spread. No property is read that
// could fall through to Object.prototype.

const { bind, call } = Function.prototype;

/** A method as a function that takes its receiver first. */
const uncurry = <This, Args extends unknown[], Result>(
  method: (this: This, ...args: Args) => Result,
): ((self: This, ...args: Args) => Result) => bind.call(call, method) as never;

export const apply = Reflect.apply;
const setPrototypeOf = Reflect.setPrototypeOf;
export const jsonParse: (text: string) => unknown = JSON.parse;
export const jsonStringify: (value: unknown) => string | undefined = JSON.stringify;
/** With a function that is called for each value, on what holds it, and gives what to print in its place. */
export const replacedJson: (value: unknown, replace: (key: string, value: unknown) => unknown) => string | undefined =
  JSON.stringify;
export const keysOf: (of: object) => string[] = Object.keys;
/** A JSON string literal. */
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

/** An object that inherits nothing, so that no lookup leaves it. */
export const bare = <T extends object>(): T => create(null) as T;

/** Takes what an object inherits away from it; the same object. */
export function inheritNothing<T extends object>(object: T): T {
  setPrototypeOf(object, null);
  return object;
}

/** Defines a property by a descriptor that inherits nothing. Gives whether it could. */
export const define = (target: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean =>
  reflectDefine(target, key, inheritNothing(descriptor));

/** Defines an ordinary property, as an assignment would if nobody had meddled. */
export function put(target: object, key: PropertyKey, value: unknown): void {
  define(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Follows a value that may be a promise or thenable; a promise by the language's own `then`. */
export function follow(value: unknown, done: (value: unknown) => void, failed: (error: unknown) => void): void {
  try {
    promiseThen(value as Promise<unknown>, done, failed);
    return;
  } catch {
    // Not a promise of this realm: perhaps something else with a `then`.
  }
  const promise = new PrimordialPromise<unknown>((resolve) => resolve(value));
  // `then` asks the promise for its constructor: an own undefined keeps it from asking the prototype.
  define(promise, "constructor", { value: undefined });
  promiseThen(promise, done, failed);
}
