import { noResourceVersion, type ResourceVersion, resourceVersion } from "../resource-version.ts";
import type { ObjectMeta } from "./change.ts";
import { equals, malformed, skipColon, skipSpace, skipString, skipValue } from "./json-scan.ts";
import { memberOffsets, type ObjectMembers } from "./object-members.ts";

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;

const literal = (text: string): Uint8Array => Buffer.from(text, "latin1");
const keys = {
  apiVersion: literal("apiVersion"),
  kind: literal("kind"),
  metadata: literal("metadata"),
  namespace: literal("namespace"),
  name: literal("name"),
  uid: literal("uid"),
  resourceVersion: literal("resourceVersion"),
  managedFields: literal("managedFields"),
  annotations: literal("annotations"),
};

/** Offsets that are kept of an object's own members: sixteen of them. */
const mostSpans = 16 * memberOffsets.count;

/** Numbers of cuts of an object that says nothing twice. */
const usualCuts = 9;

const beforeIdentity = literal("{");
const beforeMetadata = literal('"metadata":');
const afterMetadata = literal("}");

/**
 * Finds what the host needs of one Kubernetes object in its JSON text, checks that the text is well formed, and parses
 * nothing. Fields hold the last object scanned. Of a key that stands twice the last counts, as for JSON.parse.
 */
export class ObjectScanner implements ObjectMeta {
  namespace = "";
  name = "";
  uid = "";
  /** Or `noResourceVersion`. */
  resourceVersion: ResourceVersion = noResourceVersion;
  apiVersion = "";
  kind = "";
  /** The span of `metadata.annotations`, empty where there are none. */
  annotationsStart = 0;
  annotationsEnd = 0;
  /** The span of `metadata`, empty where there is none. */
  private metadataStart = 0;
  private metadataEnd = 0;
  /** Offsets of the object's own members, as far as they are kept. They stay for the next object: an array that empties grows anew. */
  private readonly spans = new Int32Array(mostSpans);
  private spanCount = 0;
  /** Spans to leave out, ascending: start, end, and 1 where it is `kind` or `apiVersion`. */
  private cuts: number[] = [];
  private cutCount = 0;
  private identityCuts = 0;
  private lastKind = "";
  private lastApiVersion = "";
  private lastNamespace = "";

  /** @returns the index after the object, or `malformed`; a value that is no object has no fields. */
  scan(bytes: Buffer, from: number, end: number): number {
    this.namespace = this.name = this.uid = this.apiVersion = this.kind = "";
    this.resourceVersion = noResourceVersion;
    this.annotationsStart = this.annotationsEnd = this.cutCount = this.identityCuts = 0;
    this.metadataStart = this.metadataEnd = this.spanCount = 0;
    if (this.cuts.length > usualCuts) this.cuts = [];
    if (bytes[from] !== openBrace) return skipValue(bytes, from, end);
    let at = skipSpace(bytes, from + 1, end);
    if (bytes[at] === closeBrace && at < end) return at + 1;
    let before = at;
    let kept = false;
    for (;;) {
      if (bytes[at] !== quote) return malformed;
      const key = at + 1;
      const afterKey = skipString(bytes, key, end);
      if (afterKey < 0) return malformed;
      const value = skipColon(bytes, afterKey, end);
      if (value < 0) return malformed;
      const field = fieldOf(bytes, key, afterKey - 1);
      let after: number;
      if (field === keys.metadata) {
        after = this.scanMetadata(bytes, value, end);
        this.metadataStart = value;
        this.metadataEnd = after;
      } else after = skipValue(bytes, value, end);
      if (after < 0) return malformed;
      this.span(key, afterKey - 1, value, after);
      const identity = field === keys.kind || field === keys.apiVersion;
      if (field === keys.kind) this.kind = this.lastKind = stringAt(bytes, value, after, this.lastKind);
      else if (field === keys.apiVersion)
        this.apiVersion = this.lastApiVersion = stringAt(bytes, value, after, this.lastApiVersion);
      const next = skipSpace(bytes, after, end);
      if (identity) this.cut(kept ? before : at, kept || bytes[next] !== comma ? after : next + 1, 1);
      else kept = true;
      if (bytes[next] === closeBrace && next < end) return next + 1;
      if (bytes[next] !== comma || next >= end) return malformed;
      before = next;
      at = skipSpace(bytes, next + 1, end);
    }
  }

  /** A copy of what was found. */
  meta(): ObjectMeta {
    return {
      namespace: this.namespace,
      name: this.name,
      uid: this.uid,
      resourceVersion: resourceVersion(this.resourceVersion),
    };
  }

