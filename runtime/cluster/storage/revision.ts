import type { KubeObject } from "../api/object.ts";
import { encodeJson } from "../exact-json.ts";

/** How an object is told apart on the wire: its apiVersion, whole or its metadata alone. */
type Representation = string;

/**
 * One object as one write left it. It never changes, so its JSON is made once per representation and shared by every
 * list and every watcher.
 */
export class Revision {
  readonly revision: number;
  readonly object: KubeObject;
  private readonly encoded = new Map<Representation, Buffer>();

  constructor(revision: number, object: KubeObject) {
    this.revision = revision;
    this.object = object;
  }

  /** The JSON bytes in a representation, made by `render` the first time. */
  bytes(representation: Representation, render: (object: KubeObject) => unknown): Buffer {
    let bytes = this.encoded.get(representation);
    if (!bytes) {
      bytes = Buffer.from(encodeJson(render(this.object)));
      this.encoded.set(representation, bytes);
    }
    return bytes;
  }
}

/** The same content under another resourceVersion: what a deletion, or leaving a selector, shows of an object. */
export function atRevision(object: KubeObject, revision: number): Revision {
  return new Revision(revision, {
    ...object,
    metadata: { ...object.metadata, resourceVersion: String(revision) },
  });
}
