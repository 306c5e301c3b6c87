import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { isNewer, type ResourceVersion } from "../../base/resource-version.ts";
import type { Change, ObjectMembers, ObjectMeta } from "../../informer/scan/change.ts";
import type { SpilledEvent, StoredEvent } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";
import type { PositionHold } from "../commit/deferred-rows.ts";
import { type EventFlags, epochOf, eventId, withTrigger } from "../delivery/delivery.ts";
import type { Verdict } from "../filter/filter.ts";
import { graver, type PossibleRedeliveries, type RedeliveryRisk } from "../redelivery/possible-redeliveries.ts";
import type { KnownObjects, ViewEvent } from "../state/known-objects.ts";
import type { MarkEntry } from "../state/low-water-mark.ts";
import type { Chunk } from "./budget.ts";

/** Who is told that an event has become terminal: the subscription whose low-water mark it holds. */
export interface MarkOwner {
  settle(entry: MarkEntry): void;
  /**
   * Whether the history that holds it may be gone any moment. Either it had happened when the source connected, at a
   * time that is not known. Or a complete list told of it, which is read where there is no history.
   */
  isBacklog(entry: MarkEntry): boolean;
}

/**
 * `memory`: there alone, so that it holds the mark. `both`: on disk as well. `disk`: with its place in the lane in memory.
 */
type EventStorage = "memory" | "both" | "disk";

/** An event on its way through a lane. */
export interface LaneEvent extends ViewEvent {
  /** `tick`: the time of a schedule, which is of no object. */
  readonly kind: "event" | "tick";
  readonly view: KnownObjects;
  /** The function's order of arrival. */
  readonly sequence: number;
  readonly id: string;
  /** Others where it stands for events of its object that gave way. */
  flags: EventFlags;
  /** Undefined while only the disk holds it, and of a deletion that was found: the view has the last one known. */
  body: Buffer | undefined;
  /** What the body is a part of, while the event waits. */
  chunk: Chunk | undefined;
  /** Where the object's members are in that, where it is as it was received. */
  readonly members: ObjectMembers | undefined;
  /** Only of a replayed dead letter; otherwise it is what the view knows. */
  readonly oldBody: Buffer | undefined;
  /** Its size, whether in memory or not, in bytes. */
  readonly size: number;
  /** Monotonic milliseconds; of one that stands for others, when the first of them came. */
  receivedAt: number;
  /** Wall milliseconds. */
  readonly receivedWall: number;
  /** A dead letter put back: filtered and known already. */
  readonly replayed: boolean;
  /** Its body is no state of its own: the one on disk had another form, and the API server was asked. */
  isAsked: boolean;
  /** The state that its handler has begun with where that is newer than its own. */
  shown: ResourceVersion | undefined;
  /** It waited on disk, and its trigger selects its object no more. */
  readonly isUnselected: boolean;
  /** What holds the low-water mark; undefined once the mark may pass. */
  mark: { readonly owner: MarkOwner; readonly entry: MarkEntry } | undefined;
  place: EventStorage;
  /** Attempts that began. */
  attempts: number;
  interruptions: number;
  /** Epoch milliseconds: its handler asked for it to come again then, and not before. */
  notBefore: number | undefined;
  doubt: RedeliveryRisk;
  verdict: Verdict | undefined;
  /** The journal's row of the last attempt that began. */
  journalRow: number | undefined;
}

/** An event that was read back from disk. */
export interface LoadedEvent extends SpilledEvent {
  /** Of its body on disk, in bytes. */
  readonly size: number;
  /** The trigger selects its object no more. */
  readonly isUnselected: boolean;
}

/** The mark may pass it. */
export const letGo = ({ mark }: LaneEvent): void => mark?.owner.settle(mark.entry);

/**
 * What it holds up while its row rests. Undefined where the mark may be past it already, since it was on disk. It keeps
 * nothing of the event, whose body is a part of a whole chunk: a row may rest for seconds.
 */
export function holdOf({ mark }: LaneEvent): PositionHold | undefined {
  return mark && { owner: mark.owner, ended: () => mark.owner.settle(mark.entry) };
}

/** Begins what stands in for a missing uid. */
const surrogate = "~";

/** The change with a uid: its own, or for the rare API that gives none a digest of what makes the object that object. */
export function withUid(change: Change, resource: string): Change {
  if (change.meta.uid !== "") return change;
  const { namespace, name } = change.meta;
  const created = creationTimestamp(change.body);
  const digest = createHash("sha256").update([resource, namespace, name, created].join("\0")).digest("base64url");
  return { ...change, meta: { ...change.meta, uid: `${surrogate}${digest.slice(0, 22)}` } };
}

/** The uid as the API gave it. */
export const givenUid = (uid: string): string => (uid.startsWith(surrogate) ? "" : uid);