  /**
   * The object's text without `metadata.managedFields`: a view of `bytes`, in which what stands before a cut moves up to what
   * follows it. So `bytes` are read no more once this was called. A copy costs 1 us, and 3 us more to collect it.
   * @param identity what to begin the object with instead of its own `kind` and `apiVersion`, comma included: a copy then.
   */
  body(bytes: Buffer, from: number, end: number, identity?: Buffer): Buffer {
    if (identity) return this.bodyAs(identity, bytes, from, end);
    const { cuts, cutCount } = this;
    let start = from;
    for (let index = 0; index < cutCount; index += 3) {
      if (cuts[index + 2] === 1) continue;
      const [cutStart, cutEnd] = [cuts[index] as number, cuts[index + 1] as number];
      const moved = start + cutEnd - cutStart;
      bytes.copyWithin(moved, start, cutStart);
      start = moved;
    }
    return bytes.subarray(start, end);
  }

  private bodyAs(identity: Buffer, bytes: Buffer, from: number, end: number): Buffer {
    const { cuts, cutCount } = this;
    let length = end - from + identity.length;
    for (let index = 0; index < cutCount; index += 3) {
      length -= (cuts[index + 1] as number) - (cuts[index] as number);
    }
    const body = Buffer.allocUnsafe(length);
    body[0] = openBrace;
    identity.copy(body, 1);
    let written = identity.length + 1;
    let read = from + 1;
    for (let index = 0; index < cutCount; index += 3) {
      written += bytes.copy(body, written, read, cuts[index]);
      read = cuts[index + 1] as number;
    }
    bytes.copy(body, written, read, end);
    return body;
  }

  /** Where the object's members are in its `body` with no other identity; undefined where they are not worth it. */
  members(from: number): ObjectMembers | undefined {
    const { spans, spanCount, cuts, cutCount } = this;
    const drops = cutCount / 3 - this.identityCuts;
    if (spanCount > mostSpans || drops > 1) return undefined;
    let [cutStart, cutLength] = [Number.POSITIVE_INFINITY, 0];
    for (let index = 0; index < cutCount; index += 3) {
      if (cuts[index + 2] === 1) continue;
      cutStart = cuts[index] as number;
      cutLength = (cuts[index + 1] as number) - cutStart;
    }
    const members = new Array<number>(spanCount);
    for (let index = 0; index < spanCount; index++) {
      const at = spans[index] as number;
      members[index] = at > cutStart ? at - from - cutLength : at - from;
    }
    return members;
  }

  /**
   * A copy of the object's metadata alone, without `managedFields`, as the metadata form of an API server has it.
   * @param identity its `kind` and `apiVersion`, comma included.
   */
  metadataBody(bytes: Buffer, identity: Buffer): Buffer {
    const { metadataStart, metadataEnd, cuts, cutCount } = this;
    const parts: Uint8Array[] = [beforeIdentity, identity, beforeMetadata];
    let read = metadataStart;
    for (let index = 0; index < cutCount; index += 3) {
      const start = cuts[index] as number;
      if (start < metadataStart || start >= metadataEnd) continue;
      parts.push(bytes.subarray(read, start));
      read = cuts[index + 1] as number;
    }
    parts.push(bytes.subarray(read, metadataEnd), afterMetadata);
    return Buffer.concat(parts);
  }

  private scanMetadata(bytes: Buffer, from: number, end: number): number {
    this.namespace = this.name = this.uid = "";
    this.resourceVersion = noResourceVersion;
    this.annotationsStart = this.annotationsEnd = 0;
    if (bytes[from] !== openBrace) return skipValue(bytes, from, end);
    let at = skipSpace(bytes, from + 1, end);
    if (bytes[at] === closeBrace && at < end) return at + 1;
    let before = at;
    let kept = false;
    for (;;) {
      if (bytes[at] !== quote) return malformed;
      const key = at + 1;
      const afterKey = skipString(bytes, key, end);
      if (afterKey < 0) return malformed;
      const value = skipColon(bytes, afterKey, end);
      if (value < 0) return malformed;
      const after = skipValue(bytes, value, end);
      if (after < 0) return malformed;
      const field = metadataFieldOf(bytes, key, afterKey - 1);
      const next = skipSpace(bytes, after, end);
      if (field === keys.managedFields) {
        this.cut(kept ? before : at, kept || bytes[next] !== comma ? after : next + 1, 0);
      } else {
        kept = true;
        if (field !== undefined) this.keep(field, bytes, value, after);
      }
      if (bytes[next] === closeBrace && next < end) return next + 1;
      if (bytes[next] !== comma || next >= end) return malformed;
      before = next;
      at = skipSpace(bytes, next + 1, end);
    }
  }

