import { createHash, hash as hashOf } from "node:crypto";
import type { ObjectMembers } from "../../informer/scan/change.ts";
import { parseExactly } from "./exact-json.ts";
import { type ObjectText, RawFields } from "./raw-fields.ts";

/**
 * The nesting up to which values are compared. Kubernetes' JSON nests up to 10,000 levels, and the stack holds a third of them.
 */
const deepest = 500;

/** Size of the cache of digests: one for each object of a large namespace, 2 MB. */
const mostRemembered = 10_000;
/** Fields of up to this many bytes are the cache's key themselves; longer ones are hashed. */
const shortBytes = 64;

/** Characters of a digest that identify the fields, before those of their values. */
const tagLength = 4;

/**
 * Computes digests of an object's named fields: equal digests mean that no field changed. A digest starts with a tag of the
 * fields' names, so that digests of other fields are recognised. Uses 128 bits of SHA-256: anybody who may write to the cluster
 * writes objects, and a collision would hide a change.
 */
export class FieldsDigest {
  private readonly fields: readonly (readonly string[])[];
  private readonly tag: string;
  private readonly raw: RawFields;
  /**
   * Cache by the fields' bytes. Equal bytes have equal digests; different bytes may have, too, since servers differ in order and
   * spaces.
   */
  private readonly remembered = new Map<string, string>();

  constructor(fields: readonly (readonly string[])[]) {
    this.fields = fields;
    this.raw = new RawFields(fields);
    this.tag = createHash("sha256").update(JSON.stringify(fields)).digest("base64url").slice(0, tagLength);
  }

  /** Computes the digest of an object in JSON. */
  of(json: string): string {
    // If it nests too deep, the whole text is hashed, so that any change of it counts.
    return this.digestOf(this.texts(json) ?? [json]);
  }

  /** Computes the digest of an object in UTF-8 JSON. Parses it only if these fields have not been seen with these bytes. */
  ofBytes(json: Buffer, members?: ObjectMembers): string {
    const bytes = this.bytesOf({ body: json, members });
    const known = bytes === undefined ? undefined : this.remembered.get(bytes);
    if (known !== undefined) return known;
    const text = json.toString();
    const texts = this.texts(text);
    const digest = this.digestOf(texts ?? [text]);
    if (bytes !== undefined && texts) this.remember(bytes, digest);
    return digest;
  }

  private digestOf(texts: readonly string[]): string {
    const hash = createHash("sha256").update(JSON.stringify(this.fields));
    for (const text of texts) hash.update(text).update("\0");
    return this.tag + hash.digest("base64url").slice(0, 22);
  }

  private remember(bytes: string, digest: string): void {
    this.remembered.set(bytes, digest);
    if (this.remembered.size <= mostRemembered) return;
    for (const oldest of this.remembered.keys()) {
      this.remembered.delete(oldest);
      return;
    }
  }

  /** Returns the cache key of the fields' bytes; `undefined` if only a parser can find them. */
  private bytesOf(object: ObjectText): string | undefined {
    const found = this.raw.of(object);
    if (!found) return undefined;
    let all = "";
    for (const bytes of found) {
      // JSON never begins with a hash sign, and never holds the character that ends each field.
      all += `${bytes.length <= shortBytes ? bytes.toString("latin1") : `#${hashOf("sha256", bytes, "base64url")}`}\0`;
    }
    return all;
  }

  /** Returns the fields' values in canonical form; `undefined` if the object nests too deep. */
  private texts(json: string): readonly string[] | undefined {
    try {
      const object = parseExactly(json);
      return this.fields.map((path) => canonical(valueAt(object, path), 0));
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  /** Whether the digest is of the same fields. */
  made(digest: string): boolean {
    return digest.startsWith(this.tag);
  }
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const segment of path) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, segment)) return undefined;
    value = Reflect.get(value, segment);
  }
  return value;
}

/**
 * Formats a value as JSON with sorted keys, because the order in which a server writes them is not a change. A missing field
 * differs from null. Numbers are compared by value: `1.0`, `1` and `1e0` are equal. Whole numbers beyond 2^53 are exact.
 */
function canonical(value: unknown, depth: number): string {
  if (depth > deepest) throw new RangeError("too deep");
  if (value === undefined) return "";
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member, depth + 1)}`).join(",")}}`;
}
