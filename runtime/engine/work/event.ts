import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { isNewer, type ResourceVersion } from "../../base/resource-version.ts";
import { type Change, metadataIn, type ObjectMembers, type ObjectMeta } from "../../informer/scan/change.ts";
import type { SpilledEvent, StoredEvent } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";
import type { PositionHold } from "../commit/deferred-rows.ts";
import { type Delivery, type EventFlags, epochOf, eventId, withTrigger } from "../delivery/delivery.ts";
import type { Verdict } from "../filter/filter.ts";
import { goneMeanwhile, notAsked, refusedBefore, unchanged, unselected } from "../filter/reason.ts";
import type { OwnState } from "../own-state/own-state.ts";
import { graver, type PossibleRedeliveries, type RedeliveryRisk } from "../redelivery/possible-redeliveries.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { MarkEntry } from "../state/low-water-mark.ts";
import type { ObjectEvent } from "../state/object-state.ts";
import type { Chunk } from "./budget.ts";

/** Is notified when an event becomes terminal: the subscription whose low-water mark the event holds. */
export interface MarkOwner {
  settle(entry: MarkEntry): void;
  /**
   * Whether the server may drop the entry's history at any moment: the change happened before the source connected, at an unknown
   * time, or a complete list showed it, which is read if there is no history.
   */
  isBacklog(entry: MarkEntry): boolean;
}

/**
 * The storage of an event. `memory`: memory alone, so it holds the mark. `both`: memory and disk. `disk`: disk, with only its
 * place in the lane in memory.
 */
type EventStorage = "memory" | "both" | "disk";

/** An event on its way through a lane. */
export interface LaneEvent extends ObjectEvent {
  /** `tick`: the time of a schedule, which belongs to no object. */
  readonly kind: "event" | "tick";
  readonly objects: KnownObjects;
  /** The position in the function's order of arrival. */
  readonly sequence: number;
  readonly id: string;
  /** Replaced if the event stands for coalesced events of its object. */
  flags: EventFlags;
  /** `undefined` while only the disk has it, and for a deletion that was found: the known objects have the last body. */
  body: Buffer | undefined;
  /** The network buffer that the body is a part of, while the event waits. */
  chunk: Chunk | undefined;
  /** Byte ranges of the object's members in the body, if the body is as received. */
  readonly members: ObjectMembers | undefined;
  /** Set only for a replayed dead letter; otherwise it is the last known body. */
  readonly oldBody: Buffer | undefined;
  /** The body's size in bytes, whether it is in memory or not. */
  readonly size: number;
  /** The arrival in monotonic milliseconds; for an event that stands for others, the arrival of the first of them. */
  receivedAt: number;
  /** The arrival in wall-clock milliseconds. */
  readonly receivedWall: number;
  /** Whether it is a dead letter that was put back: its state was filtered, and is known already. */
  readonly replayed: boolean;
  /**
   * Whether the body was fetched from the API server, because the one on disk had another form. It is then not the event's own
   * state.
   */
  isFetched: boolean;
  /** The state that its handler received, if that is newer than its own. */
  shown: ResourceVersion | undefined;
  /** Whether it waited on disk, and its trigger no longer selects its object. */
  readonly isUnselected: boolean;
  /** The entry that holds the low-water mark; `undefined` once the mark may pass. */
  mark: { readonly owner: MarkOwner; readonly entry: MarkEntry } | undefined;
  place: EventStorage;
  /** The number of attempts that began. */
  attempts: number;
  interruptions: number;
  /** Epoch milliseconds before which it must not run, because its handler asked for a later time. */
  notBefore: number | undefined;
  redeliveryRisk: RedeliveryRisk;
  verdict: Verdict | undefined;
  /** The journal's row of the last attempt that began. */
  journalRow: number | undefined;
}

/** An event that was read back from disk. */
export interface LoadedEvent extends SpilledEvent {
  /** The size of its body on disk, in bytes. */
  readonly size: number;
  /** Whether the trigger no longer selects its object. */
  readonly isUnselected: boolean;
}

