import type { Clock } from "../../base/clock.ts";
import { isNewer, type ResourceVersion } from "../../base/resource-version.ts";
import type { ObjectMeta } from "../../informer/scan/change.ts";
import type { ObjectMembers } from "../../informer/scan/object-members.ts";
import type { EventType } from "../../manifest/function.ts";
import type { EventFlags } from "../delivery/delivery.ts";
import { epochOf, eventId, withTrigger } from "../delivery/event-id.ts";
import type { Verdict } from "../filter/filter.ts";
import { graver, type PossibleRedeliveries, type RedeliveryRisk } from "../redelivery/possible-redeliveries.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { LaneEvent } from "./event.ts";
import type { LoadedEvent } from "./spill.ts";

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
    const { namespace, name, uid, resourceVersion, type, flags, body, size, sequence, replayed } = stored;
    const key = `${namespace}/${name}`;
    const id = withTrigger(stored.id, view.identity);
    const noted = stored.redelivered ? "noted" : "none";
    const { attempts, doubt, begun } = this.doubts.ofStored({ ...stored, view: view.id, id }, noted);
    return laneEvent({
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
