import { createHash, hash as hashOf } from "node:crypto";
import type { ObjectMembers } from "../../informer/scan/change.ts";
import { parseExactly } from "./exact-json.ts";
import { type ObjectText, RawFields } from "./raw-fields.ts";

/** Kubernetes' JSON nests down to 10,000 levels; a stack has a third of them. */
const deepest = 500;

/** Digests that are remembered by their fields' bytes: one for each object of a large namespace, 2 MB. */
const mostRemembered = 10_000;
/** Bytes of fields that are remembered as they are; those of more by their own digest. */
const shortBytes = 64;

/** Characters that stand for the fields' names, before those of their values. */
const tagLength = 4;

/**
 * Digests of the named fields of objects: equal ones mean that none of the fields changed. They say which fields they are
 * of, so that those of other fields are told apart. 128 bits of SHA-256: objects come from whoever may write to the
 * cluster, and a collision would hide a change.
 */
export class FieldsDigest {
  private readonly fields: readonly (readonly string[])[];
  private readonly tag: string;
  private readonly raw: RawFields;
  /** By the fields' bytes. Equal bytes have equal digests; others may have, too, since servers differ in order and spaces. */
  private readonly remembered = new Map<string, string>();

  constructor(fields: readonly (readonly string[])[]) {
    this.fields = fields;
    this.raw = new RawFields(fields);
    this.tag = createHash("sha256").update(JSON.stringify(fields)).digest("base64url").slice(0, tagLength);
  }

  /** Of an object as JSON. */
  of(json: string): string {
    // Where it nests deeper than can be gone into, any change of it counts.
    return this.digestOf(this.texts(json) ?? [json]);
  }

  /** The same of JSON in UTF-8, which is parsed only where these fields have not been seen with these bytes. */
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

  /** What stands for the fields' bytes; undefined where only parsing can tell them. */
  private bytesOf(object: ObjectText): string | undefined {
    const found = this.raw.of(object);
    if (!found) return undefined;
    let all = "";
    for (const bytes of found) {
      // No JSON begins with a hash sign, and none holds the character that ends each.
      all += `${bytes.length <= shortBytes ? bytes.toString("latin1") : `#${hashOf("sha256", bytes, "base64url")}`}\0`;
    }
    return all;
  }

  /** The fields' values; undefined where the object nests deeper than can be gone into. */
  private texts(json: string): readonly string[] | undefined {
    try {
      const object = parseExactly(json);
      return this.fields.map((path) => canonical(valueAt(object, path), 0));
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  /** Whether it was made of the same fields. */
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
 * JSON with sorted keys, so that the order a server writes them in is no change; a missing field is unlike null. Numbers count
 * by value: `1.0`, `1` and `1e0` are one. Whole numbers beyond 2^53 are exact.
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