function creationTimestamp(body: Buffer): string {
  const object: unknown = JSON.parse(body.toString());
  const metadata = object !== null && typeof object === "object" && "metadata" in object ? object.metadata : undefined;
  const named = metadata !== null && typeof metadata === "object" && "creationTimestamp" in metadata;
  return named ? String(metadata.creationTimestamp) : "";
}

/** The event as the spill and the dead letters keep it; an empty body stands for one that the view has. */
export function storedEvent(event: LaneEvent, oldBody: Buffer | undefined): StoredEvent {
  const { view, meta, type, id, flags } = event;
  return {
    view: view.id,
    function: view.functionName,
    trigger: view.trigger.name,
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
    form: view.form.ofEvents,
    receivedAt: event.receivedWall,
  };
}

/** The event as the spill keeps it. */
export function spilledEvent(event: LaneEvent): SpilledEvent {
  const { kind, sequence, replayed, doubt, notBefore, isAsked } = event;
  const stored = storedEvent(event, event.oldBody);
  // The object as it stood at one attempt is asked for again at the next: on disk it would pass for the event's own state.
  const body = isAsked ? Buffer.alloc(0) : stored.body;
  return { ...stored, kind, body, sequence, replayed, redelivered: doubt !== "none", notBefore };
}

/** Whose event it is. */
export interface EventOrigin {
  readonly view: KnownObjects;
  readonly epoch: number;
  /** Objects can come and go there without being created or deleted. */
  readonly isSelective: boolean;
}

/** What an event is made from; what is absent is usual. */
export interface EventInput {
  readonly type: EventType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** Absent of a deletion that was found. */
  readonly body?: Buffer;
  /** Where the object's members are in it. */
  readonly members?: ObjectMembers | undefined;
  readonly receivedAt: number;
  /** As of its origin, where that is not so as a rule. */
  readonly selective?: boolean;
  readonly mark?: LaneEvent["mark"];
  readonly flags?: EventFlags;
  readonly deletedBy?: ResourceVersion;
  /** What its source says of it. */
  readonly doubt?: RedeliveryRisk;
  /** Where it was judged before it was made. */
  readonly verdict?: Verdict | undefined;
}

const noFlags: EventFlags = {};

/** An event before its first attempt here; what is absent is usual. */
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
  | "isAsked"
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

/** The one place that events are built in, so that all of them have one shape. */
const laneEvent = (made: NewEvent): LaneEvent => ({
  kind: made.kind ?? "event",
  view: made.view,
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
  isAsked: false,
  shown: made.shown,
  isUnselected: made.isUnselected ?? false,
  mark: made.mark,
  place: made.place,
  attempts: made.attempts,
  interruptions: 0,
  notBefore: made.notBefore,
  doubt: made.doubt,
  verdict: made.verdict,
  journalRow: made.journalRow,
});

/** Makes a function's events, in order of arrival. */
export class EventMaker {
  private readonly clock: Clock;
  private readonly doubts: PossibleRedeliveries;
  private sequence: number;

  /** @param sequence the highest that was used */
  constructor(clock: Clock, doubts: PossibleRedeliveries, sequence: number) {
    this.clock = clock;
    this.doubts = doubts;
    this.sequence = sequence;
  }

  nextSequence(): number {
    return ++this.sequence;
  }

  /** @param doubtThere what the origin says of it, if not the source itself */
  make(source: EventInput, { view, epoch, isSelective }: EventOrigin, doubtThere: RedeliveryRisk = "none"): LaneEvent {
    const { type, key, meta, body } = source;
    const selective = source.selective || isSelective;
    const lastKnown = body === undefined;
    const { uid, resourceVersion } = meta;
    const deletedBy = source.deletedBy ?? resourceVersion;
    const id = eventId({ trigger: view.identity, type, uid, resourceVersion, lastKnown, selective, epoch });
    const told = { view: view.id, uid, id, type };
    const isOvertaken = view.isOvertaken(key, deletedBy);
    const { attempts, doubt } = this.doubts.ofNew(told, isOvertaken, graver(doubtThere, source.doubt ?? "none"));
    return laneEvent({
      view,
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
      doubt,
      verdict: source.verdict,
    });
  }

  /** An event that comes back from the spill. */
  restore(stored: LoadedEvent, view: KnownObjects): LaneEvent {
    const { kind, namespace, name, uid, resourceVersion, type, flags, body, size, sequence, replayed } = stored;
    const key = `${namespace}/${name}`;
    const id = withTrigger(stored.id, view.identity);
    const noted = stored.redelivered ? "noted" : "none";
    const { attempts, doubt, begun } = this.doubts.ofStored({ ...stored, view: view.id, id }, noted);
    return laneEvent({
      kind,
      view,
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
      doubt,
      journalRow: begun?.row,
      // The object may be gone by the next attempt: what says that its newer state was shown must not end with this event.
      shown: begun && isNewer(begun.resourceVersion, stored.deletedBy) ? begun.resourceVersion : undefined,
    });
  }
}
