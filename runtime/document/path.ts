import { isScalar } from "yaml";

/** A path into a document: keys and indices. */
export type Path = readonly PropertyKey[];

/** A path as people write it: `spec.triggers[0].watch.kind`. */
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

/** A key's node as the text that it is in plain data. */
export const keyOf = (key: unknown): string => String(isScalar(key) ? key.value : key);
