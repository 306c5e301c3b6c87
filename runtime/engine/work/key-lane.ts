import type { Clock } from "../../base/clock.ts";
import { isNewer, type ResourceVersion, resourceVersion } from "../../base/resource-version.ts";
import {
  type Cause,
  type PendingKey,
  runId,
  type SpilledKey,
  type StartedEvent,
  type StoredEvent,
} from "../../journal/batch.ts";
import type { Commits } from "../commit/commits.ts";
import type { Delivery, Newest, Seen } from "../delivery/delivery.ts";
import type { RedeliveryRisk } from "../redelivery/possible-redeliveries.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { Lane } from "./lane.ts";
import type { Primary } from "./primary.ts";

/** A cause with what only the process that saw it knows. */
export interface Waking extends Cause {
  /** The state after a change. It is not stored: after a restart everything that a run reads is listed again, and is newer. */
  readonly seen?: Seen | undefined;
  /** Whether a handler had begun with the change as an event, before its function reconciled: the run is then flagged. */
  readonly hasBegun?: boolean | undefined;
}

/** The number of causes that a run receives: the triggers that woke it, and the first objects to look at. */
const mostCauses = 16;

/** Shared, since a function may have 100,000 keys without new causes. */
export const noCauses: readonly Waking[] = [];

/** The causes of a key that its handler requeued. Shared as well. */
export const requeued: readonly Waking[] = [{ type: "Requeue" }];

/**
 * Adds a cause to those of a run, oldest first. Keeps the last cause for each object and trigger, and drops the oldest ones
 * beyond the limit.
 */
export function withCause(causes: readonly Waking[], cause: Waking): readonly Waking[] {
  const same = causes.find((each) => isOfOne(each, cause));
  // Only the first object that was deleted can be the one that the last run saw.
  const isAnother = same?.type === "Deleted" && (cause.type !== "Deleted" || cause.uid !== same.uid);
  const replaced = same?.replaced ?? (isAnother ? same.uid : undefined);
  const newer = replaced === undefined ? cause : { ...cause, replaced };
  if (same?.type === cause.type) return causes.map((each) => (each === same ? newer : each));
  return [...causes.filter((each) => each !== same), newer].slice(-mostCauses);
}

/** Whether causes may have been dropped. */
export const hasLostCauses = (causes: readonly Cause[]): boolean => causes.length >= mostCauses;

/** Whether the run has this cause already, and its row says as much about it. */
const hasCause = (causes: readonly Cause[], cause: Cause): boolean =>
  causes.some((each) => each.type === cause.type && each.delivered === cause.delivered && isOfOne(each, cause));

/** Whether it is the deletion of an object that an edit unselected. */
export const isByEdit = ({ type, seen }: Waking): boolean => type === "Deleted" && seen?.flags?.reason === "unselected";

/** The part of a cause that is stored, or delivered. */
const causeAlone = ({ seen: _, hasBegun: __, ...cause }: Waking): Cause => cause;

const isOfOne = (one: Cause, other: Cause): boolean =>
  one.trigger === other.trigger &&
  one.namespace === other.namespace &&
  one.name === other.name &&
  (one.trigger !== undefined || one.type === other.type);

/** The version of an object that does not exist, or is not known yet. */
export const unknownVersion = resourceVersion("0");

/** Whether a key has an object. Unknown until the first list of the object's namespace is complete. */
export type KeyPresence = "object" | "absent" | "unknown";

/** A time, by both clocks. */
interface Arrival {
  readonly wall: number;
  readonly monotonic: number;
}

export const arrivalAt = (clock: Clock): Arrival => ({ wall: clock.now(), monotonic: clock.monotonic() });

