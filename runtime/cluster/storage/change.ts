import { atRevision, type Revision } from "./revision.ts";

/** One write to one object. */
export class Change {
  readonly revision: number;
  readonly key: string;
  /** Before the write; absent for a creation. */
  readonly previous: Revision | undefined;
  /** After the write; absent for a deletion. */
  readonly current: Revision | undefined;
  /** Monotonic time in milliseconds, from which the age of the history is computed. */
  readonly at: number;
  private gone: Revision | undefined;

  constructor(change: {
    revision: number;
    key: string;
    previous: Revision | undefined;
    current: Revision | undefined;
    at: number;
  }) {
    this.revision = change.revision;
    this.key = change.key;
    this.previous = change.previous;
    this.current = change.current;
    this.at = change.at;
  }

  /**
   * The object that a watcher receives when its selector no longer matches: the previous content with this write's revision.
   */
  get lost(): Revision {
    if (!this.gone) {
      if (!this.previous) throw new Error("a creation hides nothing");
      this.gone = atRevision(this.previous.object, this.revision);
    }
    return this.gone;
  }
}
