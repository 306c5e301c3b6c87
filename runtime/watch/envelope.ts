import { equals, malformed, skipColon, skipSpace, skipString, skipValue } from "./json-scan.ts";
import { escapedKey, ObjectScanner, stringAt } from "./object-scan.ts";

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;

const typeKey = Buffer.from("type");
const objectKey = Buffer.from("object");

/** A bookmark with this annotation ends the initial events of a WatchList (KEP-3157). */
const initialEventsEnd = "k8s.io/initial-events-end";

/**
 * Scans one line of a watch: its type, its object's place and metadata. Nothing is parsed or built but the four short
 * strings of the metadata. The whole line is checked, because a line that is not well formed must end the stream. No
 * isolate must find it out later. Fields hold the last line scanned.
 */
export class EnvelopeScanner {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`; whatever else stands there; "" where nothing does. */
  type = "";
  private lastType = "";
  /** The object's span; empty where the line has none. */
  objectStart = 0;
  objectEnd = 0;
  readonly object = new ObjectScanner();

  /** Whether the line is one well-formed JSON object; only then do the fields mean anything. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    this.type = "";
    this.objectStart = this.objectEnd = 0;
    let at = skipSpace(bytes, start, end);
    if (at >= end || bytes[at] !== openBrace) return false;
    at = skipSpace(bytes, at + 1, end);
    if (at < end && bytes[at] === closeBrace) return skipSpace(bytes, at + 1, end) === end;
    for (;;) {
      if (at >= end || bytes[at] !== quote) return false;
      const key = at + 1;
      const afterKey = skipString(bytes, key, end);
      if (afterKey < 0) return false;
      const value = skipColon(bytes, afterKey, end);
      if (value < 0) return false;
      const after = this.member(bytes, key, afterKey - 1, value, end);
      if (after < 0) return false;
      at = skipSpace(bytes, after, end);
      if (at >= end) return false;
      if (bytes[at] === closeBrace) return skipSpace(bytes, at + 1, end) === end;
      if (bytes[at] !== comma) return false;
      at = skipSpace(bytes, at + 1, end);
    }
  }

  /** Whether the bookmark that was scanned ends the initial events. `bytes` are those of the scan. */
  endsInitialEvents(bytes: Buffer): boolean {
    const { annotationsStart, annotationsEnd } = this.object;
    if (annotationsEnd === 0) return false;
    const annotations: unknown = JSON.parse(bytes.toString("utf8", annotationsStart, annotationsEnd));
    return (annotations as Record<string, unknown> | null)?.[initialEventsEnd] === "true";
  }

  /** @returns the index after the member's value, or `malformed`. */
  private member(bytes: Buffer, key: number, keyEnd: number, value: number, end: number): number {
    const length = keyEnd - key;
    let field = length === 4 && equals(bytes, key, typeKey) ? typeKey : undefined;
    if (!field && length === 6 && equals(bytes, key, objectKey)) field = objectKey;
    field ??= escapedKey(bytes, key, keyEnd, [typeKey, objectKey]);
    if (field === objectKey) {
      const after = this.object.scan(bytes, value, end);
      const isObject = bytes[value] === openBrace;
      this.objectStart = isObject ? value : 0;
      this.objectEnd = isObject ? after : 0;
      return after;
    }
    const after = skipValue(bytes, value, end);
    if (field === typeKey && after !== malformed)
      this.type = this.lastType = stringAt(bytes, value, after, this.lastType);
    return after;
  }
}
