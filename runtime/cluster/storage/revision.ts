import type { KubeObject } from "../api/object.ts";
import { encodeJson } from "../exact-json.ts";

/** Identifies an encoding of an object: its apiVersion, and whether it is the whole object or its metadata. */
type Representation = string;

/**
 * One object in the state that one write left. It never changes, so its JSON is encoded once per representation and shared by
 * every list and every watcher.
 */
export class Revision {
  readonly revision: number;
  readonly object: KubeObject;
  private readonly encoded = new Map<Representation, Buffer>();

  constructor(revision: number, object: KubeObject) {
    this.revision = revision;
    this.object = object;
  }

  /** Returns the JSON bytes in a representation; `render` builds it the first time. */
  bytes(representation: Representation, render: (object: KubeObject) => unknown): Buffer {
    let bytes = this.encoded.get(representation);
    if (!bytes) {
      bytes = Buffer.from(encodeJson(render(this.object)));
      this.encoded.set(representation, bytes);
    }
    return bytes;
  }
}

/**
 * The same content under another resourceVersion, as a deletion shows the object, or a change after which a selector no longer
 * matches.
 */
export function atRevision(object: KubeObject, revision: number): Revision {
  return new Revision(revision, {
    ...object,
    metadata: { ...object.metadata, resourceVersion: String(revision) },
  });
}
