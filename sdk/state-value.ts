/** Returns why a value cannot be stored as JSON and read back unchanged, with its place; `undefined` if it can. */
export function unstorable(value: unknown, place = "value", within: readonly object[] = []): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : `${place} is ${value}, which JSON does not have`;
    case "bigint":
      return `${place} is a BigInt; store it as a text, with String(…)`;
    case "function":
    case "symbol":
      return `${place} is a ${typeof value}`;
    case "object":
      return value === null ? undefined : unstorableObject(value, place, within);
    default:
      return undefined;
  }
}

function unstorableObject(value: object, place: string, within: readonly object[]): string | undefined {
  if (within.includes(value)) return `${place} contains itself`;
  const inside = [...within, value];
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const why =
        item === undefined ? `${place}[${index}] is undefined` : unstorable(item, `${place}[${index}]`, inside);
      if (why !== undefined) return why;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return `${place} is a ${nameOf(value)}${adviceOf(value)}`;
  for (const [name, member] of Object.entries(value)) {
    const why = unstorable(member, `${place}.${name}`, inside);
    if (why !== undefined) return why;
  }
  return undefined;
}

const nameOf = (value: object): string => String(value.constructor?.name || "class instance");

function adviceOf(value: object): string {
  if (value instanceof Map) return "; store Object.fromEntries(…)";
  if (value instanceof Set) return "; store an array, with [...]";
  return value instanceof Date ? "; store its toISOString()" : "; store a plain object";
}
