import type { Clock } from "../../base/clock.ts";
import { isOrdered, isUpTo, newerOf, predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type {
  ListReason,
  ListReceiver,
  PassedCounter,
  Registration,
  SkipRule,
  Subscriber,
} from "../../informer/fanout/subscriber.ts";
import { MassDeletionGuard } from "../../informer/list/diff.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import { ObjectTurns } from "../../informer/scan/object-turns.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { Trigger } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { EngineObserver } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import type { HeldBack } from "../filter/reason.ts";
import { deletesAtSameVersion, type RedeliveryRisk, RestartPersistence } from "../redelivery/possible-redeliveries.ts";
import { nameOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { LowWaterMark, type MarkEntry } from "../state/low-water-mark.ts";
import type { FilteredEventFields, ObjectState } from "../state/object-state.ts";
import {
  type EventInput,
  type EventMaker,
  type EventOrigin,
  type LaneEvent,
  type MarkOwner,
  withUid,
} from "../work/event.ts";
import {
  type ListedSource,
  ListIntake,
  type ListIntakeParts,
  type ListIntakePlan,
  type Rebase,
} from "./list-intake.ts";
import { type Concern, Passing } from "./passing.ts";

/** Cost of comparing one listed object with the known ones, in milliseconds. */
const comparedMs = 0.002;

/** The parts that a trigger's subscriptions share. */
export interface IntakeParts {
  readonly objects: KnownObjects;
  readonly concerns: Concern;
  /** Whether the last writes before the start may be missing. */
  readonly lostWrites: boolean;
  readonly maker: EventMaker;
  readonly commits: Commits;
  /** Is charged for the event loop's time that lists take. */
  readonly time: Pick<LoopAccount, "charge">;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  /** Limit for bodies of a list that wait for its end, in bytes. */
  readonly listLimit: number;
  /** Accepts events into the function's lanes. */
  readonly queue: {
    accept(event: LaneEvent): void;
    /** `undefined` if the function has used its share of the main thread's time for now. */
    judge(objects: KnownObjects, judged: FilteredEventFields, body: Buffer): Verdict | undefined;
    refuses(objects: KnownObjects, change: Change): HeldBack | undefined;
    keepBacklog(): Promise<void> | undefined;
    adopt(objects: KnownObjects, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void;
    readonly congested: Promise<void> | undefined;
    full(isListing: boolean): Promise<void> | undefined;
    readonly holdsQueues: boolean;
  };
}

interface SubscriptionParts extends IntakeParts {
  /** Whether all changes belong to it, because the function is not partitioned. */
  readonly isWhole: boolean;
  /** Whether objects of a namespace can belong to it at all. */
  readonly wants: Subscriber["wants"];
  readonly cursor: Cursor;
  /** Identifies the source's current selectors. */
  readonly selection: string;
}

/**
 * Which changes it accepts. `open`: all. `aside` (suspended): it accepts nothing, and has left its source, until its function has
 * room. `closed`: nothing; the cursor follows the events that have not ended. `left`: nothing; the cursor is given up.
 */
type IntakeState = "open" | "aside" | "closed" | "left";

/** Subscribes one trigger to one source: turns changes into events, and maintains the cursor. */
export class Subscription implements Subscriber, MarkOwner, ListIntakeParts, EventOrigin {
  readonly id: string;
  readonly namespace: string;
  readonly wants: Subscriber["wants"];
  readonly objects: KnownObjects;
  readonly isSelective: boolean;
  readonly clock: Clock;
  readonly listLimit: number;
  private readonly parts: SubscriptionParts;
  private readonly mark: LowWaterMark;
  private readonly guard = new MassDeletionGuard();
  /** Delivers a list in pieces, and queues the changes that follow it. */
  private readonly turns: ObjectTurns;
  private readonly persistence: RestartPersistence;
  private readonly passing: Passing;
  private state: State;
  private intake: IntakeState = "open";
  private place: Registration | undefined;
  /** Whether a list is being read. */
  private listing = false;
  /** The selection in the cursor: that of the last list that was done. */
  private selection: string;
  epoch: number;
  /** The cursor's `initial`: whether objects of the first list may still have to be delivered. */
  private initial: boolean;
  /** Whether the first list's events are on disk, so that after a kill the next process does not start from nothing. */
  private recorded: boolean;
  /** Changes up to here happened before the source connected, perhaps long before. */
  private backlogUpTo: ResourceVersion | undefined;
  /** The resourceVersion up to which this process has received everything. */
  private received: ResourceVersion | undefined;
  /** The resourceVersion of the last complete list. */
  private listVersion: ResourceVersion | undefined;
  /** The newest known resourceVersion. A server with an older one has gone back in time. Unset once a list has been delivered. */
  newestKnown: ResourceVersion | undefined;

  constructor(parts: SubscriptionParts) {
    const { objects, cursor, selection, clock } = parts;
    this.parts = parts;
    this.objects = objects;
    this.isSelective = isSelective(objects.trigger);
    this.clock = clock;
    this.wants = parts.wants;
    this.listLimit = parts.listLimit;
    this.id = `${objects.functionName}/${objects.trigger.name}/${objects.resource}/${cursor.namespace}`;
    this.namespace = cursor.namespace;
    this.turns = new ObjectTurns(clock);
    this.mark = new LowWaterMark(cursor.lowWaterMark);
    this.persistence = new RestartPersistence(parts.lostWrites);
    this.passing = new Passing(objects, parts.observer, clock);
    this.selection = cursor.selection;
    this.epoch = cursor.epoch;
    this.initial = cursor.initial && cursor.lowWaterMark === undefined;
    this.recorded = !this.initial;
    this.newestKnown = objects.newest(this.namespace);
    this.state = stateOf(cursor, selection);
  }

  /** Whether the next change may have been handled by an earlier process without a record. */
  get hasUnpersistedRisk(): boolean {
    return this.persistence.redeliveryRisk !== "none";
  }

  /** The risk that a handler has received the `Deleted`, `unselected` of an object in this state before. */
  redeliveryRiskOf(resourceVersion: ResourceVersion): RedeliveryRisk {
    return this.persistence.redeliveryRiskOf(resourceVersion);
  }

  /** The position to resume from: everything up to it waits in the queue, or is on disk. */
  get resumeFrom(): ResourceVersion | undefined {
    return this.state.type === "resumed" ? (this.received ?? this.mark.value) : undefined;
  }

  get lowWaterMark(): ResourceVersion | undefined {
    return this.mark.value;
  }

  /** Whether the first list, or the position that it resumed from, is received and would survive a kill. */
  get isReady(): boolean {
    return this.state.type === "resumed" && this.recorded;
  }

  get congested(): Promise<void> | undefined {
    if (this.intake !== "open") return undefined;
    const { commits, queue } = this.parts;
    // A list does not wait for handlers, because other lists wait behind it. Without disk for the queue it does, briefly.
    const waits = !this.listing || !queue.holdsQueues;
    return this.turns.busy ?? commits.congested ?? (waits ? queue.congested : undefined);
  }

  placed(place: Registration): void {
    this.place = place;
  }

  /**
   * Whether it accepts changes now. If its function has no room, it suspends itself: its sources go on without it, and its
   * position stays.
   * @param isListing whether the changes are a list's
   */
  takes(isListing = this.listing): boolean {
    const full = this.intake === "open" ? this.parts.queue.full(isListing) : undefined;
    if (!full) return this.intake === "open";
    this.settlePassing();
    this.passing.end();
    this.intake = "aside";
    // It resumes only after it has left the source; otherwise changes skipped until then would be lost.
    this.place?.stepAside(async () => {
      await full;
      if (this.intake === "aside") this.intake = "open";
    });
    return false;
  }

  change(given: Change): void {
    const isBusy = this.turns.busy !== undefined;
    // While a list is being delivered, the objects in it are not known yet, so no change may be skipped.
    if (!isBusy && this.intake === "open" && this.objects.maySkip(given) && this.concerns(given)) {
      if (this.passing.count(given)) this.passes();
      return;
    }
    if (isBusy) this.turns.queue(() => this.take(given));
    else this.take(given);
  }

  concerns(change: Change): boolean {
    return this.parts.concerns(change);
  }

  /** The rule by which the source may skip changes, while it accepts everything and no list is being delivered. */
  get skipRule(): SkipRule | undefined {
    const standsBy = this.parts.isWhole && this.intake === "open" && this.turns.busy === undefined;
    return standsBy ? this.objects.skipRule : undefined;
  }

  passedBy(tally: PassedCounter): void {
    this.passing.standBy(tally);
  }

  /** Requests a write of the cursor soon, which also accounts for all skipped changes. */
  passes(): void {
    this.parts.commits.cursorMovedLater(this);
  }

  /** Moves the position past the skipped changes; called before any other work. */
  private settlePassing(): void {
    const to = this.passing.settle();
    if (to === undefined) return;
    this.persistence.sees(to);
    this.received = newerOf(this.received, to);
    this.mark.note(to);
  }

  private take(given: Change): void {
    this.settlePassing();
    if (!this.takes()) return;
    this.persistence.sees(given.meta.resourceVersion);
    this.received = newerOf(this.received, given.meta.resourceVersion);
    const { objects } = this;
    // The position passes it with the next bookmark or event; a commit for each such change would cost more.
    if (!this.concerns(given)) return;
    const change = withUid(given, objects.resource);
    const { meta } = change;
    const key = objectKey(meta);
    const hasNeverMatched = objects.hasNeverMatched(key);
    const state = hasNeverMatched ? undefined : objects.stateAfterQueue(key);
    if (this.isReplay(change, state)) {
      this.parts.observer.stale?.(objects.functionName, objects.trigger.name);
      this.mark.push({ resourceVersion: meta.resourceVersion, outstanding: 0, firm: false });
      this.moved();
      return;
    }
    const { body, members, receivedAt } = change;
    const plain = hasNeverMatched ? objects.plainRefusal(change) : undefined;
    const judged = { type: change.type, key, redeliveryRisk: "none", members } as const;
    const verdict = hasNeverMatched && !plain ? this.parts.queue.judge(objects, judged, body) : undefined;
    const heldBack = plain ?? verdict?.heldBack;
    if (heldBack) {
      this.mark.note(meta.resourceVersion);
      this.spare(key, change, heldBack);
      return;
    }
    const replaces = state && !state.deleted && state.uid !== meta.uid ? state : undefined;
    const entry: MarkEntry = { resourceVersion: meta.resourceVersion, outstanding: replaces ? 2 : 1, firm: false };
    this.mark.push(entry);
    const mark = { owner: this, entry };
    // An event that had begun is repeated with its type; nothing more is kept of its object.
    const mayExistUnstored = objects.mayExistUnstored(key);
    const live = mayExistUnstored ? change.type === "Modified" : state !== undefined && !state.deleted && !replaces;
    const type = change.type === "Deleted" ? "Deleted" : live ? "Modified" : "Added";
    if (replaces) {
      // The deletion of the object that had the name before was missed, so it is delivered first.
      const { uid, resourceVersion } = replaces;
      const deletedBy = predecessor(meta.resourceVersion) ?? meta.resourceVersion;
      const flags = { synthetic: true, finalStateUnknown: true } as const;
      const gone = { ...nameOf(key), uid, resourceVersion };
      this.accept({ type: "Deleted", key, meta: gone, receivedAt: this.clock.monotonic(), mark, flags, deletedBy });
    }
    this.accept({ type, key, meta, body, members, receivedAt, mark, verdict });
  }

  compared(objects: number): void {
    this.parts.time.charge("lists", objects * comparedMs);
  }

  spares(change: Change): boolean {
    const { objects } = this;
    const key = objectKey(change.meta);
    const heldBack = objects.hasNeverMatched(key) ? this.parts.queue.refuses(objects, change) : undefined;
    if (heldBack) this.spare(key, change, heldBack);
    return heldBack !== undefined;
  }

  /** Holds back a change of an object that has never matched, of which nothing is stored. */
  private spare(key: string, { type, meta }: Change, heldBack: HeldBack): void {
    const { objects, clock } = this;
    objects.history.held({ objects, key, type, meta }, heldBack, clock.now());
    this.parts.observer.event?.(objects.functionName, objects.trigger.name, type, "filtered");
    this.moved(true);
  }

  isNews(deletion: Change): boolean {
    const given = withUid(deletion, this.objects.resource);
    const state = this.objects.stateAfterQueue(objectKey(given.meta));
    return state !== undefined && deletesAtSameVersion(state, given.type, given.meta);
  }

  bookmark(resourceVersion: ResourceVersion): void {
    if (this.turns.busy) this.turns.queue(() => this.pass(resourceVersion));
    else this.pass(resourceVersion);
  }

  private pass(resourceVersion: ResourceVersion): void {
    this.settlePassing();
    if (this.intake !== "open") return;
    this.persistence.hasAllUpTo(resourceVersion);
    this.received = resourceVersion;
    this.mark.push({ resourceVersion, outstanding: 0, firm: true });
    this.moved();
  }

  serverIsAt(resourceVersion: ResourceVersion): void {
    this.persistence.serverIsAt(resourceVersion);
    this.backlogUpTo = resourceVersion;
  }

  /** Abandons the position at once. A process that ends before the next list has no position to resume from. */
  rewound(): void {
    this.settlePassing();
    const { state, newestKnown, intake } = this;
    if (intake === "closed" || intake === "left" || (state.type === "fresh" && newestKnown === undefined)) return;
    this.turns.finish();
    this.newestKnown = undefined;
    this.received = undefined;
    this.leaveEpoch("rewind");
  }

  /** Records that the kind did not exist when the function was deployed, so that its objects are news. */
  kindIsMissing(): void {
    if (this.state.type !== "fresh" || this.listing) return;
    this.initial = false;
    this.state = { type: "rebasing", because: "kind" };
    this.parts.commits.cursorMoved(this);
  }

  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver {
    this.settlePassing();
    const { state, initial, selection } = this;
    this.turns.finish();
    this.listing = true;
    const entry: MarkEntry = { resourceVersion: undefined, outstanding: 1, firm: true };
    this.mark.push(entry);
    const rewinds = reason === "rv-rewind";
    this.received = undefined;
    const resumed = state.type === "resumed";
    // The selection was edited before the first list was done, so what that list delivered is of another selection.
    const isEdited = state.type === "fresh" && selection !== "" && selection !== this.parts.selection;
    const due = state.type === "rebasing" ? state.because : isEdited ? "selection" : undefined;
    return new ListIntake(this, entry, {
      reason,
      from: gapFrom ?? this.mark.value ?? null,
      initial,
      begins: initial && !resumed && !rewinds,
      rebases: due ?? (rewinds ? "rewind" : undefined),
      // The position was given up at a rewind, and nothing was listed since: known states may still be newer than the server's.
      anew: rewinds || (this.epoch > 0 && this.mark.value === undefined),
      believed: !resumed && selection !== this.parts.selection,
    });
  }

  settle(entry: MarkEntry): void {
    if (this.mark.settle(entry)) this.moved();
  }

  isBacklog({ resourceVersion, firm }: MarkEntry): boolean {
    return resourceVersion !== undefined && (firm || isWithin(resourceVersion, this.backlogUpTo));
  }

  cursor(): Cursor | undefined {
    if (this.intake === "left") return undefined;
    this.settlePassing();
    this.passing.notify();
    const { namespace, selection, epoch, initial } = this;
    return { view: this.objects.id, namespace, selection, epoch, lowWaterMark: this.mark.value, initial };
  }

  /** Stops accepting changes. The cursor still follows the events that have not ended. */
  close(): void {
    this.settlePassing();
    this.passing.end();
    this.passing.notify();
    this.intake = "closed";
    this.turns.cancel();
  }

  /** Stops accepting changes, and gives up the cursor. Returns its last value. */
  leave(): Cursor | undefined {
    const cursor = this.cursor();
    this.close();
    this.intake = "left";
    return cursor;
  }

  beginEpoch(entry: MarkEntry, because: Rebase): void {
    const { objects } = this;
    // Events of the namespace's earlier departure may still wait.
    if (because !== "rewind") this.parts.queue.adopt(objects, this.namespace, { owner: this, entry });
    this.leaveEpoch(because, entry);
  }

  /** Begins an epoch. Entries before `entry` (default: all) are no longer positions. */
  private leaveEpoch(because: Rebase, entry?: MarkEntry): void {
    this.epoch++;
    if (because === "rewind") this.persistence.beginAgain();
    this.state = { type: "rebasing", because };
    this.listVersion = undefined;
    this.mark.restart(entry);
    this.objects.begin(this.namespace, this.epoch);
    this.parts.commits.cursorMoved(this);
  }

  shows(resourceVersion: ResourceVersion): void {
    this.newestKnown = newerOf(this.newestKnown, resourceVersion);
  }

  /** Accepts an event of the list that is being read. */
  emit(source: ListedSource, entry: MarkEntry): void {
    this.accept({ ...source, mark: { owner: this, entry } });
  }

  believes(deleted: number, known: number): boolean {
    return this.guard.believes(deleted, known, this.clock.monotonic());
  }

  complete({ entry, plan }: ListIntake, to: ResourceVersion, deliver: Generator<void>): void {
    const { selection, commits } = this.parts;
    this.listing = false;
    this.listVersion = to;
    entry.reached = () => {
      this.selection = selection;
      this.initial = false;
      commits.cursorMoved(this);
    };
    // With `Skip`, all objects of the list are recorded now: later ones are news, even if the mark has not reached the list yet.
    if (this.objects.trigger.initialEvents === "Skip") this.initial = false;
    commits.cursorMoved(this);
    this.state = { type: "resumed" };
    this.newestKnown = undefined;
    this.turns.run(this.finish(entry, plan, to, deliver));
  }

  abandon(entry: MarkEntry, hasDelivered: boolean): "counted" | "held" {
    this.listing = false;
    // The listed states are newer than the changes that a stream would deliver next.
    if (hasDelivered && this.state.type === "resumed") this.state = { type: "behind" };
    this.settle(entry);
    return this.intake === "closed" || this.intake === "left" ? "counted" : "held";
  }

  /** Delivers the remaining differences of a complete list in pieces; then the list is a position. */
  private *finish(
    entry: MarkEntry,
    { reason, rebases }: ListIntakePlan,
    to: ResourceVersion,
    deliver: Generator<void>,
  ): Generator<void> {
    const { commits, queue } = this.parts;
    for (;;) {
      if (!rebases && !this.takes(true)) {
        // The next list finds delivered objects known, and the others again. Until then there is no position.
        entry.resourceVersion = undefined;
        this.state = { type: "behind" };
        this.settle(entry);
        return;
      }
      if (deliver.next().done) break;
      yield;
    }
    if (reason === "rv-rewind" || rebases === "rewind") this.persistence.end();
    else this.persistence.isListedUpTo(to);
    this.received = to;
    this.settle(entry);
    const kept = queue.keepBacklog();
    if (this.recorded) return;
    // If the store is lost for good, it reports that itself.
    const recorded = () => {
      this.recorded = true;
    };
    const synced = kept ? kept.then(() => commits.sync()) : commits.sync();
    void synced.then(recorded, () => undefined);
  }

  /** Whether a change was received before: its object's state, the last list or the mark covers it. */
  private isReplay(change: Change, state: ObjectState | undefined): boolean {
    const { resourceVersion } = change.meta;
    if (state && deletesAtSameVersion(state, change.type, change.meta)) return false;
    if (isWithin(resourceVersion, this.listVersion) || isWithin(resourceVersion, this.mark.value)) return true;
    return state !== undefined && isStale(state, change);
  }

  private accept(source: EventInput): void {
    const { queue, maker } = this.parts;
    queue.accept(maker.make(source, this, this.persistence.redeliveryRisk));
  }

  /**
   * Saves the cursor after the mark has moved, and prunes tombstones that no replay can reach any more. With `later`, a moment
   * may pass first: the changes before the mark left no row.
   */
  private moved(later = false): void {
    const { commits } = this.parts;
    const { value, length } = this.mark;
    const hasForgotten = value !== undefined && this.objects.pruneTombstones(this.namespace, value, length === 0);
    // A replay from before a pruned tombstone would deliver its object again, so the position is in the same commit.
    if (later && !hasForgotten) commits.cursorMovedLater(this);
    else commits.cursorMoved(this);
  }
}

/** Whether objects can enter and leave the selection without being created or deleted. */
const isSelective = ({ labelSelector, fieldSelector, namespaces }: Trigger): boolean =>
  labelSelector !== "" || fieldSelector !== "" || namespaces.type === "labels";

const isWithin = (resourceVersion: ResourceVersion, limit: ResourceVersion | undefined): boolean =>
  limit !== undefined && isUpTo(resourceVersion, limit);

/** The state of a subscription at its source. */
type State =
  /** Nothing was listed yet. The first list shows the objects that existed when the function was deployed. */
  | { readonly type: "fresh" }
  /**
   * The known state does not continue in the next list, which begins an epoch. There is no checkpoint until that list is delivered.
   */
  | { readonly type: "rebasing"; readonly because: Rebase }
  /** The checkpoint cannot be resumed: a list is needed. */
  | { readonly type: "behind" }
  /** It resumes from its checkpoint, or from the list that is being delivered. */
  | { readonly type: "resumed" };

/** The state of a subscription that starts with this cursor. `selection` is the source's current one. */
function stateOf({ lowWaterMark, initial, selection: before }: Cursor, selection: string): State {
  if (lowWaterMark === undefined) return initial ? { type: "fresh" } : { type: "rebasing", because: "selection" };
  if (before !== selection) return { type: "rebasing", because: "selection" };
  // A change that ended above the checkpoint cannot be recognised if resourceVersions have no order.
  return { type: isOrdered(lowWaterMark) ? "resumed" : "behind" };
}

/**
 * Whether a change is no newer than the state of its object. If resourceVersions cannot be ordered, only an equal one is stale,
 * and so is the deletion of an object that is known to be deleted.
 */
function isStale(state: ObjectState, { type, meta }: Change): boolean {
  if (isUpTo(meta.resourceVersion, state.resourceVersion)) return true;
  return state.deleted && state.uid === meta.uid && type === "Deleted";
}
