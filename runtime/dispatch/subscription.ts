import type { Cursor } from "../checkpoint/batch.ts";
import type { Clock } from "../clock.ts";
import type { Trigger } from "../manifest/function.ts";
import { isNewer, isOrdered, isUpTo, newerOf, predecessor, type ResourceVersion } from "../resource-version.ts";
import { type Change, objectKey } from "../watch/change.ts";
import { type Difference, GapDiff, type KnownObject, MassDeletionGuard } from "../watch/diff.ts";
import type { ListReason, ListReceiver, Place, Subscriber } from "../watch/subscriber.ts";
import { nameOf } from "./by-namespace.ts";
import type { Commits } from "./commits.ts";
import type { EventFlags } from "./delivery.ts";
import { type LaneEvent, type MarkOwner, withUid } from "./event.ts";
import type { EventMaker, EventSource } from "./event-maker.ts";
import { LowWaterMark, type MarkEntry } from "./low-water-mark.ts";
import type { Observer } from "./observer.ts";
import { Turns } from "./turns.ts";
import type { Standing, View } from "./view.ts";

export interface SubscriptionParts {
  readonly view: View;
  readonly cursor: Cursor;
  /** Stands for the source's selectors now. */
  readonly selection: string;
  /** The last writes before the start may be missing. */
  readonly suspect: boolean;
  readonly maker: EventMaker;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Takes events for the function's lanes. */
  readonly queue: {
    accept(event: LaneEvent): void;
    keepBacklog(): void;
    adopt(view: View, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void;
    readonly congested: Promise<void> | undefined;
    readonly full: Promise<void> | undefined;
    readonly holdsQueues: boolean;
  };
}

/** One trigger on one source: turns what is received into events, and keeps the cursor. */
export class Subscription implements Subscriber, MarkOwner {
  readonly id: string;
  readonly namespace: string;
  private readonly parts: SubscriptionParts;
  private readonly mark: LowWaterMark;
  private readonly guard = new MassDeletionGuard();
  /** A list that is being told of, and what came after it. */
  private readonly turns: Turns;
  /** A list is being read. */
  private listing = false;
  /** As the cursor has it: that of the last list that was done. */
  private selection: string;
  private epoch: number;
  private listed: boolean;
  private initial: boolean;
  /** What the first list brought is on disk: a process that is killed from now on does not take itself for new. */
  private recorded: boolean;
  private suspect: boolean;
  /** Nothing newer than this can have been handled by a process before this one; undefined where that is not known. */
  private suspectUpTo: ResourceVersion | undefined;
  /** What was received up to here had happened before the source connected, perhaps long before. */
  private backlogUpTo: ResourceVersion | undefined;
  /** The last complete list. */
  private listedAt: ResourceVersion | undefined;
  /** A list that began an epoch is not done: there is no position to resume from. */
  private beginning = false;
  /** It begins without a position because its kind came after it. */
  private missedKind = false;
  private closed = false;
  private gone = false;
  private place: Place | undefined;
  /** It takes nothing: its place at the source is given up until its function has room again. */
  private aside = false;
  /** A server whose newest resourceVersion is older than this has gone back in time; until a list has told what is. */
  newestKnown: ResourceVersion | undefined;

  constructor(parts: SubscriptionParts) {
    const { view, cursor, selection } = parts;
    this.parts = parts;
    this.id = `${view.functionName}/${view.trigger.name}/${view.resource}/${cursor.namespace}`;
    this.namespace = cursor.namespace;
    this.turns = new Turns(parts.clock);
    this.mark = new LowWaterMark(cursor.lowWaterMark);
    this.selection = cursor.selection;
    this.epoch = cursor.epoch;
    this.initial = cursor.initial && cursor.lowWaterMark === undefined;
    this.recorded = !this.initial;
    this.newestKnown = view.newest(this.namespace);
    this.suspect = parts.suspect;
    // A position whose order is not known is no place to resume from: changes done above it could not be told.
    const { lowWaterMark } = cursor;
    this.listed = lowWaterMark !== undefined && isOrdered(lowWaterMark) && cursor.selection === selection;
  }

  /** Whether what comes next may have been handled without a record of it. */
  get isSuspect(): boolean {
    return this.suspect;
  }

  get resumeFrom(): ResourceVersion | undefined {
    return this.listed ? this.mark.value : undefined;
  }

  get lowWaterMark(): ResourceVersion | undefined {
    return this.mark.value;
  }

  /** Whether its first list, or the position it resumed from, is there, and will be after a kill. */
  get isReady(): boolean {
    return this.listed && this.recorded;
  }