/** Lets the mark pass an event. */
export const releaseMark = ({ mark }: LaneEvent): void => mark?.owner.settle(mark.entry);

/**
 * Returns the hold of an event whose row rests; `undefined` if the mark may be past the event already, because it was on disk.
 * The hold must not reference the event, whose body keeps a whole chunk alive: a row may rest for seconds.
 */
export function holdOf({ mark }: LaneEvent): PositionHold | undefined {
  return mark && { owner: mark.owner, ended: () => mark.owner.settle(mark.entry) };
}

/** Prefix of a substitute for a missing uid. */
const surrogate = "~";

/** Returns the change with a uid: its own, or, for the rare API without uids, a digest of what identifies the object. */
export function withUid(change: Change, resource: string): Change {
  if (change.meta.uid !== "") return change;
  const { namespace, name } = change.meta;
  const created = creationTimestamp(change.body);
  const digest = createHash("sha256").update([resource, namespace, name, created].join("\0")).digest("base64url");
  return { ...change, meta: { ...change.meta, uid: `${surrogate}${digest.slice(0, 22)}` } };
}

/** Returns the uid as the API sent it. */
const givenUid = (uid: string): string => (uid.startsWith(surrogate) ? "" : uid);

function creationTimestamp(body: Buffer): string {
  const object: unknown = JSON.parse(body.toString());
  const metadata = object !== null && typeof object === "object" && "metadata" in object ? object.metadata : undefined;
  const named = metadata !== null && typeof metadata === "object" && "creationTimestamp" in metadata;
  return named ? String(metadata.creationTimestamp) : "";
}

/** Converts an event for the spill and the dead letters. An empty body means that the known objects have it. */
export function storedEvent(event: LaneEvent, oldBody: Buffer | undefined): StoredEvent {
  const { objects, meta, type, id, flags } = event;
  return {
    view: objects.id,
    function: objects.functionName,
    trigger: objects.trigger.name,
    namespace: meta.namespace,
    name: meta.name,
    uid: meta.uid,
    resourceVersion: meta.resourceVersion,
    type,
    id,
    flags: { ...flags },
    deletedBy: event.deletedBy,
    body: event.body ?? Buffer.alloc(0),
    oldBody,
    form: objects.form.ofEvents,
    receivedAt: event.receivedWall,
  };
}

/** Converts an event for the spill. */
export function spilledEvent(event: LaneEvent): SpilledEvent {
  const { kind, sequence, replayed, redeliveryRisk, notBefore, isFetched } = event;
  const stored = storedEvent(event, event.oldBody);
  // A fetched object is fetched again at the next attempt. On disk it would be taken for the event's own state.
  const body = isFetched ? Buffer.alloc(0) : stored.body;
  return { ...stored, kind, body, sequence, replayed, redelivered: redeliveryRisk !== "none", notBefore };
}

/** The origin of an event. */
export interface EventOrigin {
  readonly objects: KnownObjects;
  readonly epoch: number;
  /** Whether objects can enter and leave the selection without being created or deleted. */
  readonly isSelective: boolean;
}

/** The input of an event; an absent field has its usual value. */
export interface EventInput {
  readonly type: EventType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** Absent for a deletion that was found. */
  readonly body?: Buffer;
  /** Byte ranges of the object's members in the body. */
  readonly members?: ObjectMembers | undefined;
  readonly receivedAt: number;
  /** Replaces the origin's `isSelective` for this event. */
  readonly selective?: boolean;
  readonly mark?: LaneEvent["mark"];
  readonly flags?: EventFlags;
  readonly deletedBy?: ResourceVersion;
  /** The risk that the source reports. */
  readonly redeliveryRisk?: RedeliveryRisk;
  /** The verdict, if the event was judged before it was made. */
  readonly verdict?: Verdict | undefined;
}

const noFlags: EventFlags = {};

/** An event before its first attempt here; an absent field has its usual value. */
type NewEvent = Omit<
  LaneEvent,
  | "kind"
  | "size"
  | "chunk"
  | "interruptions"
  | "verdict"
  | "journalRow"
  | "oldBody"
  | "replayed"
  | "isFetched"
  | "shown"
  | "isUnselected"
  | "mark"
  | "members"
  | "notBefore"
