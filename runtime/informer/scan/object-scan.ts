import { noResourceVersion, type ResourceVersion, resourceVersion } from "../../base/resource-version.ts";
import type { ObjectMembers, ObjectMeta } from "./change.ts";
import { scanText } from "./text-scan.ts";
import * as layout from "./wasm/layout.ts";
import { typeField } from "./wasm/layout.ts";

const openBrace = 0x7b;

const beforeIdentity = Buffer.from("{");
const beforeMetadata = Buffer.from('"metadata":');
const afterMetadata = Buffer.from("}");

/** Size of the cuts of an object without duplicate keys, in words. */
const usualCuts = 3 * layout.cutWords;

/**
 * Finds the fields that the host needs in one Kubernetes object's JSON text and checks that the text is well formed, without
 * parsing it. Fields hold the last object scanned. If a key is duplicated, the last value counts, as for JSON.parse.
 */
export class ObjectScanner implements ObjectMeta {
  namespace = "";
  name = "";
  uid = "";
  /** Or `noResourceVersion`. */
  resourceVersion: ResourceVersion = noResourceVersion;
  apiVersion = "";
  kind = "";
  /** The object's own span; empty if absent. */
  start = 0;
  end = 0;
  /** The span of `metadata.annotations`; empty if absent. */
  annotationsStart = 0;
  annotationsEnd = 0;
  /** The span of `metadata`; empty if absent. */
  private metadataStart = 0;
  private metadataEnd = 0;
  /**
   * Words of the object's own members, up to `layout.mostMembers`. Reused for every object: an array that is emptied has to grow
   * again.
   */
  private readonly spans = new Int32Array(layout.mostMembers * layout.memberWords);
  private memberCount = 0;
  /** Spans to leave out, ascending: start, end, and 1 if it is `kind` or `apiVersion`. */
  private cuts: number[] = [];
  private cutCount = 0;
  private identityCuts = 0;
  private lastKind = "";
  private lastApiVersion = "";
  private lastNamespace = "";

  /** Scans a text. Returns whether it is one well-formed JSON object; otherwise the fields are meaningless. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    const found = scanText(bytes, start, end, "object");
    if (found) this.take(found, bytes);
    return found !== undefined;
  }

  /** Takes over the results of a scan of `bytes`. */
  take(found: Int32Array, bytes: Buffer): void {
    this.start = startOf(found, layout.objectField);
    this.end = endOf(found, layout.objectField);
    if (bytes[this.start] !== openBrace) this.start = this.end = 0;
    this.metadataStart = startOf(found, layout.metadataField);
    this.metadataEnd = endOf(found, layout.metadataField);
    this.annotationsStart = startOf(found, layout.annotationsField);
    this.annotationsEnd = endOf(found, layout.annotationsField);
    this.kind = this.lastKind = stringOf(found, layout.kindField, bytes, this.lastKind);
    this.apiVersion = this.lastApiVersion = stringOf(found, layout.apiVersionField, bytes, this.lastApiVersion);
    this.namespace = this.lastNamespace = stringOf(found, layout.namespaceField, bytes, this.lastNamespace);
    this.name = stringOf(found, layout.nameField, bytes);
    this.uid = stringOf(found, layout.uidField, bytes);
    this.resourceVersion = resourceVersion(stringOf(found, layout.resourceVersionField, bytes));
    this.takeMembers(found);
    this.takeCuts(found);
  }

  private takeMembers(found: Int32Array): void {
    this.memberCount = found[layout.memberCount] as number;
    const count = Math.min(this.memberCount, layout.mostMembers) * layout.memberWords;
    for (let index = 0; index < count; index++) this.spans[index] = found[layout.members + index] as number;
  }

  private takeCuts(found: Int32Array): void {
    const from = found[layout.cutsAt] as number;
    const count = (found[layout.cutCount] as number) * layout.cutWords;
    if (this.cuts.length > usualCuts) this.cuts = [];
    this.cutCount = count;
    this.identityCuts = 0;
    for (let index = 0; index < count; index++) this.cuts[index] = found[from + index] as number;
    for (let index = 2; index < count; index += layout.cutWords) this.identityCuts += this.cuts[index] as number;
  }

  /** Returns a copy of the metadata. */
  meta(): ObjectMeta {
    return {
      namespace: this.namespace,
      name: this.name,
      uid: this.uid,
      resourceVersion: resourceVersion(this.resourceVersion),
    };
  }

  /**
   * Returns the object's text without `metadata.managedFields`, as a view of `bytes`: the part before a cut is moved up to the
   * part after it, so `bytes` must not be read after this call. A copy would cost 1 us, and 3 us more to collect it.
   * @param identity text to put in front instead of the object's own `kind` and `apiVersion`, comma included; the result is then
   * a copy.
   */
  body(bytes: Buffer, from: number, end: number, identity?: Buffer): Buffer {
    if (identity) return this.bodyAs(identity, bytes, from, end);
    const { cuts, cutCount } = this;
    // Works from the last cut to the first, so that each byte moves once, however many cuts there are.
    let start = end;
    let keptEnd = end;
    for (let index = cutCount - layout.cutWords; index >= 0; index -= layout.cutWords) {
      if (cuts[index + 2] === 1) continue;
      const [cutStart, cutEnd] = [cuts[index] as number, cuts[index + 1] as number];
      start -= keptEnd - cutEnd;
      if (start !== cutEnd) bytes.copyWithin(start, cutEnd, keptEnd);
      keptEnd = cutStart;
    }
    start -= keptEnd - from;
    if (start !== from) bytes.copyWithin(start, from, keptEnd);
    return bytes.subarray(start, end);
  }

