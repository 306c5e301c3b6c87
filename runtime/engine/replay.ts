import type { Clock } from "../base/clock.ts";
import { type Change, objectKey } from "../informer/scan/change.ts";
import type { SpilledEvent } from "../journal/batch.ts";
import type { EventType } from "../manifest/function.ts";
import { eventId } from "./delivery/delivery.ts";
import type { KnownObjects } from "./state/known-objects.ts";
import { type EventMaker, withUid } from "./work/event.ts";
import type { EventQueue } from "./work/event-queue.ts";

/** The result of a request to deliver an object again. */
export type Redelivery =
  | "queued"
  /** An event of it waits already. */
  | "waits"
  /** The trigger has not handled this state yet: the state's own event, or a list, is in progress. */
  | "news"
  /** The trigger's conditions do not hold for it, or it subscribes to deletions alone. */
  | "filtered"
  /** There is no room for waiting events. */
  | "full";

/** An event that ran before. */
export interface PastEvent {
  readonly id: string;
  readonly type: EventType;
}

interface RedeliveryParts {
  readonly queue: Pick<EventQueue, "acceptSpilled" | "takesReplay">;
  readonly maker: Pick<EventMaker, "nextSequence">;
  readonly clock: Clock;
}

/**
 * Puts an object's state at the end of its lane, as a replay. The event is durable and flagged as redelivered, and does not
 * change the known objects. The state must be the known one, without waiting events. Otherwise its own event could follow, under
 * the same id and without a flag.
 * @param again the past event of that state to repeat. Default: a new event.
 */
export function redeliver(objects: KnownObjects, given: Change, parts: RedeliveryParts, again?: PastEvent): Redelivery {
  const change = withUid(given, objects.resource);
  const { meta, body } = change;
  const key = objectKey(meta);
  if (!objects.isIdle(key)) return "waits";
  const state = objects.stateAfterQueue(key);
  if (objects.hasNeverMatched(key) && !objects.matches(key, body)) return "filtered";
  if (!state || state.deleted || state.uid !== meta.uid) return "news";
  if (state.resourceVersion !== meta.resourceVersion) return "news";
  const { events } = objects.trigger;
  const type = again?.type ?? (["Modified", "Added"] as const).find((each) => events.includes(each));
  if (!type || !(again || objects.matches(key, body))) return "filtered";
  const { queue, maker, clock } = parts;
  if (!queue.takesReplay(body.length)) return "full";
  const { namespace, name, uid, resourceVersion } = meta;
  const epoch = objects.epochOf(key);
  const identity = { trigger: objects.identity, type, uid, resourceVersion, lastKnown: false, selective: false, epoch };
  const event: SpilledEvent = {
    kind: "event",
    view: objects.id,
    function: objects.functionName,
    trigger: objects.trigger.name,
    namespace,
    name,
    uid,
    resourceVersion,
    type,
    id: again?.id ?? eventId(identity),
    flags: {},
    deletedBy: resourceVersion,
    body,
    oldBody: undefined,
    form: objects.form.ofEvents,
    receivedAt: clock.now(),
    sequence: maker.nextSequence(),
    replayed: true,
    redelivered: true,
  };
  queue.acceptSpilled(event);
  return "queued";
}
