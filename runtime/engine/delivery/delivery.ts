// Interface between dispatch and the sandbox: deliveries and their results.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ObjectMeta } from "../../informer/scan/change.ts";
import type { Cause } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";
import type { OwnState, StagedState } from "../own-state/own-state.ts";

/** One attempt at one event. */
export interface Delivery {
  readonly function: string;
  readonly trigger: string;
  /** The handler's idempotency key: the same change has the same id in every delivery. */
  readonly id: string;
  readonly type: EventType;
  /** The triggering object, for display and for `ctx.events`. */
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly resourceVersion: string;
  /**
   * Whether its resourceVersion is of an earlier epoch: it was received before the cluster's state went back, or the selection
   * changed.
   */
  readonly past?: boolean;
  /** When the event was received, or the key was woken, in epoch milliseconds. */
  readonly receivedAt?: number;
  /** From 1. */
  readonly attempt: number;
  /** True if an earlier delivery of this id may have run. */
  readonly redelivered: boolean;
  readonly flags: EventFlags;
  /** The object's JSON text; empty if a key has no object. */
  readonly body: Buffer;
  /** The byte range of its metadata in the body, if known. */
  readonly metadata?: Span | undefined;
  /** For a run of a key, which is not an event: what woke it. `object` then names the key, and `body` is its newest state. */
  readonly causes?: readonly Cause[];
  /** The states of the changes among `causes`. Nothing that is read for the run may be older. */
  readonly seen?: readonly Seen[];
  /** The previous object's JSON text, if it is stored and the handler uses it. */
  readonly oldBody?: Buffer | undefined;
  /** The ids of the events in a batch; `body` is then a JSON list of them. */
  readonly batch?: readonly string[];
  /** The deliveries in a batch. */
  readonly members?: readonly Delivery[];
  /** The attempt's wall-clock limit in milliseconds. */
  readonly timeoutMs: number;
  /** The function's own state. */
  readonly state?: OwnState | undefined;
  /** The attempt's view of it, once its handler uses it. */
  staged?: StagedState | undefined;
  /** CPU time that the attempt has used so far, in milliseconds. Its share, where an entry ran several. */
  cpuMs?: number | undefined;
  /** The heap of the isolate that ran it, in bytes, when it was last measured. */
  heapBytes?: number | undefined;
}

/** A part of a text: from `at` up to `end`. */
interface Span {
  readonly at: number;
  readonly end: number;
}

/** The parts of a change that reads are compared with. */
export interface Seen {
  readonly trigger: string;
  readonly type: EventType;
  readonly object: Pick<ObjectMeta, "namespace" | "name" | "uid">;
  readonly resourceVersion: string;
  readonly flags?: Pick<EventFlags, "reason">;
  readonly past?: boolean;
}

/** Flags of the event that the handler receives; absent ones are false. */
export interface EventFlags {
  /** The object existed when the function was first deployed. */
  readonly initial?: true;
  /** The event was derived from a list, not received from a watch, or it stands for others. */
  readonly synthetic?: true;
  /**
   * Why it is synthetic: `relist`, `rv-rewind`, `crd-removed`; `selected` or `unselected` if the manifest's selection changed;
   * `backlog` if it stands for waiting changes of its object.
   */
  readonly reason?: string;
  /** The part of history before this event that is not delivered: between these resourceVersions. */
  readonly gap?: { readonly from: string | null; readonly to: string };
  /** A Deleted that a list revealed: the body is the last known one. */
  readonly finalStateUnknown?: true;
  /** For a Scheduled: its time, ISO 8601. */
  readonly scheduledFor?: string;
  /** For a Scheduled: it is late, or stands for times that passed without a run. */
  readonly missed?: true;
}

/** A handler's error, as text: it was created inside the isolate and is only displayed. */
export interface HandlerError {
  readonly name: string;
  readonly message: string;
  /** Mapped to the author's files. */
  readonly stack: string;
  /** The registry's error code if the runtime ended the attempt (time, memory, output). */
  readonly code?: string;
}

/** The outcome of an attempt. */
export type Outcome =
  /**
   * `requeueAfterMs`: the handler asks to be run again after that time, without a failure. `failed`: the indexes of a batch's
   * failed events.
   */
  | {
      readonly type: "ok";
      readonly durationMs: number;
      readonly requeueAfterMs?: number;
      readonly failed?: readonly number[];
    }
  /** Retried, by the function's policy or after `retryAfterMs`. */
  | {
      readonly type: "failed";
      readonly error: HandlerError;
      readonly retryAfterMs?: number;
      readonly durationMs: number;
    }
  /** Never retried: goes straight to the failure policy. */
  | { readonly type: "permanent"; readonly error: HandlerError; readonly durationMs: number }
  /**
   * Another event, of this function or another, ended the isolate or executor. The event runs again, flagged as redelivered; no
   * attempt is counted.
   */
  | { readonly type: "interrupted" }
  /** It was recalled before it had begun: it counts as never submitted. */
  | { readonly type: "unbegun" };