> &
  Partial<
    Pick<
      LaneEvent,
      | "kind"
      | "journalRow"
      | "shown"
      | "isUnselected"
      | "size"
      | "oldBody"
      | "replayed"
      | "mark"
      | "members"
      | "notBefore"
      | "verdict"
    >
  >;

/** Builds all events, so that all of them have one hidden class. */
const laneEvent = (made: NewEvent): LaneEvent => ({
  kind: made.kind ?? "event",
  objects: made.objects,
  sequence: made.sequence,
  type: made.type,
  key: made.key,
  meta: made.meta,
  id: made.id,
  flags: made.flags,
  body: made.body,
  chunk: undefined,
  members: made.members,
  oldBody: made.oldBody,
  size: made.size ?? made.body?.length ?? 0,
  receivedAt: made.receivedAt,
  receivedWall: made.receivedWall,
  lastKnown: made.lastKnown,
  deletedBy: made.deletedBy,
  epoch: made.epoch,
  replayed: made.replayed ?? false,
  isFetched: false,
  shown: made.shown,
  isUnselected: made.isUnselected ?? false,
  mark: made.mark,
  place: made.place,
  attempts: made.attempts,
  interruptions: 0,
  notBefore: made.notBefore,
  redeliveryRisk: made.redeliveryRisk,
  verdict: made.verdict,
  journalRow: made.journalRow,
});

/** Makes a function's events, in order of arrival. */
export class EventMaker {
  private readonly clock: Clock;
  private readonly possibleRedeliveries: PossibleRedeliveries;
  private sequence: number;

  /** @param sequence the highest sequence that was used */
  constructor(clock: Clock, possibleRedeliveries: PossibleRedeliveries, sequence: number) {
    this.clock = clock;
    this.possibleRedeliveries = possibleRedeliveries;
    this.sequence = sequence;
  }

  nextSequence(): number {
    return ++this.sequence;
  }

  /** Makes an event. `originRisk` is the risk that the origin reports, in addition to the source's own. */
  make(
    source: EventInput,
    { objects, epoch, isSelective }: EventOrigin,
    originRisk: RedeliveryRisk = "none",
  ): LaneEvent {
    const { type, key, meta, body } = source;
    const selective = source.selective || isSelective;
    const lastKnown = body === undefined;
    const { uid, resourceVersion } = meta;
    const deletedBy = source.deletedBy ?? resourceVersion;
    const id = eventId({ trigger: objects.identity, type, uid, resourceVersion, lastKnown, selective, epoch });
    const identity = { view: objects.id, uid, id, type };
    const isOvertaken = objects.isOvertaken(key, deletedBy);
    const { attempts, redeliveryRisk } = this.possibleRedeliveries.ofNew(
      identity,
      isOvertaken,
      graver(originRisk, source.redeliveryRisk ?? "none"),
    );
    return laneEvent({
      objects,
      sequence: this.nextSequence(),
      type,
      key,
      meta,
      id,
      flags: source.flags ?? noFlags,
      body,
      members: source.members,
      receivedAt: source.receivedAt,
      receivedWall: this.clock.now(),
      lastKnown,
      deletedBy,
      epoch,
      mark: source.mark,
      place: "memory",
      attempts,
      redeliveryRisk,
      verdict: source.verdict,
    });
  }

