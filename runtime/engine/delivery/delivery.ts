// Door: what dispatch hands to the sandbox, and what comes back.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ObjectMeta } from "../../informer/scan/change.ts";
import type { Cause } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";

/** One attempt at one event. */
export interface Delivery {
  readonly function: string;
  readonly trigger: string;
  /** The handler's idempotency key: the same change has the same id in every delivery. */
  readonly id: string;
  readonly type: EventType;
  /** For a person and for `ctx.events`: the triggering object. */
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly resourceVersion: string;
  /** Its resourceVersion is of an epoch that is over: it came before the cluster's state went back, or the selection changed. */
  readonly past?: boolean;
  /** From 1. */
  readonly attempt: number;
  /** True when an earlier delivery of this id may have run. */
  readonly redelivered: boolean;
  readonly flags: EventFlags;
  /** The object's JSON text; empty where a key has no object. */
  readonly body: Buffer;
  /** Where its metadata is in it, in bytes, where that is known. */
  readonly metadata?: Span | undefined;
  /** Of a run of a key, which is no event: what woke it. `object` names the key, `body` is its newest state. */
  readonly causes?: readonly Cause[];
  /** And of the changes among these, the states that nothing which is read for the run may be older than. */
  readonly seen?: readonly Seen[];
  /** The previous object's JSON text, where it is kept and the handler uses it. */
  readonly oldBody?: Buffer | undefined;
  /** Where several events are one delivery, their ids: the body is the JSON text of a list of them. */
  readonly batch?: readonly string[];
  /** And the deliveries that it stands for. */
  readonly members?: readonly Delivery[];
  /** The attempt's wall-clock limit in milliseconds. */
  readonly timeoutMs: number;
}

/** A part of a text: from `at` up to `end`. */
interface Span {
  readonly at: number;
  readonly end: number;
}

/** A change, as far as what is read is compared with it. */
export interface Seen {
  readonly trigger: string;
  readonly type: EventType;
  readonly object: Pick<ObjectMeta, "namespace" | "name" | "uid">;
  readonly resourceVersion: string;
  readonly flags?: Pick<EventFlags, "reason">;
  readonly past?: boolean;
}

/** Flags of the event that the handler sees; absent ones are false. */
export interface EventFlags {
  /** The object existed when the function was first deployed. */
  readonly initial?: true;
  /** Made by a diff against a list, not received from a watch; or standing for others. */
  readonly synthetic?: true;
  /**
   * Why it is synthetic: `relist`, `rv-rewind`, `crd-removed`; `selected` or `unselected` where the manifest's choice changed.
   * `backlog`: it stands for changes of its object that waited.
   */
  readonly reason?: string;
  /** The stretch of history that is not told before this event: between these resourceVersions. */
  readonly gap?: { readonly from: string | null; readonly to: string };
  /** A Deleted found by a diff: the body is the last one known. */
  readonly finalStateUnknown?: true;
  /** Of a Scheduled: its time, ISO 8601. */
  readonly scheduledFor?: string;
  /** Of a Scheduled: it comes late, or stands for times that passed without a run. */
  readonly missed?: true;
}

/** A handler's failure, as text: it was made inside the isolate and is shown to people only. */
export interface HandlerError {
  readonly name: string;
  readonly message: string;
  /** Mapped to the author's files. */
  readonly stack: string;
  /** The registry's code where the runtime ended the attempt (time, memory, output). */
  readonly code?: string;
}

/** How an attempt ended. */
export type Outcome =
  /** `requeueAfterMs`: the handler asks to be run again after that time; no failure. `failed`: of a batch, the places of the events that failed. */
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
  /** Never retried: straight to the failure policy. */
  | { readonly type: "permanent"; readonly error: HandlerError; readonly durationMs: number }
  /** Another event, of this function or another, ended the isolate or executor: run again, no attempt counted, flagged as redelivered. */
  | { readonly type: "interrupted" }
  /** It was recalled before it had begun: as if it had never been given. */
  | { readonly type: "unbegun" };

