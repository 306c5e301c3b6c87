import type { Clock } from "../../base/clock.ts";
import { isUpTo, predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type { ListReason, ListReceiver } from "../../informer/fanout/subscriber.ts";
import { guardedSize, RewindProof } from "../../informer/list/diff.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import type { EventFlags } from "../delivery/delivery.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";
import { nameOf } from "../state/by-namespace.ts";
import { type Difference, GapDiff, type UnreadObjects } from "../state/gap-diff.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { MarkEntry } from "../state/low-water-mark.ts";
import { type EventInput, withUid } from "../work/event.ts";

/** The input of an event that a list causes; the subscription adds the mark. */
export type ListedSource = Omit<EventInput, "mark">;

/** How to interpret a list. */
export interface ListIntakePlan {
  readonly reason: ListReason;
  /** The resourceVersion up to which everything had been received; null if nothing had. */
  readonly from: ResourceVersion | null;
  /** Whether the listed objects existed when the function was deployed. */
  readonly initial: boolean;
  /**
   * Whether it is the first list, or follows one that was not finished. Its unknown objects existed before, and are skipped if
   * the trigger says so.
   */
  readonly begins: boolean;
  /** Why the list begins an epoch; `undefined` if it does not. */
  readonly rebases: Rebase | undefined;
  /** Whether known states may be newer than the listed ones, so that any difference counts. */
  readonly anew: boolean;
  /** Whether the list is trusted even if it deletes most known objects, because it has another selection. */
  readonly believed: boolean;
}

/**
 * Why the known state does not continue in a list. `selection`: the list has another selection or scope. `kind`: nothing is
 * known, since the kind was installed after the function. `rewind`: the known state belongs to a time that was undone.
 */
export type Rebase = "selection" | "kind" | "rewind";

/** The operations of a subscription that a list uses. */
export interface ListIntakeParts {
  readonly objects: KnownObjects;
  readonly namespace: string;
  readonly clock: Clock;
  /** Limit for bodies of a list that wait for its end, in bytes. */
  readonly listLimit: number;
  /** Whether a change belongs to this shard. */
  concerns(change: Change): boolean;
  /** Whether the subscription has room now. An item that it has no room for is lost to this list. */
  takes(): boolean;
  beginEpoch(entry: MarkEntry, because: Rebase): void;
  /** Records that the list shows an object at this resourceVersion, which is delivered or skipped. */
  shows(resourceVersion: ResourceVersion): void;
  emit(source: ListedSource, entry: MarkEntry): void;
  /** Whether a listed object is held back, because neither it nor any earlier state of it concerns the function. */
  spares(change: Change): boolean;
  /** Charges the function for comparing so many listed objects with the known ones. */
  compared(objects: number): void;
  /** Whether to trust a list that deletes so many of the known objects. */
  believes(deleted: number, known: number): boolean;
  /** Ends a complete list. `deliver` delivers the differences that were not delivered while it was read. */
  complete(reading: ListIntake, to: ResourceVersion, deliver: Generator<void>): void;
  /**
   * Ends an incomplete list, which is not a checkpoint. `hasDelivered` is true if it delivered something, so that only another
   * list may follow.
   */
  abandon(entry: MarkEntry, hasDelivered: boolean): "counted" | "held";
}

/** The number of listed objects that are charged together; a shorter list costs too little to charge. */
const comparedAtOnce = 256;

/** Reads one list and delivers its differences. */
export class ListIntake implements ListReceiver {
  readonly plan: ListIntakePlan;
  /** Holds the mark until the list is delivered. */
  readonly entry: MarkEntry;
  private readonly reader: ListIntakeParts;
  private readonly diff: GapDiff;
  private readonly proof = new RewindProof();
  private begun = false;
  /**
   * True if the list shows an old state of an object that was gone. Delivering it does not repeat the earlier delivery of that
   * state.
   */
  private returns = false;
  /** True if something was delivered that a later list would not deliver again. */
  private hasDelivered = false;
  /** True if items were dropped. */
  private lacks = false;
  private items = 0;

  constructor(reader: ListIntakeParts, entry: MarkEntry, plan: ListIntakePlan) {
    this.reader = reader;
    this.entry = entry;
    this.plan = plan;
    const { objects, namespace } = reader;
    this.diff = new GapDiff({
      lookup: (key) => objects.alive(key),
      mode: plan.anew ? "different" : "newer",
      believed: plan.believed || isSmall(objects.live(namespace)),
      heldLimit: reader.listLimit,
      deliversUnknown: plan.begins,
      deliver: (difference) => this.deliver(difference),
    });
  }

  item(change: Change): void {
    if (!this.reader.concerns(change)) return;
    this.lacks ||= !this.reader.takes();
    if (this.lacks) return;
    const { reader, plan } = this;
    if (++this.items % comparedAtOnce === 0) reader.compared(comparedAtOnce);
    const { initialEvents } = reader.objects.trigger;
    const named = withUid(change, reader.objects.resource);
    const isSkipped = plan.begins && initialEvents === "Skip";
    if (isSkipped || !reader.spares(named)) {
      this.compare(named);
      this.diff.item(named);
    } else reader.shows(named.meta.resourceVersion);
  }

  provesRewind(to: ResourceVersion): boolean {
    return this.proof.holdsAt(to);
  }

  /**
   * Compares resourceVersions for proof of a rewind. Only a list that continues from the checkpoint proves anything about
   * deletions: in another selection an object returns that was never deleted. A live object on record cannot have an older state,
   * whatever the selection.
   */
  private compare({ meta }: Change): void {
    const { plan } = this;
    if (plan.anew) return;
    const { objects } = this.reader;
    const key = objectKey(meta);
    const alive = objects.alive(key);
    const goesOn = !plan.begins && plan.rebases === undefined;
    const known = (goesOn ? [alive, objects.stateAfterQueue(key)] : [alive]).find((each) => each?.uid === meta.uid);
    if (known) this.proof.compare(known.resourceVersion, meta.resourceVersion);
    if (!goesOn) return;
    if (known?.through) this.proof.compare(known.through.resourceVersion, meta.resourceVersion);
    this.returns ||= !known && plan.from !== null && isUpTo(meta.resourceVersion, plan.from);
  }

  end(to: ResourceVersion): "counted" | "held" {
    const { reader, entry, plan } = this;
    if (this.lacks || !reader.takes()) return this.abandon();
    const rest = this.diff.end(reader.objects.live(reader.namespace));
    if (!plan.believed && !reader.believes(rest.deleted, rest.known)) return this.abandon();
    const deliver = this.deliverRest(rest, to);
    if (rest.lacks) {
      // The next list finds the delivered objects known, and so has room for those that did not fit into this one.
      for (const _ of deliver);
      return this.abandon();
    }
    this.begin();
    entry.resourceVersion = to;
    reader.complete(this, to, deliver);
    return "counted";
  }

  abort(): void {
    this.abandon();
  }

  private abandon(): "counted" | "held" {
    return this.reader.abandon(this.entry, this.hasDelivered);
  }

  private *deliverRest({ found }: UnreadObjects, to: ResourceVersion): Generator<void> {
    for (const difference of found) {
      this.deliver(difference, to);
      yield;
    }
  }

  private begin(): void {
    const rebases = this.plan.rebases ?? (this.returns || this.proof.isPossible ? "rewind" : undefined);
    if (rebases && !this.begun) this.reader.beginEpoch(this.entry, rebases);
    this.begun ||= rebases !== undefined;
  }

  /** @param to the list's resourceVersion, if it is complete */
  private deliver(difference: Difference, to?: ResourceVersion): void {
    this.begin();
    this.hasDelivered = true;
    const { reader, entry, plan } = this;
    const { reason: why, from, rebases } = plan;
    const { type, key } = difference;
    const selects = rebases === "selection" && why !== "rv-rewind" && type !== "Modified";
    const reason = selects ? selected[type] : why === "initial" ? "relist" : why;
    if (type === "Deleted") {
      const { known, before } = difference;
      const deletedBy = before === undefined ? (to ?? known.resourceVersion) : (predecessor(before) ?? before);
      const flags = {
        synthetic: true,
        reason,
        gap: { from, to: to ?? before ?? deletedBy },
        finalStateUnknown: true,
      } as const;
      entry.outstanding++;
      const selective = rebases === "selection" || rebases === "kind";
      reader.emit({ ...this.deletionOf(key, known), flags, deletedBy, selective }, entry);
      return;
    }
    const { meta, body, receivedAt } = difference.change;
    const { initialEvents } = reader.objects.trigger;
    reader.shows(meta.resourceVersion);
    if (type === "Added" && difference.unknown && plan.begins && initialEvents === "Skip") {
      reader.objects.skip(key, meta, body, reader.clock.now());
      return;
    }
    const wasThere = type === "Added" && plan.initial && initialEvents === "Deliver";
    const flags: EventFlags = wasThere
      ? initialFlags
      : { synthetic: true, reason, gap: { from, to: to ?? meta.resourceVersion } };
    entry.outstanding++;
    reader.emit({ type, key, meta, body, receivedAt, flags }, entry);
  }

  /**
   * Builds the deletion of an object. It may be a redelivery if only an `Added` that had begun is known of the object: nothing is
   * kept of a namespace that left, and resourceVersions without order do not say whether a recorded deletion preceded that
   * `Added`.
   */
  private deletionOf(key: string, { uid, begun, resourceVersion }: LastState) {
    const { objects, clock } = this.reader;
    const state = objects.stateAfterQueue(key);
    const mayRepeat =
      begun === "Added" &&
      (objects.trigger.namespaces.type !== "all" || (state?.deleted === true && state.uid === uid));
    const meta = { ...nameOf(key), uid, resourceVersion };
    return {
      type: "Deleted",
      key,
      meta,
      receivedAt: clock.monotonic(),
      redeliveryRisk: mayRepeat ? "persisted" : "none",
    } as const;
  }
}

const initialFlags: EventFlags = { initial: true };

/** The reason of an event that a changed selection causes. */
const selected = { Added: "selected", Deleted: "unselected" } as const;

/** Whether so few objects are known that a list without them is trusted. */
function isSmall(known: Iterable<unknown>): boolean {
  let count = 0;
  for (const _ of known) if (++count > guardedSize) return false;
  return true;
}