  private bodyAs(identity: Buffer, bytes: Buffer, from: number, end: number): Buffer {
    const { cuts, cutCount } = this;
    let length = end - from + identity.length;
    for (let index = 0; index < cutCount; index += layout.cutWords) {
      length -= (cuts[index + 1] as number) - (cuts[index] as number);
    }
    const body = Buffer.allocUnsafe(length);
    body[0] = openBrace;
    identity.copy(body, 1);
    let written = identity.length + 1;
    let read = from + 1;
    for (let index = 0; index < cutCount; index += layout.cutWords) {
      written += bytes.copy(body, written, read, cuts[index]);
      read = cuts[index + 1] as number;
    }
    bytes.copy(body, written, read, end);
    return body;
  }

  /** Returns the offsets of the object's members in a `body` without `identity`; `undefined` if they are not worth keeping. */
  members(from: number): ObjectMembers | undefined {
    const { spans, memberCount, cuts, cutCount } = this;
    const drops = cutCount / layout.cutWords - this.identityCuts;
    if (memberCount > layout.mostMembers || drops > 1) return undefined;
    let [cutStart, cutLength] = [Number.POSITIVE_INFINITY, 0];
    for (let index = 0; index < cutCount; index += layout.cutWords) {
      if (cuts[index + 2] === 1) continue;
      cutStart = cuts[index] as number;
      cutLength = (cuts[index + 1] as number) - cutStart;
    }
    const count = memberCount * layout.memberWords;
    const members = new Array<number>(count);
    for (let index = 0; index < count; index++) {
      const at = spans[index] as number;
      members[index] = at > cutStart ? at - from - cutLength : at - from;
    }
    return members;
  }

  /**
   * Returns a copy of the object's metadata alone, without `managedFields`, in the metadata form of an API server.
   * @param identity its `kind` and `apiVersion`, comma included.
   */
  metadataBody(bytes: Buffer, identity: Buffer): Buffer {
    const { metadataStart, metadataEnd, cuts, cutCount } = this;
    const parts: Uint8Array[] = [beforeIdentity, identity, beforeMetadata];
    let read = metadataStart;
    for (let index = 0; index < cutCount; index += layout.cutWords) {
      const start = cuts[index] as number;
      if (start < metadataStart || start >= metadataEnd) continue;
      parts.push(bytes.subarray(read, start));
      read = cuts[index + 1] as number;
    }
    parts.push(bytes.subarray(read, metadataEnd), afterMetadata);
    return Buffer.concat(parts);
  }
}

function startOf(found: Int32Array, field: number): number {
  return found[layout.slots + field * layout.slotWords] as number;
}

function endOf(found: Int32Array, field: number): number {
  return found[layout.slots + field * layout.slotWords + 1] as number;
}

/**
 * Returns a string field's text; "" if absent or of another type.
 * @param guess the previous value: if it is equal again, as kinds and namespaces usually are, no string is created.
 */
function stringOf(found: Int32Array, field: number, bytes: Buffer, guess = ""): string {
  const start = startOf(found, field);
  const end = endOf(found, field);
  const form = found[layout.slots + field * layout.slotWords + 2];
  if (form === layout.noString) return "";
  if (form === layout.codedString) return JSON.parse(bytes.toString("utf8", start, end)) as string;
  if (guess.length === end - start - 2 && isText(bytes, start + 1, guess)) return guess;
  return bytes.toString("latin1", start + 1, end - 1);
}

function isText(bytes: Buffer, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) if (bytes[start + index] !== text.charCodeAt(index)) return false;
  return true;
}

/** A bookmark with this annotation ends the initial events of a WatchList (KEP-3157). */
const initialEventsEnd = "k8s.io/initial-events-end";

/**
 * Scans one event of a watch: its type, its object's span and metadata. It creates only the four short strings of the metadata.
 * The whole text is checked, because an event that is not well formed must end the stream instead of failing later in an isolate.
 * Fields hold the last event scanned.
 */
export class EnvelopeScanner {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`, or any other value in its place; "" if absent. */
  type = "";
  readonly object = new ObjectScanner();
  private lastType = "";

  /** Scans a text. Returns whether it is one well-formed JSON object; otherwise the fields are meaningless. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    const found = scanText(bytes, start, end, "event");
    if (!found) return false;
    this.type = stringOf(found, typeField, bytes, this.lastType);
    if (this.type !== "") this.lastType = this.type;
    this.object.take(found, bytes);
    return true;
  }

  /** Whether the scanned bookmark ends the initial events. `bytes` are those of the scan. */
  endsInitialEvents(bytes: Buffer): boolean {
    const { annotationsStart, annotationsEnd } = this.object;
    if (annotationsEnd === 0) return false;
    const annotations: unknown = JSON.parse(bytes.toString("utf8", annotationsStart, annotationsEnd));
    return (annotations as Record<string, unknown> | null)?.[initialEventsEnd] === "true";
  }
}