  get congested(): Promise<void> | undefined {
    if (this.closed || this.aside) return undefined;
    const { commits, queue } = this.parts;
    // A list does not wait for handlers: others wait for their turn to list. It does where there is no disk, for a moment.
    const waits = !this.listing || !queue.holdsQueues;
    return this.turns.busy ?? commits.congested ?? (waits ? queue.congested : undefined);
  }

  placed(place: Place): void {
    this.place = place;
  }

  /** Whether it takes nothing now, as its function has no room: its sources go on without it, and its position stands. */
  private stepsAside(): boolean {
    const full = this.aside ? undefined : this.parts.queue.full;
    if (full) {
      this.aside = true;
      const room = full.then(() => {
        this.aside = false;
      });
      this.place?.stepAside(room);
    }
    return this.aside;
  }

  change(given: Change): void {
    if (this.turns.busy) this.turns.queue(() => this.take(given));
    else this.take(given);
  }

  private take(given: Change): void {
    if (this.closed || this.stepsAside()) return;
    if (this.suspectUpTo !== undefined && isNewer(given.meta.resourceVersion, this.suspectUpTo)) this.suspect = false;
    const { view, observer } = this.parts;
    const change = withUid(given, view.resource);
    const { meta } = change;
    const key = objectKey(meta);
    const standing = view.standing(key);
    if (this.isReplay(change, standing)) {
      observer.stale?.(view.functionName, view.trigger.name);
      this.mark.push({ resourceVersion: meta.resourceVersion, outstanding: 0, firm: false });
      this.moved();
      return;
    }
    const replaces = standing && !standing.deleted && standing.uid !== meta.uid ? standing : undefined;
    const entry: MarkEntry = { resourceVersion: meta.resourceVersion, outstanding: replaces ? 2 : 1, firm: false };
    this.mark.push(entry);
    const mark = { owner: this, entry };
    const live = standing !== undefined && !standing.deleted && !replaces;
    const type = change.type === "Deleted" ? "Deleted" : live ? "Modified" : "Added";
    const next = { type, key, meta, body: change.body, receivedAt: change.receivedAt, mark } as const;
    if (!replaces) {
      this.emit(next);
      return;
    }
    // The deletion of the object that had the name before was missed: the handler is told of it first.
    const flags = { synthetic: true, finalStateUnknown: true } as const;
    this.emitDeleted(key, replaces, { mark, flags, deletedBy: justBefore(meta.resourceVersion) });
    this.emit(next);
  }

  bookmark(resourceVersion: ResourceVersion): void {
    if (this.turns.busy) this.turns.queue(() => this.pass(resourceVersion));
    else this.pass(resourceVersion);
  }

  private pass(resourceVersion: ResourceVersion): void {
    if (this.closed || this.aside) return;
    this.trustFrom(resourceVersion);
    this.mark.push({ resourceVersion, outstanding: 0, firm: true });
    this.moved();
  }

  serverIsAt(resourceVersion: ResourceVersion): void {
    this.suspectUpTo ??= resourceVersion;
    this.backlogUpTo = resourceVersion;
  }

  /** Nothing was there when the function was deployed: what comes is news. */
  kindIsMissing(): void {
    if (!this.initial || this.listing) return;
    this.initial = false;
    this.missedKind = true;
    this.parts.commits.cursorMoved(this);
  }

  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver {
    const { view } = this.parts;
    this.turns.finish();
    this.listing = true;
    const rewinds = reason === "rv-rewind";
    const entry: MarkEntry = { resourceVersion: undefined, outstanding: 1, firm: true, rewinds };
    this.mark.push(entry);
    // What is there when a trigger begins is told as it is read: nothing must come before it.
    const begins = this.initial && !this.listed && !rewinds;
    const unknown = (key: string, change: Change) => this.existing(key, change, entry);
    // A position that was given up when time went back, and nothing since: what is known may be of the future still.
    const anew = rewinds || (this.epoch > 0 && this.mark.value === undefined);
    const diff = new GapDiff((key) => view.alive(key), anew ? "different" : "newer", begins ? unknown : undefined);
    const from = gapFrom ?? this.mark.value ?? null;
    const abandon = () => {
      this.listing = false;
      this.settle(entry);
    };
    return {
      item: (change) => {
        // What waits of a first list is told as it is read; of any other all that is read waits until its end.
        if (!this.closed && !this.stepsAside()) diff.item(withUid(change, view.resource));
      },
      end: (to) => {
        const counts = !this.closed && !this.aside && this.complete(diff, { why: reason, gap: { from, to }, entry });
        if (!counts) abandon();
        this.listing = false;
        return counts || this.closed ? "counted" : "held";
      },
      abort: abandon,
    };
  }