  private keep(field: Uint8Array, bytes: Buffer, value: number, after: number): void {
    if (field === keys.name) this.name = stringAt(bytes, value, after);
    else if (field === keys.namespace)
      this.namespace = this.lastNamespace = stringAt(bytes, value, after, this.lastNamespace);
    else if (field === keys.uid) this.uid = stringAt(bytes, value, after);
    else if (field === keys.resourceVersion) this.resourceVersion = resourceVersion(stringAt(bytes, value, after));
    else if (field === keys.annotations) {
      this.annotationsStart = value;
      this.annotationsEnd = after;
    }
  }

  private cut(start: number, end: number, identity: 0 | 1): void {
    const { cuts, cutCount } = this;
    cuts[cutCount] = start;
    cuts[cutCount + 1] = end;
    cuts[cutCount + 2] = identity;
    this.cutCount += 3;
    this.identityCuts += identity;
  }

  private span(keyStart: number, keyEnd: number, valueStart: number, valueEnd: number): void {
    const { spans, spanCount } = this;
    this.spanCount += memberOffsets.count;
    if (this.spanCount > mostSpans) return;
    spans[spanCount] = keyStart;
    spans[spanCount + 1] = keyEnd;
    spans[spanCount + 2] = valueStart;
    spans[spanCount + 3] = valueEnd;
  }
}

/**
 * A string value's text; "" for a value of another type.
 * @param guess what it was last time: where it is the same again, as kinds and namespaces are, no string is made.
 */
export function stringAt(bytes: Buffer, start: number, end: number, guess = ""): string {
  if (bytes[start] !== quote) return "";
  if (guess.length === end - start - 2 && isText(bytes, start + 1, guess)) return guess;
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at] as number;
    if (byte === 0x5c || byte >= 0x80) return JSON.parse(bytes.toString("utf8", start, end)) as string;
  }
  return bytes.toString("latin1", start + 1, end - 1);
}

function isText(bytes: Buffer, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    // A backslash would be an escape, and beyond ASCII a character is several bytes.
    if (bytes[start + index] !== code || code === 0x5c || code >= 0x80) return false;
  }
  return true;
}

/** Which of an object's own fields the key is. */
function fieldOf(bytes: Buffer, start: number, end: number): Uint8Array | undefined {
  switch (end - start) {
    case 4:
      if (equals(bytes, start, keys.kind)) return keys.kind;
      break;
    case 8:
      if (equals(bytes, start, keys.metadata)) return keys.metadata;
      break;
    case 10:
      if (equals(bytes, start, keys.apiVersion)) return keys.apiVersion;
      break;
  }
  return escapedKey(bytes, start, end, [keys.kind, keys.metadata, keys.apiVersion]);
}

const metadataKeys = [
  keys.namespace,
  keys.name,
  keys.uid,
  keys.resourceVersion,
  keys.managedFields,
  keys.annotations,
] as const;

function metadataFieldOf(bytes: Buffer, start: number, end: number): Uint8Array | undefined {
  switch (end - start) {
    case 3:
      if (equals(bytes, start, keys.uid)) return keys.uid;
      break;
    case 4:
      if (equals(bytes, start, keys.name)) return keys.name;
      break;
    case 9:
      if (equals(bytes, start, keys.namespace)) return keys.namespace;
      break;
    case 11:
      if (equals(bytes, start, keys.annotations)) return keys.annotations;
      break;
    case 13:
      if (equals(bytes, start, keys.managedFields)) return keys.managedFields;
      break;
    case 15:
      if (equals(bytes, start, keys.resourceVersion)) return keys.resourceVersion;
      break;
  }
  return escapedKey(bytes, start, end, metadataKeys);
}

/** No server writes `"n\u0061me"`, but JSON.parse in the isolate would read it as `name`, so we do. */
export function escapedKey<Key extends Uint8Array>(
  bytes: Buffer,
  start: number,
  end: number,
  known: readonly Key[],
): Key | undefined {
  for (let at = start; at < end; at++) {
    if (bytes[at] !== 0x5c) continue;
    const text = stringAt(bytes, start - 1, end + 1);
    return known.find((key) => text === Buffer.from(key).toString("latin1"));
  }
  return undefined;
}
