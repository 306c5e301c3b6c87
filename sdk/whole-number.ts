const { getOwnPropertyDescriptor, setPrototypeOf } = Reflect;

/** Property of the getter of a number that JavaScript cannot hold exactly: the number's original text. */
export const sourceMark = Symbol.for("@watchfire/sdk/number");

/**
 * Returns the text of a field's number that JavaScript cannot hold exactly, if the field is unchanged; undefined for any other.
 */
export function sourceAt(holder: object, key: PropertyKey): string | undefined {
  const get = own(holder, key)?.get;
  const source: unknown = get && own(get, sourceMark)?.value;
  return typeof source === "string" ? source : undefined;
}

/** Returns a property's descriptor without a prototype: this file also runs inside the sandbox. */
function own(holder: object, key: PropertyKey): PropertyDescriptor | undefined {
  const descriptor = getOwnPropertyDescriptor(holder, key);
  if (descriptor !== undefined) setPrototypeOf(descriptor, null);
  return descriptor;
}

/**
 * Reads a whole number exactly, even one beyond 2^53, where JavaScript's numbers have gaps: `wholeNumber(object.spec, "id")`.
 *
 * @param holder the object or array that contains the number, as returned by the event or a call; a copy has the rounded number
 * @param key the field, or the index
 * @throws RangeError if there is not a whole number, or only a rounded one is left
 */
export function wholeNumber(holder: object, key: PropertyKey): bigint {
  const source = sourceAt(holder, key);
  if (source !== undefined && /^-?\d+$/.test(source)) return BigInt(source);
  const value: unknown = Reflect.get(holder, key);
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return BigInt(value as bigint | number);
  const what = Number.isInteger(value) ? `${value} may be rounded: read it where it came` : "is not a whole number";
  throw new RangeError(`${String(key)}: ${what}`);
}
