import type { FetchHeaders } from "../../../sdk/index.ts";

/** A response's headers, read as in WHATWG fetch: names are case-insensitive and sorted, and values of one name are joined. */
export class ResponseHeaders implements FetchHeaders {
  readonly #byName = new Map<string, string[]>();

  constructor(pairs: readonly (readonly [name: string, value: string])[]) {
    for (const [name, value] of pairs) {
      const key = name.toLowerCase();
      const values = this.#byName.get(key);
      if (values) values.push(value);
      else this.#byName.set(key, [value]);
    }
  }

  get(name: string): string | null {
    return this.#byName.get(String(name).toLowerCase())?.join(", ") ?? null;
  }

  has(name: string): boolean {
    return this.#byName.has(String(name).toLowerCase());
  }

  getSetCookie(): string[] {
    return [...(this.#byName.get("set-cookie") ?? [])];
  }

  forEach(callback: (value: string, name: string, headers: FetchHeaders) => void): void {
    for (const [name, value] of this) callback(value, name, this);
  }

  *entries(): Generator<[name: string, value: string], undefined> {
    for (const name of [...this.#byName.keys()].sort()) {
      const values = this.#byName.get(name) ?? [];
      // Cookies contain commas, so joined values would be ambiguous.
      for (const value of name === "set-cookie" ? values : [values.join(", ")]) yield [name, value];
    }
  }

  *keys(): Generator<string, undefined> {
    for (const [name] of this) yield name;
  }

  *values(): Generator<string, undefined> {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): Generator<[name: string, value: string], undefined> {
    return this.entries();
  }
}