/** A key that is to be reconciled: one row on disk, one run at a time. */
export class KeyLane extends Lane implements PendingKey {
  readonly kind = "key";
  readonly primary: Primary;
  /** The known objects of `primary`. */
  readonly objects: KnownObjects;
  /** The number of its row. */
  readonly sequence: number;
  /** When it was first woken since its last successful run, in wall and monotonic milliseconds. */
  wokenAt: Arrival;
  causes: readonly Waking[];
  begun: number;
  forgiven: number;
  interruptions = 0;
  /** The risk that an earlier process began a run of it, or that one was interrupted. */
  redeliveryRisk: RedeliveryRisk;
  /** The journal's row of the last run that began. */
  journalRow: number | undefined;
  /** The newest state that an interrupted run has shown, since a run last ended. */
  shown: ResourceVersion | undefined;
  /** The causes since its run began. */
  since: readonly Waking[] = noCauses;
  /** The category that it is counted in; `undefined` before it is counted. */
  presence: KeyPresence | undefined;
  /** The bytes that it is charged with. */
  counted = 0;

  /**
   * @param key `namespace/name`
   * @param run its last run on record, if an earlier process began one
   */
  constructor(
    primary: Primary,
    key: string,
    sequence: number,
    { causes, begun, forgiven }: PendingKey & { readonly causes: readonly Waking[] },
    wokenAt: Arrival,
    redeliveryRisk: RedeliveryRisk,
    run?: { readonly row: number; readonly resourceVersion: ResourceVersion },
  ) {
    super(key);
    this.primary = primary;
    this.objects = primary.objects;
    this.sequence = sequence;
    this.wokenAt = wokenAt;
    this.causes = causes;
    this.begun = begun;
    this.forgiven = forgiven;
    this.redeliveryRisk = redeliveryRisk;
    this.journalRow = run?.row;
    this.shown = run?.resourceVersion;
  }

  /** The journal's id of its runs. */
  get id(): string {
    return runId(this.sequence);
  }

  /** The id of the last run in logs and commands. */
  get runId(): string {
    return `${this.id}/${this.begun}`;
  }

  /** The number of runs that count as attempts. */
  get attempts(): number {
    return this.begun - this.forgiven;
  }

  set attempts(count: number) {
    this.begun = this.forgiven + count;
  }

  /** In monotonic milliseconds. */
  get receivedAt(): number {
    return this.wokenAt.monotonic;
  }

  get namespace(): string {
    return this.key.slice(0, this.key.indexOf("/"));
  }

  get name(): string {
    return this.key.slice(this.key.indexOf("/") + 1);
  }

  get head(): this {
    return this;
  }

  get length(): number {
    return 1;
  }

  get arrivedAt(): number {
    return this.wokenAt.wall;
  }

  get isBulk(): boolean {
    return false;
  }

  /** Shows the last cause. */
  protected get headReport() {
    const { causes, attempts, primary } = this;
    const last = causes.at(-1);
    const type = last?.type === "Added" || last?.type === "Deleted" ? last.type : ("Modified" as const);
    const trigger = last?.trigger === undefined ? this.objects.trigger.name : primary.nameOf(last.trigger);
    return { type, attempts, trigger };
  }

  endWait(clock: Clock): void {
    if (this.waits === "requeue") this.wokenAt = arrivalAt(clock);
  }

  /** Resets the attempts, because something newer has changed. */
  forgive(): void {
    this.forgiven = this.begun;
    this.blocked = false;
  }

  /**
   * Adds a cause of its next run. Returns whether its row must be rewritten. A row with the maximum of causes stands for all
   * objects that map to the key, except for deleted ones.
   */
  isNews(cause: Waking): boolean {
    const before = this.running ? this.since : this.causes;
    if (this.running) this.since = withCause(before, cause);
    else this.causes = withCause(before, cause);
    if (hasCause(before, cause)) return false;
    return !hasLostCauses(before) || cause.type === "Deleted" || cause.delivered === true;
  }

