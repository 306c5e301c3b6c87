import type { Clock } from "../../base/clock.ts";
import { isUpTo, predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type { ListReason, ListReceiver } from "../../informer/fanout/subscriber.ts";
import { guardedSize } from "../../informer/list/diff.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import { RewindProof } from "../../informer/stream/rewind-proof.ts";
import type { EventFlags } from "../delivery/delivery.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";
import { nameOf } from "../state/by-namespace.ts";
import { type Difference, GapDiff, type UnreadObjects } from "../state/gap-diff.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { MarkEntry } from "../state/low-water-mark.ts";
import { type EventInput, withUid } from "../work/event.ts";

/** What an event of a list is made from; whose it is, its subscription adds. */
export type ListedSource = Omit<EventInput, "mark">;

/** How a list is to be read. */
export interface ListIntakePlan {
  readonly reason: ListReason;
  /** Up to where everything had been received; null where nothing had. */
  readonly from: ResourceVersion | null;
  /** What comes was there when the function was deployed. */
  readonly initial: boolean;
  /** It is the first list, or one that was not finished: what was not known was there, and is skipped where the trigger says so. */
  readonly begins: boolean;
  /** Why the list begins an epoch; undefined where it does not. */
  readonly rebases: Rebase | undefined;
  /** What is known may be newer than what the list shows. */
  readonly anew: boolean;
  /** Most of what is known may be gone without a doubt about the list: it is of another selection. */
  readonly believed: boolean;
}

/**
 * Why the known state does not go on into what a list shows. `selection`: it is of another selection or scope. `kind`:
 * nothing is known, since the kind came after the function. `rewind`: it is of a time that was undone.
 */
export type Rebase = "selection" | "kind" | "rewind";

/** The part of a subscription that a list needs. */
export interface ListIntakeParts {
  readonly view: KnownObjects;
  readonly namespace: string;
  readonly clock: Clock;
  /** Bodies of a list that may wait for its end, in bytes. */
  readonly listLimit: number;
  /** Whether a change is its own to take, and not another shard's. */
  concerns(change: Change): boolean;
  /** Whether it takes something now; what it does not take is lost to this list. */
  takes(): boolean;
  beginEpoch(entry: MarkEntry, because: Rebase): void;
  /** The list shows an object at this resourceVersion that is told, or skipped. */
  shows(resourceVersion: ResourceVersion): void;
  emit(source: ListedSource, entry: MarkEntry): void;
  /** Whether an object of a list is none of the function's business, as none of its states before was. */
  spares(change: Change): boolean;
  /** Has so many objects of a list go on the function's account: they were compared with what is known. */
  compared(objects: number): void;
  /** Whether a list is to be believed that deletes so many of the objects known. */
  believes(deleted: number, known: number): boolean;
  /** The list is complete. `tell` tells of what was not told as it was read. */
  complete(reading: ListIntake, to: ResourceVersion, tell: Generator<void>): void;
  /** The list is over, and no position. `told`: it told of something, so that only another one may follow. */
  abandon(entry: MarkEntry, told: boolean): "counted" | "held";
}

/** Objects of a list that go on the account at once: those of a short one are too few to count. */
const comparedAtOnce = 256;

/** One list on its way. */
export class ListIntake implements ListReceiver {
  readonly plan: ListIntakePlan;
  /** Holds the mark until the list is told. */
  readonly entry: MarkEntry;
  private readonly reader: ListIntakeParts;
  private readonly diff: GapDiff;
  private readonly proof = new RewindProof();
  private begun = false;
  /** It shows an object that was gone, in an old state. Where that is told it is no repetition of what was told of that state before. */
  private returns = false;
  /** Something was told that a list after this one would not tell again. */
  private told = false;
  /** Items were not taken. */
  private lacks = false;
  private items = 0;

  constructor(reader: ListIntakeParts, entry: MarkEntry, plan: ListIntakePlan) {
    this.reader = reader;
    this.entry = entry;
    this.plan = plan;
    const { view, namespace } = reader;
    this.diff = new GapDiff({
      lookup: (key) => view.alive(key),
      mode: plan.anew ? "different" : "newer",
      believed: plan.believed || isSmall(view.live(namespace)),
      heldLimit: reader.listLimit,
      tellsUnknown: plan.begins,
      tell: (difference) => this.tell(difference),
    });
  }

  item(change: Change): void {
    if (!this.reader.concerns(change)) return;
    this.lacks ||= !this.reader.takes();
    if (this.lacks) return;
    const { reader, plan } = this;
    if (++this.items % comparedAtOnce === 0) reader.compared(comparedAtOnce);
    const { initialEvents } = reader.view.trigger;
    const named = withUid(change, reader.view.resource);
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
   * Only a list that goes on from the position speaks of deletions: in another selection an object comes back that never went. What is
   * on record as living has no older state, whoever chooses.
   */
  private compare({ meta }: Change): void {
    const { plan } = this;
    if (plan.anew) return;
    const { view } = this.reader;
    const key = objectKey(meta);
    const alive = view.alive(key);
    const goesOn = !plan.begins && plan.rebases === undefined;
    const known = (goesOn ? [alive, view.standing(key)] : [alive]).find((each) => each?.uid === meta.uid);
    if (known) this.proof.compare(known.resourceVersion, meta.resourceVersion);
    if (!goesOn) return;
    if (known?.through) this.proof.compare(known.through.resourceVersion, meta.resourceVersion);
    this.returns ||= !known && plan.from !== null && isUpTo(meta.resourceVersion, plan.from);
  }

  end(to: ResourceVersion): "counted" | "held" {
    const { reader, entry, plan } = this;
    if (this.lacks || !reader.takes()) return this.abandon();
    const rest = this.diff.end(reader.view.live(reader.namespace));
    if (!plan.believed && !reader.believes(rest.deleted, rest.known)) return this.abandon();
    const tell = this.tellRest(rest, to);
    if (rest.lacks) {
      // What is told by now the next list finds known: it has the room for what did not fit into this one.
      for (const _ of tell);
      return this.abandon();
    }
    this.begin();
    entry.resourceVersion = to;
    reader.complete(this, to, tell);
    return "counted";
  }

  abort(): void {
    this.abandon();
  }

  private abandon(): "counted" | "held" {
    return this.reader.abandon(this.entry, this.told);
  }

  private *tellRest({ found }: UnreadObjects, to: ResourceVersion): Generator<void> {
    for (const difference of found) {
      this.tell(difference, to);
      yield;
    }
  }

  private begin(): void {
    const rebases = this.plan.rebases ?? (this.returns || this.proof.isPossible ? "rewind" : undefined);
    if (rebases && !this.begun) this.reader.beginEpoch(this.entry, rebases);
    this.begun ||= rebases !== undefined;
  }

  /** @param to the list's resourceVersion, where it is complete */
  private tell(difference: Difference, to?: ResourceVersion): void {
    this.begin();
    this.told = true;
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
    const { initialEvents } = reader.view.trigger;
    reader.shows(meta.resourceVersion);
    if (type === "Added" && difference.unknown && plan.begins && initialEvents === "Skip") {
      reader.view.skip(key, meta, body, reader.clock.now());
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
   * A handler may have been told before that an object went of which only an Added is known that had begun. Of a namespace
   * that left nothing is kept; and no order may say whether a deletion on record came before that Added.
   */
  private deletionOf(key: string, { uid, begun, resourceVersion }: LastState) {
    const { view, clock } = this.reader;
    const standing = view.standing(key);
    const mayRepeat =
      begun === "Added" &&
      (view.trigger.namespaces.type !== "all" || (standing?.deleted === true && standing.uid === uid));
    const meta = { ...nameOf(key), uid, resourceVersion };
    return { type: "Deleted", key, meta, receivedAt: clock.monotonic(), doubt: mayRepeat ? "noted" : "none" } as const;
  }
}

const initialFlags: EventFlags = { initial: true };

/** Why an object came or went when the selection changed. */
const selected = { Added: "selected", Deleted: "unselected" } as const;

/** Whether so few objects are known that no list which lacks them is doubted. */
function isSmall(known: Iterable<unknown>): boolean {
  let count = 0;
  for (const _ of known) if (++count > guardedSize) return false;
  return true;
}
