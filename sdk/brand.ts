/** The key under which a class and its prototype carry the class's name across copies of this package. */
const brandKey = (name: string) => Symbol.for(`@watchfire/sdk/${name}`);

/**
 * Marks a class, so that `instanceof` holds for what another copy made of this package as well. A handler's bundle
 * brings one copy, the sandbox another. A user's own subclass keeps the ordinary `instanceof`.
 */
export function brand(target: { readonly prototype: object }, name: string): void {
  const key = brandKey(name);
  Object.defineProperty(target.prototype, key, { value: true });
  // The name is on the prototype, so that a stack begins with it and survives minification.
  Object.defineProperty(target.prototype, "name", { value: name, configurable: true, writable: true });
  Object.defineProperty(target, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== target) return Function.prototype[Symbol.hasInstance].call(this, value);
      return typeof value === "object" && value !== null && key in value;
    },
  });
}