  /** Converts it for the disk. `notBefore` is in wall-clock milliseconds. */
  row(notBefore: number): SpilledKey {
    const { sequence, causes, since, begun, forgiven } = this;
    return {
      kind: "key",
      ...this.stored(Buffer.alloc(0)),
      sequence,
      redelivered: this.redeliveryRisk !== "none",
      notBefore,
      // The causes since its run began are newer than that attempt.
      pending: {
        causes: since.reduce(withCause, causes).map(causeAlone),
        begun,
        forgiven: since.length > 0 ? begun : forgiven,
      },
    };
  }

  /** Converts a run of it for the dead letters. */
  letter(newest: Newest | undefined): StoredEvent {
    const { type, meta } = this.lastRun(newest);
    const body = newest?.body ?? this.objects.nameAlone({ meta });
    return { ...this.stored(body), ...meta, type, flags: {}, deletedBy: unknownVersion };
  }

  private stored(body: Buffer) {
    const { objects, id, namespace, name } = this;
    const { functionName, trigger, form } = objects;
    return {
      view: objects.id,
      function: functionName,
      trigger: trigger.name,
      namespace,
      name,
      id,
      body,
      oldBody: undefined,
      form: form.ofEvents,
      receivedAt: this.wokenAt.wall,
    };
  }

  /** Returns the last run for the history and commands. */
  lastRun(newest: Newest | undefined) {
    const { objects, key, namespace, name, runId } = this;
    const { uid = "", resourceVersion = unknownVersion } = newest ?? {};
    const type = newest ? ("Modified" as const) : ("Deleted" as const);
    return { objects, id: runId, key, type, meta: { namespace, name, uid, resourceVersion } };
  }

  /** Returns the last run for the handler. */
  delivery(newest: Newest | undefined): Omit<Delivery, "redelivered" | "timeoutMs"> {
    const { primary, causes, attempts } = this;
    const { functionName, trigger } = primary.objects;
    const { id, type, meta } = this.lastRun(newest);
    const { namespace, name, uid, resourceVersion } = meta;
    return {
      function: functionName,
      trigger: trigger.name,
      id,
      type,
      object: { apiVersion: trigger.apiVersion, kind: trigger.kind, namespace, name, uid },
      resourceVersion,
      attempt: attempts,
      flags: {},
      body: newest?.body ?? Buffer.alloc(0),
      causes: causes.map((cause) => causeForHandler(cause, primary)),
      seen: causes.flatMap(({ seen = [] }) => seen),
    };
  }

  /**
   * Ends a run's record: the row that is written or deleted in this commit contains all that the record would. A state that is
   * newer than the known one stays recorded until its own event, because in another mode that event would be delivered.
   */
  settle(row: number, started: StartedEvent, newest: Newest | undefined, commits: Commits): void {
    const { objects, key, id } = this;
    const known = objects.knownState(key);
    const { resourceVersion: shown } = started;
    // An object that is gone for the API server may still be known here: its last events have not arrived yet.
    if (known && (newest?.uid ?? known.uid) === known.uid && isNewer(shown, known.resourceVersion))
      objects.settle({ key, id, uid: known.uid, row, shown, comesAgain: true });
    else commits.settle(row, started);
    this.journalRow = undefined;
    this.shown = undefined;
    this.redeliveryRisk = "none";
  }

  /** Keeps the states that interrupted runs have shown on record, because no further run is made. */
  settleShown(): void {
    const { objects, key, id, journalRow: row, shown } = this;
    if (row !== undefined) objects.settle({ key, id, uid: objects.knownState(key)?.uid ?? "", row, shown });
  }
}

/** Converts a cause for the handler: without a namespace if the object is cluster-scoped, and with the trigger's current name. */
function causeForHandler(waking: Waking, primary: Primary): Cause {
  const { namespace, uid: _, delivered: __, replaced: ___, trigger, ...cause } = causeAlone(waking);
  return { ...cause, ...(trigger && { trigger: primary.nameOf(trigger) }), ...(namespace && { namespace }) };
}
