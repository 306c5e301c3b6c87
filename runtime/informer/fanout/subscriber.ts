// Interface of the subscribers of a source. All calls are synchronous and must not throw; the source never waits for a handler.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { Change } from "../scan/change.ts";

/**
 * Why a source lists: nothing is known yet (`initial`), the history was lost (`relist`), the cluster's state went back
 * (`rv-rewind`), or the kind's CustomResourceDefinition was removed (`crd-removed`; that list is empty, and correct).
 */
export type ListReason = "initial" | "relist" | "rv-rewind" | "crd-removed";

/**
 * Receives one complete list, item by item. Either `end` or `abort` is called, once. All receivers of a list get the same
 * `Change` object for an item, with the same body.
 */
export interface ListReceiver {
  item(change: Change): void;
  /**
   * Returns true if the list, complete at this resourceVersion, contradicts known objects: the cluster's state went back. Called
   * before `end`, for lists with a reason other than `rv-rewind`. The list is then aborted, and another with the reason
   * `rv-rewind` follows for all subscribers of the source. Default: false.
   */
  provesRewind?(resourceVersion: ResourceVersion): boolean;
  /**
   * The list is complete; `resourceVersion` is the list's own. Returns `held` if the list would delete so many objects that a
   * second opinion is required. In that case nothing of it counts, and this subscriber gets another list after 30 s.
   */
  end(resourceVersion: ResourceVersion): "counted" | "held";
  /** The list failed half-way, and nothing of it counts. */
  abort(): void;
}

/** A subscriber's registration with its source. */
export interface Registration {
  /**
   * Suspends the subscription soon, without affecting other subscribers. `room` is called once it has left. When the returned
   * promise resolves, the subscriber joins again at its current `resumeFrom`.
   */
  stepAside(room: () => Promise<void>): void;
}

/** A field for which several subscribers ask a value. They share this object. */
export interface AskedField {
  /** Returns the change's value of the field. `undefined` if it is unknown: then no subscriber is skipped. */
  read(change: Change): string | undefined;
  /** Returns the tokens of all subscribers that know the change's object, whatever value they ask for. */
  knowing(change: Change): Iterable<object>;
}

/**
 * A value that a subscriber requires of a field before any other condition. A change with another value may skip it, unless the
 * subscriber knows the change's object.
 */
export interface SkipRule {
  readonly field: AskedField;
  readonly value: string;
  /** Identifies the subscriber in the result of `knowing`. */
  readonly token: object;
}

/** Count of changes that skipped a subscriber. */
export interface Passed {
  readonly counts: Readonly<Record<ChangeType, number>>;
  readonly last: Pick<Change, "type" | "meta">;
}

/** Counts the changes that skip a subscriber. */
export interface PassedCounter {
  /** Returns the changes since the last call; `undefined` if there were no changes. Call it before handling any change. */
  take(): Passed | undefined;
  /** Stops counting: later changes do not concern the subscriber. */
  end(): void;
}

/** One function's trigger on one source. */
export interface Subscriber {
  /** Unique; names the cursor in the store. */
  readonly id: string;
  /** Resume position; `undefined` if a list is needed first. Read on subscribing, and on rejoining after suspension. */
  readonly resumeFrom: ResourceVersion | undefined;
  /** Newest resourceVersion known at the start. It is beyond `resumeFrom` if some work before it was unfinished. */
  readonly newestKnown?: ResourceVersion | undefined;
  /**
   * Whether it uses changes of objects in a namespace ("" for cluster-scoped objects); must always return the same answer.
   * Changes that no subscriber wants may be omitted by the server; those that are sent reach every subscriber. Default: it wants
   * every change.
   */
  readonly wants?: ((namespace: string) => boolean) | undefined;
  /** A live change, in the source's order. Changes from before `resumeFrom` may be delivered; the subscriber drops them. */
  change(change: Change): void;
  /**
   * Condition under which changes skip the subscriber; read after each delivered change. Once in the skip index, it receives only
   * changes that have the value or whose object it knows. Default: it receives every change.
   */
  readonly skipRule?: SkipRule | undefined;
  /**
   * Called when the subscriber enters the skip index, from the next change until it leaves. `tally` counts the skipped changes.
   */
  passedBy?(tally: PassedCounter): void;
  /** Called for the first change that skips it since it last took its count. */
  passes?(): void;
  /**
   * Whether a deletion that is not newer than the subscriber's position is news, because its object is exactly at that position.
   * Default: false.
   */
  isNews?(deletion: Change): boolean;
  bookmark(resourceVersion: ResourceVersion): void;
  /**
   * Starts a list for the subscribers that need one. `gapFrom` is the resourceVersion up to which this subscriber had received
   * everything; `undefined` if it had nothing.
   */
  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver;
  /**
   * Reports the server's newest resourceVersion, read consistently since this process began; requested when a position is
   * resumed.
   */
  serverIsAt?(resourceVersion: ResourceVersion): void;
  /**
   * Reports that the cluster's state went back, as after a restore from a backup. The subscriber's position is no longer valid,
   * and a list follows. Also called on a suspended subscriber, as long as its source has others.
   */
  rewound?(): void;
  /**
   * Reports that the API server does not serve the kind, so no object of it exists. Called after each failed discovery, and when
   * a subscriber joins between two of them.
   */
  kindIsMissing?(): void;
  /** Called once, with the subscriber's registration. */
  placed?(place: Registration): void;
  /**
   * Promise while this subscriber can take no more; its stream or list resumes reading when it resolves. `undefined`: continue.
   */
  readonly congested: Promise<void> | undefined;
}
