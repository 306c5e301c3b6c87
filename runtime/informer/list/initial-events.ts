import { predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type { Change } from "../scan/change.ts";
import { SessionEnded } from "../stream/failure.ts";
import { HeldChanges } from "./held-changes.ts";

/**
 * The first part of a WatchList: what exists, as ADDED events in no order of resourceVersion, then a bookmark that
 * marks their end. A busy resource's live events come before that mark as well. They are held, not mixed in, because a
 * list has one word on each object; the list then ends just before the first of them.
 */
export class InitialEvents {
  /** Live events that came before the end mark. */
  readonly held = new HeldChanges();
  private readonly item: (change: Change) => void;

  /** @param item takes each object that exists. */
  constructor(item: (change: Change) => void) {
    this.item = item;
  }

  /** Throws Ended where more live events come before the end mark than can be held. */
  change(change: Change): void {
    if (change.type === "Added" && !this.held.first) this.item(change);
    else if (!this.held.add(change)) throw new SessionEnded({ type: "unmarked" });
  }

  /**
   * The resourceVersion of the list that ends at a mark with `marked`; undefined where live events were held and their
   * resourceVersions cannot be counted back.
   */
  listVersion(marked: ResourceVersion): ResourceVersion | undefined {
    const { first } = this.held;
    return first ? predecessor(first.meta.resourceVersion) : marked;
  }
}
