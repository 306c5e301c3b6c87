import { isScalar } from "yaml";

/** A path into a document: keys and indices. */
export type Path = readonly PropertyKey[];

/** Formats a path for people: `spec.triggers[0].watch.kind`. */
export function showPath(path: Path): string {
  let shown = "";
  for (const step of path) {
    const name = String(step);
    if (typeof step === "number") shown += `[${name}]`;
    else if (/^[\w$-]+$/.test(name)) shown += shown === "" ? name : `.${name}`;
    else shown += `[${JSON.stringify(name)}]`;
  }
  return shown;
}

/** Returns the value at a path of plain data; `undefined` if it does not exist. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, step)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[step];
  }
  return current;
}

/** Returns a key's node as the text that it has in plain data. */
export const keyOf = (key: unknown): string => String(isScalar(key) ? key.value : key);