  settle(entry: MarkEntry): void {
    if (this.mark.settle(entry)) this.moved();
  }

  isBacklog({ resourceVersion, firm }: MarkEntry): boolean {
    return resourceVersion !== undefined && (firm || isWithin(resourceVersion, this.backlogUpTo));
  }

  cursor(): Cursor | undefined {
    if (this.gone) return undefined;
    const { namespace, selection, epoch } = this;
    return {
      view: this.parts.view.id,
      namespace,
      selection,
      epoch,
      lowWaterMark: this.beginning ? undefined : this.mark.value,
      initial: this.initial,
    };
  }

  /** Takes nothing any more; the cursor follows what is still to end. */
  close(): void {
    this.closed = true;
    this.turns.cancel();
  }

  /** Takes nothing any more, and gives the cursor up, as it is now. */
  leave(): Cursor | undefined {
    const cursor = this.cursor();
    this.close();
    this.gone = true;
    return cursor;
  }

  /** An object of a first list. */
  private existing(key: string, { meta, body, receivedAt }: Change, entry: MarkEntry): void {
    const { view } = this.parts;
    this.newestKnown = newerOf(this.newestKnown, meta.resourceVersion);
    if (view.trigger.initialEvents === "Skip") {
      view.record(key, meta.uid, meta.resourceVersion, body);
      return;
    }
    entry.outstanding++;
    this.emit({ type: "Added", key, meta, body, receivedAt, mark: { owner: this, entry }, flags: initialFlags });
  }

  /**
   * Turns a complete list into events. Its end holds the mark until they are all terminal or on disk.
   * @returns false where it would delete so much that a second one must agree: then nothing of it counts.
   */
  private complete(diff: GapDiff, { why, gap, entry }: CompleteList): boolean {
    const { view, selection, clock, commits, queue } = this.parts;
    const { found, known, deleted } = diff.end(view.live(this.namespace));
    const first = this.initial;
    const other = !this.listed && this.selection !== selection;
    const reselected = !first && !this.listed && (other || this.mark.value === undefined);
    if (!other && !this.guard.believes(deleted, known, clock.monotonic())) return false;
    // What was told of the namespace when it left may still be under way.
    if (reselected) queue.adopt(view, this.namespace, { owner: this, entry });
    if (entry.rewinds || reselected) {
      this.epoch++;
      this.beginning = true;
      view.begin(this.namespace, this.epoch);
    }
    this.listedAt = gap.to;
    entry.resourceVersion = gap.to;
    const { epoch } = this;
    entry.reached = () => {
      if (epoch === this.epoch) this.beginning = false;
      this.selection = selection;
      this.initial = false;
      commits.cursorMoved(this);
    };
    // Who skips what was there knows all of it now: what comes from here on is news, even if the mark cannot follow yet.
    if (view.trigger.initialEvents === "Skip") this.initial = false;
    commits.cursorMoved(this);
    this.listed = true;
    this.newestKnown = undefined;
    this.turns.run(this.tell(found, { why, gap, entry, first, reselected }));
    return true;
  }

  /** Tells of a complete list's differences, one by one. */
  private *tell(
    found: readonly Difference[],
    { why, gap, entry, first, reselected }: CompleteList & { first: boolean; reselected: boolean },
  ): Generator<void> {
    const { commits, view, queue } = this.parts;
    const { missedKind } = this;
    this.missedKind = false;
    const mark = { owner: this, entry };
    const existing = first && view.trigger.initialEvents === "Deliver";
    for (const difference of found) {
      if (!entry.rewinds && !reselected && this.stepsAside()) {
        // What was told is known, what was not is found again by the next list; until then there is no other position.
        entry.resourceVersion = undefined;
        this.listed = false;
        this.settle(entry);
        return;
      }
      const { type, key } = difference;
      entry.outstanding++;
      const selects = reselected && !missedKind && why !== "rv-rewind" && type !== "Modified";
      const reason = selects ? reasons[type] : why === "initial" ? "relist" : why;
      if (type === "Deleted") {
        const flags = { synthetic: true, reason, gap, finalStateUnknown: true } as const;
        const deletedBy = difference.before === undefined ? gap.to : justBefore(difference.before);
        const mayRepeat = this.mayRepeatDeletion(key, difference.known);
        this.emitDeleted(key, difference.known, { mark, flags, deletedBy, selective: reselected, mayRepeat });
      } else {
        const { meta, body, receivedAt } = difference.change;
        const flags = existing && type === "Added" ? initialFlags : ({ synthetic: true, reason, gap } as const);
        this.emit({ type, key, meta, body, receivedAt, mark, flags });
      }
      yield;
    }
    if (entry.rewinds) this.suspect = false;
    else this.trustFrom(gap.to);
    this.settle(entry);
    queue.keepBacklog();
    if (this.recorded) return;
    // A store that is lost for good says so itself.
    const recorded = () => {
      this.recorded = true;
    };
    void commits.sync().then(recorded, () => undefined);
  }

