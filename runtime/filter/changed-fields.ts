import { createHash } from "node:crypto";

/**
 * A digest of the named fields of a parsed object: equal digests mean that none of them changed. 128 bits of SHA-256:
 * objects come from whoever may write to the cluster, and a collision would hide a change.
 */
export function fieldsDigest(object: unknown, fields: readonly (readonly string[])[]): string {
  const hash = createHash("sha256");
  for (const path of fields) hash.update(canonical(valueAt(object, path))).update("\0");
  return hash.digest("base64url").slice(0, 22);
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const segment of path) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, segment)) return undefined;
    value = Reflect.get(value, segment);
  }
  return value;
}

/** JSON with sorted keys, so that the order a server writes them in is no change; a missing field is unlike null. */
function canonical(value: unknown): string {
  if (value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}