/** The newest known state of an object. */
export interface Newest {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  readonly body: Buffer;
}

/**
 * Fetches an object from the API server, as a trigger sees it; `undefined` if it does not exist. Rejects if the server does not
 * answer.
 */
export type Look = (
  functionName: string,
  trigger: string,
  object: { readonly namespace: string; readonly name: string },
) => Promise<Newest | undefined>;

/** Callbacks of one delivery, which must not throw. Callbacks, because promises are much of an event's cost. */
export interface DeliveryListener {
  /** Called when the handler begins, if it ever does. */
  begins(): void;
  /** Called once when the delivery has ended, never before `give` returns. */
  ended(outcome: Outcome): void;
}

/** Runs handlers. The sandbox implements it; tests of dispatch use other implementations. */
export interface Runner {
  /**
   * Begins a function's deliveries in the order of submission, never more at once than its manifest's `concurrency`. Deliveries
   * of one turn of the event loop may be sent together.
   */
  give(delivery: Delivery, listener: DeliveryListener): void;
  /** Returns the function's deliveries that have not begun: they end as `unbegun`. The others continue. */
  recall(functionName: string): void;
}

/**
 * Submits a delivery and waits for its end. Never rejects.
 * @param begins called when the handler begins, if it ever does
 */
export function run(runner: Pick<Runner, "give">, delivery: Delivery, begins: () => void = () => {}): Promise<Outcome> {
  return new Promise((ended) => runner.give(delivery, { begins, ended }));
}

/** Returns the fields of an event that the handler receives, without its objects. */
export function eventFields({
  id,
  trigger,
  type,
  attempt,
  redelivered,
  resourceVersion,
  flags,
}: Pick<Delivery, "id" | "trigger" | "type" | "attempt" | "redelivered" | "resourceVersion" | "flags">): object {
  // The resourceVersion of a Scheduled has no meaning for a handler.
  const version = type === "Scheduled" ? {} : { resourceVersion };
  return { id, trigger, type, attempt, redelivered, ...version, ...flags };
}

/** The parts of an event's id. */
interface EventIdentity {
  /** The trigger's permanent identity, from its view. */
  readonly trigger: string;
  readonly type: EventType;
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /** Whether the event was derived from a list: its resourceVersion is only the last known one. */
  readonly lastKnown: boolean;
  /** Whether objects can enter and leave without being created or deleted, because of a selector or a scope. */
  readonly selective: boolean;
  readonly epoch: number;
}

/**
 * Returns the handler's idempotency key, unique within a function: `trigger:uid/resourceVersion/type`. A deletion happens once,
 * so its id is `trigger:uid/Deleted` whether it was watched or found. If selectors make objects enter and leave, it includes the
 * resourceVersion, with a `~` if only the last one is known. After the first epoch, `@epoch` is appended.
 */
export function eventId({ trigger, type, uid, resourceVersion, lastKnown, selective, epoch }: EventIdentity): string {
  const suffix = epoch === 0 ? "" : `@${epoch}`;
  const object = `${trigger}${separator}${uid}`;
  if (type !== "Deleted") return `${object}/${resourceVersion}/${type}${suffix}`;
  return selective
    ? `${object}/${resourceVersion}${lastKnown ? "~" : ""}/Deleted${suffix}`
    : `${object}/Deleted${suffix}`;
}

/** Separates the trigger's identity, which never contains it. */
const separator = ":";

/** Adds the trigger's identity to an id of an older runtime, which left it out. */
export const withTrigger = (id: string, trigger: string): string =>
  id.startsWith(`${trigger}${separator}`) ? id : `${trigger}${separator}${id}`;

/** Returns the uid in an event id. */
export const uidOf = (id: string): string => id.slice(id.indexOf(separator) + 1, id.indexOf("/"));

/** Returns the epoch in an event id. It follows the type, because a uid may contain such a sign as well. */
export const epochOf = (id: string): number => {
  const at = id.indexOf("@", id.lastIndexOf("/"));
  return at < 0 ? 0 : Number(id.slice(at + 1));
};
