import { ObjectScanner, stringOf } from "./object-scan.ts";
import { scanText } from "./text-scan.ts";
import { typeField } from "./wasm/layout.ts";

/** A bookmark with this annotation ends the initial events of a WatchList (KEP-3157). */
const initialEventsEnd = "k8s.io/initial-events-end";

/**
 * Scans one event of a watch: its type, its object's place and metadata. Nothing is parsed or built but the four short
 * strings of the metadata. The whole text is checked, because an event that is not well formed must end the stream. No
 * isolate must find it out later. Fields hold the last event scanned.
 */
export class EnvelopeScanner {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`; whatever else stands there; "" where nothing does. */
  type = "";
  readonly object = new ObjectScanner();
  private lastType = "";

  /** Whether the text is one well-formed JSON object; only then do the fields mean anything. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    const found = scanText(bytes, start, end, "event");
    if (!found) return false;
    this.type = stringOf(found, typeField, bytes, this.lastType);
    if (this.type !== "") this.lastType = this.type;
    this.object.take(found, bytes);
    return true;
  }

  /** The object's span; empty where the event has none. */
  get objectStart(): number {
    return this.object.start;
  }

  get objectEnd(): number {
    return this.object.end;
  }

  /** Whether the bookmark that was scanned ends the initial events. `bytes` are those of the scan. */
  endsInitialEvents(bytes: Buffer): boolean {
    const { annotationsStart, annotationsEnd } = this.object;
    if (annotationsEnd === 0) return false;
    const annotations: unknown = JSON.parse(bytes.toString("utf8", annotationsStart, annotationsEnd));
    return (annotations as Record<string, unknown> | null)?.[initialEventsEnd] === "true";
  }
}