  /**
   * Whether a handler may have been told before that an object went of which only an Added is known that had begun. Of a
   * namespace that left nothing is kept; and no order may say whether a deletion on record came before that Added.
   */
  private mayRepeatDeletion(key: string, { unfinished, uid }: KnownObject): boolean {
    const { view } = this.parts;
    if (unfinished !== "Added") return false;
    const standing = view.standing(key);
    return view.trigger.namespaces.type !== "all" || (standing?.deleted === true && standing.uid === uid);
  }

  /**
   * All up to here has come. What comes next is news, unless the server that says so lags behind the one that the process
   * before this one had listened to.
   */
  private trustFrom(resourceVersion: ResourceVersion): void {
    if (this.suspectUpTo === undefined || !isNewer(this.suspectUpTo, resourceVersion)) this.suspect = false;
  }

  /** Whether a change was received before. */
  private isReplay(change: Change, standing: Standing | undefined): boolean {
    if (standing && endsAsItWas(standing, change)) return false;
    return this.isPassed(change.meta.resourceVersion) || (standing !== undefined && isStale(standing, change));
  }

  /** Whether it must have come before: the last list covers it, or the mark is past it. */
  private isPassed(resourceVersion: ResourceVersion): boolean {
    return isWithin(resourceVersion, this.listedAt) || (!this.beginning && isWithin(resourceVersion, this.mark.value));
  }

  private emitDeleted(key: string, known: KnownObject, more: Partial<EventSource>): void {
    const meta = { ...nameOf(key), uid: known.uid, resourceVersion: known.resourceVersion };
    this.emit({ type: "Deleted", key, meta, receivedAt: this.parts.clock.monotonic(), ...more });
  }

  private emit(source: Omit<EventSource, "view" | "epoch" | "selective"> & Partial<EventSource>): void {
    const { view, queue, maker } = this.parts;
    const { epoch, suspect } = this;
    queue.accept(
      maker.make({
        view,
        epoch,
        redelivered: suspect,
        ...source,
        selective: source.selective || isSelective(view.trigger),
      }),
    );
  }

  /** The mark has moved: the cursor is to be saved, and no replay reaches behind it any more. */
  private moved(): void {
    const { view, commits } = this.parts;
    commits.cursorMoved(this);
    if (this.mark.value !== undefined) view.exhume(this.namespace, this.mark.value, this.mark.length === 0);
  }
}

interface CompleteList {
  readonly why: ListReason;
  readonly gap: { readonly from: ResourceVersion | null; readonly to: ResourceVersion };
  /** Holds the mark until the list is told. */
  readonly entry: MarkEntry;
}

const initialFlags: EventFlags = { initial: true };

/** Why an object came or went when the selection changed. */
const reasons = { Added: "selected", Deleted: "unselected" } as const;

/** Whether objects can come and go without being created or deleted. */
const isSelective = ({ labelSelector, fieldSelector, namespaces }: Trigger): boolean =>
  labelSelector !== "" || fieldSelector !== "" || namespaces.type === "labels";

/**
 * Whether it is a deletion that carries the last state's own resourceVersion, as APIs send that are not etcd's. The object
 * stands, so the deletion is news, wherever the mark is by then.
 */
const endsAsItWas = (standing: Standing, { type, meta }: Change): boolean =>
  type === "Deleted" &&
  !standing.deleted &&
  standing.uid === meta.uid &&
  standing.resourceVersion === meta.resourceVersion;

/**
 * Whether a change is no newer than where its object stands. Where resourceVersions cannot be ordered only the same one
 * is, and the deletion of an object that is known to be deleted.
 */
function isStale(standing: Standing, { type, meta }: Change): boolean {
  if (isUpTo(meta.resourceVersion, standing.resourceVersion)) return true;
  return standing.deleted && standing.uid === meta.uid && type === "Deleted";
}

const isWithin = (resourceVersion: ResourceVersion, limit: ResourceVersion | undefined): boolean =>
  limit !== undefined && isUpTo(resourceVersion, limit);

/** The newest resourceVersion that is older; the same where none can be told. */
const justBefore = (version: ResourceVersion): ResourceVersion => predecessor(version) ?? version;