/** An object as it stands, as far as is known. */
export interface Newest {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  readonly body: Buffer;
}

/** Asks the API server for an object as a trigger sees it: undefined where there is none. Rejects where it does not say. */
export type Look = (
  functionName: string,
  trigger: string,
  object: { readonly namespace: string; readonly name: string },
) => Promise<Newest | undefined>;

/** Hears of one delivery. It must not throw. A listener and no promise, because an event's promises are much of its cost. */
export interface DeliveryListener {
  /** The handler begins; not told where it never does. */
  begins(): void;
  /** It has ended. Told once, never before `give` returns. */
  ended(outcome: Outcome): void;
}

/** Runs handlers. The sandbox implements it; tests of dispatch pass their own. */
export interface Runner {
  /**
   * Begins a function's deliveries in the order in which they were given, never more at once than its manifest's
   * `concurrency`. Deliveries of one turn of the event loop may travel together.
   */
  give(delivery: Delivery, listener: DeliveryListener): void;
  /** Gives back what of the function's deliveries has not begun: they end as `unbegun`. The others go on. */
  recall(functionName: string): void;
}

/**
 * Gives a delivery and waits for its end. Never rejects.
 * @param begins called when the handler begins; not at all where it never does
 */
export function run(runner: Pick<Runner, "give">, delivery: Delivery, begins: () => void = () => {}): Promise<Outcome> {
  return new Promise((ended) => runner.give(delivery, { begins, ended }));
}

/** The event as the handler gets it, without its objects. */
export function eventFields({ id, trigger, type, attempt, redelivered, resourceVersion, flags }: Delivery): object {
  // A Scheduled has none that means anything.
  const version = type === "Scheduled" ? {} : { resourceVersion };
  return { id, trigger, type, attempt, redelivered, ...version, ...flags };
}

/** What an event's id is made of. */
interface EventIdentity {
  /** The trigger's lasting identity, as its view has it. */
  readonly trigger: string;
  readonly type: EventType;
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /** Made by a diff: its resourceVersion is only the last one known. */
  readonly lastKnown: boolean;
  /** Objects can come and go without being created or deleted, because of a selector or a scope. */
  readonly selective: boolean;
  readonly epoch: number;
}

/**
 * The handler's idempotency key, unique within a function: `trigger:uid/resourceVersion/type`. A deletion happens once, so it
 * is `trigger:uid/Deleted` whether it was watched or found. Where selectors make objects come and go it names the
 * resourceVersion, with a `~` where only the last one is known. After the first epoch, `@epoch` follows.
 */
export function eventId({ trigger, type, uid, resourceVersion, lastKnown, selective, epoch }: EventIdentity): string {
  const suffix = epoch === 0 ? "" : `@${epoch}`;
  const object = `${trigger}${separator}${uid}`;
  if (type !== "Deleted") return `${object}/${resourceVersion}/${type}${suffix}`;
  return selective
    ? `${object}/${resourceVersion}${lastKnown ? "~" : ""}/Deleted${suffix}`
    : `${object}/Deleted${suffix}`;
}

/** Behind the trigger's identity, which has no such sign. */
const separator = ":";

/** The id with its trigger's identity, which older runtimes left out. */
export const withTrigger = (id: string, trigger: string): string =>
  id.startsWith(`${trigger}${separator}`) ? id : `${trigger}${separator}${id}`;

/** The uid that an event id names. */
export const uidOf = (id: string): string => id.slice(id.indexOf(separator) + 1, id.indexOf("/"));

/** The epoch that an event id ends with, behind its type: a uid may have such a sign as well. */
export const epochOf = (id: string): number => {
  const at = id.indexOf("@", id.lastIndexOf("/"));
  return at < 0 ? 0 : Number(id.slice(at + 1));
};
