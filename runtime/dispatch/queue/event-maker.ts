import type { SpilledEvent } from "../../checkpoint/batch.ts";
import type { Clock } from "../../clock.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { ResourceVersion } from "../../resource-version.ts";
import type { ObjectMeta } from "../../watch/change.ts";
import type { EventFlags } from "../delivery/delivery.ts";
import { epochOf, eventId } from "../delivery/event-id.ts";
import type { Doubt, Doubts } from "../doubt/doubt.ts";
import type { View } from "../position/view.ts";
import type { LaneEvent } from "./event.ts";

/** What an event is made from; what is absent is usual. */
export interface EventSource {
  readonly view: View;
  readonly type: ChangeType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** Absent of a deletion that was found. */
  readonly body?: Buffer;
  readonly receivedAt: number;
  readonly epoch: number;
  readonly selective: boolean;
  readonly mark?: LaneEvent["mark"];
  readonly flags?: EventFlags;
  readonly deletedBy?: ResourceVersion;
  /** What its source says of it. */
  readonly doubt?: Doubt;
}

const noFlags: EventFlags = {};

/** Makes a function's events, in order of arrival. */
export class EventMaker {
  private readonly clock: Clock;
  private readonly doubts: Doubts;
  /** The first that is given; lower ones are of a process before. */
  readonly firstSequence: number;
  private sequence: number;

  /** @param sequence the highest that was used */
  constructor(clock: Clock, doubts: Doubts, sequence: number) {
    this.firstSequence = sequence + 1;
    this.clock = clock;
    this.doubts = doubts;
    this.sequence = sequence;
  }

  nextSequence(): number {
    return ++this.sequence;
  }

  make(source: EventSource): LaneEvent {
    const { view, type, key, meta, body, selective, epoch } = source;
    const lastKnown = body === undefined;
    const { uid, resourceVersion } = meta;
    const deletedBy = source.deletedBy ?? resourceVersion;
    const id = eventId({ type, uid, resourceVersion, lastKnown, selective, epoch });
    const told = { view: view.id, key, uid, id, type, deletedBy };
    const { attempts, doubt } = this.doubts.ofNew(told, source.doubt ?? "none");
    return {
      view,
      sequence: this.nextSequence(),
      type,
      key,
      meta,
      id,
      flags: source.flags ?? noFlags,
      body,
      oldBody: undefined,
      size: body?.length ?? 0,
      receivedAt: source.receivedAt,
      receivedWall: this.clock.now(),
      lastKnown,
      deletedBy,
      epoch,
      replayed: false,
      mark: source.mark,
      place: "memory",
      attempts,
      interruptions: 0,
      doubt,
      verdict: undefined,
      journalRow: undefined,
    };
  }

  /** An event that comes back from the spill. */
  restore(stored: SpilledEvent, view: View): LaneEvent {
    const { type, namespace, name, uid, resourceVersion, flags, body, sequence, replayed } = stored;
    const key = `${namespace}/${name}`;
    const noted = stored.redelivered ? "noted" : "none";
    const { attempts, doubt } = this.doubts.ofStored({ ...stored, view: view.id, key }, noted);
    return {
      view,
      sequence,
      type,
      key,
      meta: { namespace, name, uid, resourceVersion },
      id: stored.id,
      flags,
      body: body.length > 0 ? body : undefined,
      oldBody: stored.oldBody,
      size: body.length,
      receivedAt: this.clock.monotonic(),
      receivedWall: stored.receivedAt,
      lastKnown: flags.finalStateUnknown === true,
      deletedBy: stored.deletedBy,
      epoch: epochOf(stored.id),
      replayed,
      mark: undefined,
      place: "both",
      attempts,
      interruptions: 0,
      doubt,
      verdict: undefined,
      journalRow: undefined,
    };
  }
}
