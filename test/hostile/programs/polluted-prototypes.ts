// ends with: ok
// within: 700 ms
export default async () => {
  const bad = () => {
    throw new Error("polluted");
  };
  for (const type of [Object, Array, String, Map, Promise, Function, Number] as { prototype: object }[]) {
    for (const name of Object.getOwnPropertyNames(type.prototype)) {
      if (name === "constructor" || name === "__proto__") continue;
      try {
        (type.prototype as Record<string, unknown>)[name] = bad;
      } catch {}
    }
  }
  (JSON as { parse: unknown; stringify: unknown }).parse = bad;
  (JSON as { parse: unknown; stringify: unknown }).stringify = bad;
  (Object.prototype as Record<string, unknown>).get = bad;
  (Object.prototype as Record<string, unknown>).set = bad;
  (Object.prototype as Record<string, unknown>).toJSON = bad;
};