  /** Restores an event from the spill. */
  restore(stored: LoadedEvent, objects: KnownObjects): LaneEvent {
    const { kind, namespace, name, uid, resourceVersion, type, flags, body, size, sequence, replayed } = stored;
    const key = `${namespace}/${name}`;
    const id = withTrigger(stored.id, objects.identity);
    const storedRisk = stored.redelivered ? "persisted" : "none";
    const { attempts, redeliveryRisk, begun } = this.possibleRedeliveries.ofStored(
      { ...stored, view: objects.id, id },
      storedRisk,
    );
    return laneEvent({
      kind,
      objects,
      sequence,
      type,
      key,
      meta: { namespace, name, uid, resourceVersion },
      id,
      flags,
      body: body.length > 0 ? body : undefined,
      size,
      isUnselected: stored.isUnselected,
      oldBody: stored.oldBody,
      receivedAt: this.clock.monotonic(),
      receivedWall: stored.receivedAt,
      lastKnown: flags.finalStateUnknown === true,
      notBefore: stored.notBefore,
      deletedBy: stored.deletedBy,
      epoch: epochOf(id),
      replayed,
      place: "both",
      attempts,
      redeliveryRisk,
      journalRow: begun?.row,
      // The object may be gone by the next attempt. The record that its newer state was shown must not end with this event.
      shown: begun && isNewer(begun.resourceVersion, stored.deletedBy) ? begun.resourceVersion : undefined,
    });
  }
}

/** Verdict on an event whose object needs no judgement. */
export const deliverUnfiltered: Verdict = { deliver: true, heldBack: undefined, hash: "", matched: true };
/** The object is gone: its deletion is delivered, and earlier events are not. */
export const goneVerdict: Verdict = { deliver: false, heldBack: goneMeanwhile, hash: "", matched: true };
export const unselectedVerdict: Verdict = { deliver: false, heldBack: unselected, hash: "", matched: true };

/** True if the event is delivered with the object's current state. A dead letter that was put back keeps its own body. */
export const usesCurrentState = ({ type, replayed, flags }: LaneEvent): boolean =>
  type !== "Deleted" && (!replayed || flags.reason === "edited");

/**
 * True if the event is dropped undelivered, because the trigger no longer selects the object. A deletion is dropped only if all
 * earlier events of the object were.
 */
export const isDropped = ({ type, objects, key, meta, isUnselected }: LaneEvent): boolean =>
  type === "Deleted" ? objects.isDroppedUnselected(key, meta.uid) : isUnselected;

/**
 * True if a verdict keeps an event from its handler. A dead letter that was put back is delivered whatever the manifest says by
 * now. An event that an edit of the manifest made obeys the next manifest's `events` and conditions; its fields need not differ.
 */
export function isHeldBack({ replayed, isFetched, flags }: LaneEvent, { deliver, heldBack }: Verdict): boolean {
  if (deliver || !replayed || isFetched) return !deliver;
  return flags.reason === "edited" && heldBack !== unchanged;
}

/** Returns the verdict on a replay whose object was read from the API server. */
export function fetchedVerdict(event: LaneEvent, body: Buffer | undefined): Verdict {
  if (!body || !usesCurrentState(event)) return deliverUnfiltered;
  if (!event.objects.trigger.events.includes(event.type)) return { ...goneVerdict, heldBack: notAsked };
  return event.objects.matches(event.key, body) ? deliverUnfiltered : { ...goneVerdict, heldBack: refusedBefore };
}

/** Whether the event may have run before. Called after its current attempt has been counted. */
export const isRedelivered = ({ redeliveryRisk, attempts }: Pick<LaneEvent, "redeliveryRisk" | "attempts">): boolean =>
  redeliveryRisk !== "none" || attempts > 1;

/** Builds the delivery of one attempt at an event. */
export function deliveryOf(
  event: LaneEvent,
  { body, oldBody }: Pick<Delivery, "body" | "oldBody">,
  timeoutMs: number,
  state: OwnState | undefined,
): Delivery {
  const { objects, meta, type, id, flags, attempts } = event;
  return {
    function: objects.functionName,
    trigger: objects.trigger.name,
    id,
    type,
    object: {
      apiVersion: objects.trigger.apiVersion,
      kind: objects.trigger.kind,
      namespace: meta.namespace,
      name: meta.name,
      uid: givenUid(meta.uid),
    },
    resourceVersion: meta.resourceVersion,
    past: event.epoch < objects.epochOf(event.key),
    receivedAt: event.receivedWall,
    attempt: attempts,
    redelivered: isRedelivered(event),
    flags,
    body,
    metadata: event.members && metadataIn(event.members, body),
    oldBody,
    timeoutMs,
    state,
    staged: undefined,
  };
}
