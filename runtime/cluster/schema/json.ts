/** Any JSON value; `exact-json.ts` defines which numbers are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;

/** A JSON object; a Kubernetes object on the wire is one. */
export interface JsonObject {
  [key: string]: Json;
}

/** True for a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Equality of JSON values. The order of members is ignored, the order of items is not. */
export function jsonEqual(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) && left.length === right.length && left.every((item, index) => jsonEqual(item, right[index]))
    );
  }
  if (!isObject(left) || !isObject(right)) return false;
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && jsonEqual(left[name], right[name]))
  );
}

/** Returns the object's own member of that name. `__proto__` and `constructor` are ordinary names. */
export function member(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets a member, also one that is named `__proto__`. */
export function setMember(object: JsonObject, name: string, value: Json): void {
  if (name === "__proto__") {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else object[name] = value;
}
