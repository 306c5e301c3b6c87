// Door: who listens to a source. All calls are synchronous and must not throw; the source never waits for a handler.
import type { ResourceVersion } from "../resource-version.ts";
import type { Change } from "./change.ts";

/**
 * Why a source lists: nothing is known yet, history was lost, resourceVersions went back, or the kind's
 * CustomResourceDefinition was removed (that list is empty, and true).
 */
export type ListReason = "initial" | "relist" | "rv-rewind" | "crd-removed";

/** One complete list, item by item. Either `end` or `abort` is called, once. */
export interface ListReceiver {
  item(change: Change): void;
  /**
   * The list is complete; `resourceVersion` is the list's own. Gives `held` where it would delete so much that a
   * second opinion is wanted: nothing of it counted, and the source lists again after 30 s instead of watching on.
   */
  end(resourceVersion: ResourceVersion): "counted" | "held";
  /** The list failed half-way: nothing of it counts. */
  abort(): void;
}

/** A subscriber's place at its source. */
export interface Place {
  /**
   * Leaves it, at this subscriber's cost alone: others are served on. Once `until` resolves it is joined again, where the
   * subscriber then stands by `resumeFrom`.
   */
  stepAside(until: Promise<void>): void;
}

/** One function's trigger on one source. */
export interface Subscriber {
  /** Unique; names the cursor in the store. */
  readonly id: string;
  /** Where to resume; undefined when it needs a list first. Read when the source connects. */
  readonly resumeFrom: ResourceVersion | undefined;
  /** The newest resourceVersion of what it knew when it began; beyond `resumeFrom` where not all up to there was done. */
  readonly newestKnown?: ResourceVersion | undefined;
  /** A live change, in the source's order. Changes from before `resumeFrom` may come and are dropped by the subscriber. */
  change(change: Change): void;
  bookmark(resourceVersion: ResourceVersion): void;
  /** `gapFrom` is the resourceVersion up to which the source had received everything, where it knows one. */
  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver;
  /** The server's newest resourceVersion, read consistently since this process began; asked when a position is resumed. */
  serverIsAt?(resourceVersion: ResourceVersion): void;
  /** The API server does not serve the kind, so that none of its objects exists; said again each time it is looked for. */
  kindIsMissing?(): void;
  /** Called once, when it is given its place. */
  placed?(place: Place): void;
  /** A promise while this subscriber can take no more; the source reads on when it resolves. Undefined: go on. */
  readonly congested: Promise<void> | undefined;
}
