/** Returns the key under which a class and its prototype store the class's name, shared by all copies of this package. */
const brandKey = (name: string) => Symbol.for(`@watchfire/sdk/${name}`);

/**
 * Marks a class so that `instanceof` also holds for instances from another copy of this package. A handler's bundle contains one
 * copy, the sandbox another. A user's own subclass keeps the ordinary `instanceof`.
 */
export function brand(target: { readonly prototype: object }, name: string): void {
  const key = brandKey(name);
  Object.defineProperty(target.prototype, key, { value: true });
  // The name is on the prototype, so that a stack begins with it and it survives minification.
  Object.defineProperty(target.prototype, "name", { value: name, configurable: true, writable: true });
  Object.defineProperty(target, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== target) return Function.prototype[Symbol.hasInstance].call(this, value);
      return typeof value === "object" && value !== null && key in value;
    },
  });
}
