import { predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type { Change } from "../scan/change.ts";
import { SessionEnded } from "../stream/failure.ts";
import { HeldChanges } from "./held-changes.ts";

/**
 * First part of a WatchList: ADDED events for the existing objects in no order of resourceVersion, then a bookmark that marks
 * their end. A busy resource's live events are interleaved before that mark. They are held back, because a list has one entry per
 * object; the list then ends just before the first of them.
 */
export class InitialEvents {
  /** Live events received before the end mark. */
  readonly held = new HeldChanges();
  private readonly item: (change: Change) => void;

  /** @param item called for each existing object. */
  constructor(item: (change: Change) => void) {
    this.item = item;
  }

  /** Throws SessionEnded if more live events than can be held precede the end mark. */
  change(change: Change): void {
    if (change.type === "Added" && !this.held.first) this.item(change);
    else if (!this.held.add(change)) throw new SessionEnded({ type: "unmarked" });
  }

  /**
   * Returns the resourceVersion of the list that ends at a mark with `marked`; `undefined` if live events were held and the
   * resourceVersion before the first cannot be computed.
   */
  listVersion(marked: ResourceVersion): ResourceVersion | undefined {
    const { first } = this.held;
    return first ? predecessor(first.meta.resourceVersion) : marked;
  }
}
