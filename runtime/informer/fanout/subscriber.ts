// Door: who listens to a source. All calls are synchronous and must not throw; the source never waits for a handler.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { Change } from "../scan/change.ts";

/**
 * Why a source lists. Nothing is known yet, history was lost, the cluster's state went back, or the kind's
 * CustomResourceDefinition was removed (that list is empty, and true).
 */
export type ListReason = "initial" | "relist" | "rv-rewind" | "crd-removed";

/**
 * One complete list, item by item. Either `end` or `abort` is called, once. Everybody whom the list is for is given the same
 * `Change` of an item, with the same body.
 */
export interface ListReceiver {
  item(change: Change): void;
  /**
   * True if the list, complete at this resourceVersion, contradicts what is known: the cluster's state went back. Asked before
   * `end`, of lists that are not read for that reason. The list is then aborted, and another one with the reason `rv-rewind`
   * follows for all subscribers of the source. Default: it knows nothing.
   */
  provesRewind?(resourceVersion: ResourceVersion): boolean;
  /**
   * The list is complete; `resourceVersion` is the list's own. Gives `held` where it would delete so much that a second
   * opinion is wanted. Nothing of it counted, and there is another list for this subscriber after 30 s.
   */
  end(resourceVersion: ResourceVersion): "counted" | "held";
  /** The list failed half-way: nothing of it counts. */
  abort(): void;
}

/** A subscriber's place at its source. */
export interface Registration {
  /**
   * Leaves it soon, at this subscriber's cost alone: others are served on. `room` is called once it has left; when that resolves
   * it is joined again, where the subscriber then stands by `resumeFrom`.
   */
  stepAside(room: () => Promise<void>): void;
}

/** A field of which several subscribers ask for a value. They share this object. */
export interface AskedField {
  /** What a change has there. Undefined where that tells nothing: nobody is passed by. */
  read(change: Change): string | undefined;
  /** The tokens of all who ask and know something of a change's object, whatever they ask for. */
  knowing(change: Change): Iterable<object>;
}

/**
 * A value that a subscriber asks of a field before all else. A change that has another value there may pass it by, unless the
 * subscriber knows something of the change's object.
 */
export interface Interest {
  readonly field: AskedField;
  readonly value: string;
  /** Stands for the subscriber among `knowing`. */
  readonly token: object;
}

/** Changes that passed a subscriber by. */
export interface Passed {
  readonly counts: Readonly<Record<ChangeType, number>>;
  readonly last: Pick<Change, "type" | "meta">;
}

/** Counts the changes that pass a subscriber by. */
export interface PassedCounter {
  /** Those since this was asked last; undefined where there were none. Asked for before anything is made of a change. */
  take(): Passed | undefined;
  /** Counts no more from now on: what passes the subscriber is none of its own. */
  end(): void;
}

/** One function's trigger on one source. */
export interface Subscriber {
  /** Unique; names the cursor in the store. */
  readonly id: string;
  /** Where to resume; undefined when it needs a list first. Read when it subscribes, and when it comes back from stepping aside. */
  readonly resumeFrom: ResourceVersion | undefined;
  /** The newest resourceVersion of what it knew when it began; beyond `resumeFrom` where not all up to there was done. */
  readonly newestKnown?: ResourceVersion | undefined;
  /**
   * Whether it does anything with changes of objects in a namespace ("" of none): always the same answer. Changes that
   * nobody wants may not come, and where they come all are told of them. Default: it wants each.
   */
  wants?(namespace: string): boolean;
  /** A live change, in the source's order. Changes from before `resumeFrom` may come and are dropped by the subscriber. */
  change(change: Change): void;
  /**
   * By which changes may pass it by; asked after each change that it is told of. Once it stands by it is told of no other. Default:
   * it is told of each.
   */
  readonly interest?: Interest | undefined;
  /** It stands by from the next change on, until it leaves. What passes it is in `tally`. */
  passedBy?(tally: PassedCounter): void;
  /** A first change has passed it since it took up what had. */
  passes?(): void;
  /** Whether a deletion that is no newer than what it has is news, because its object stands just there. Default: it is not. */
  isNews?(deletion: Change): boolean;
  bookmark(resourceVersion: ResourceVersion): void;
  /** A list begins, for those who need one. `gapFrom`: up to where this subscriber had received everything; undefined where it had nothing. */
  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver;
  /** The server's newest resourceVersion, read consistently since this process began; asked when a position is resumed. */
  serverIsAt?(resourceVersion: ResourceVersion): void;
  /**
   * The cluster's state went back, as when it is restored from a backup. What it stood at is no position any more, and a list follows. Said
   * also to one that has stepped aside, while others are left at its source.
   */
  rewound?(): void;
  /**
   * The API server does not serve the kind, so that none of its objects exists. Said each time it is looked for, and to one that
   * comes between two looks, when it comes.
   */
  kindIsMissing?(): void;
  /** Called once, when it is given its place. */
  placed?(place: Registration): void;
  /** A promise while this subscriber can take no more; its stream, or its list, is read on when it resolves. Undefined: go on. */
  readonly congested: Promise<void> | undefined;
}
