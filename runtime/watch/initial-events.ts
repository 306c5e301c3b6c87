import { predecessor, type ResourceVersion } from "../resource-version.ts";
import type { Change } from "./change.ts";
import { Ended } from "./failure.ts";
import type { ListReceiver } from "./subscriber.ts";

/** Live events that a server may send before it marks the end of the initial ones, which takes it about a second. */
const heldLimit = 10_000;
const heldBytesLimit = 32 * 1024 * 1024;

/**
 * The first part of a WatchList: what exists, as ADDED events in no order of resourceVersion, then a bookmark that
 * marks their end. A busy resource's live events come before that mark as well. They are held, not mixed in, because a
 * list has one word on each object; the list then ends just before the first of them.
 */
export class InitialEvents {
  /** Items handed on. */
  items = 0;
  private readonly receiver: ListReceiver;
  private readonly held: Change[] = [];
  private heldBytes = 0;
  private open = true;

  constructor(receiver: ListReceiver) {
    this.receiver = receiver;
  }

  /** Whether the end mark is still to come. */
  get running(): boolean {
    return this.open;
  }

  /** Throws Ended where more live events come before the end mark than can be held. */
  change(change: Change): void {
    if (change.type === "Added" && this.held.length === 0) {
      this.items++;
      this.receiver.item(change);
      return;
    }
    this.held.push(change);
    this.heldBytes += change.body.length;
    if (this.held.length > heldLimit || this.heldBytes > heldBytesLimit) {
      throw new Ended({ type: "unmarked" });
    }
  }

  /**
   * The resourceVersion of the list that ends at a mark with `marked`; undefined where live events were held and their
   * resourceVersions cannot be counted back.
   */
  listVersion(marked: ResourceVersion): ResourceVersion | undefined {
    const first = this.held[0]?.meta.resourceVersion;
    return first === undefined ? marked : predecessor(first);
  }

  /** The list is complete. @returns whether it counts, and the live events that were held, in their order. */
  end(listVersion: ResourceVersion): { readonly outcome: "counted" | "held"; readonly changes: readonly Change[] } {
    const outcome = this.receiver.end(listVersion);
    this.open = false;
    return { outcome, changes: this.held };
  }

  abort(): void {
    if (!this.open) return;
    this.open = false;
    this.receiver.abort();
  }
}
