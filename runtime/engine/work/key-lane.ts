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
import type { Due } from "./due-keys.ts";
import type { Primary } from "./primary.ts";
import type { Fifo, FifoItem } from "./ready-queue.ts";

/** A cause as the process has it that saw it. */
export interface Waking extends Cause {
  /** Of a change: its state. It is in no row: after a restart all reads are listed anew, and are newer. */
  readonly seen?: Seen | undefined;
  /** A handler had begun with the change as an event, before its function reconciled: the run is flagged. */
  readonly hasBegun?: boolean | undefined;
}

/** Causes that are told of one run: which triggers woke it, and the first objects to look at. */
const mostCauses = 16;

/** Shared, since a function may have 100,000 keys that nothing new has woken. */
export const noCauses: readonly Waking[] = [];

/** Of a key that its handler asked for. Shared as well. */
export const requeued: readonly Waking[] = [{ type: "Requeue" }];

/** Adds a cause to what is told of a run, oldest first. Of one object and trigger the last is told. Of too many the oldest go. */
export function withCause(causes: readonly Waking[], cause: Waking): readonly Waking[] {
  const same = causes.find((each) => isOfOne(each, cause));
  // Only the first that went can be what the last run saw.
  const isAnother = same?.type === "Deleted" && (cause.type !== "Deleted" || cause.uid !== same.uid);
  const replaced = same?.replaced ?? (isAnother ? same.uid : undefined);
  const newer = replaced === undefined ? cause : { ...cause, replaced };
  if (same?.type === cause.type) return causes.map((each) => (each === same ? newer : each));
  return [...causes.filter((each) => each !== same), newer].slice(-mostCauses);
}

/** Whether there may have been others, which went. */
export const hasLostCauses = (causes: readonly Cause[]): boolean => causes.length >= mostCauses;

/** Whether a run is told of it anyway, and its row says as much of it. */
const hasCause = (causes: readonly Cause[], cause: Cause): boolean =>
  causes.some((each) => each.type === cause.type && each.told === cause.told && isOfOne(each, cause));

/** Whether it is the deletion of an object that an edit let go of. */
export const isByEdit = ({ type, seen }: Waking): boolean => type === "Deleted" && seen?.flags?.reason === "unselected";

/** As it is kept, or told. */
const causeAlone = ({ seen: _, hasBegun: __, ...cause }: Waking): Cause => cause;

const isOfOne = (one: Cause, other: Cause): boolean =>
  one.trigger === other.trigger &&
  one.namespace === other.namespace &&
  one.name === other.name &&
  (one.trigger !== undefined || one.type === other.type);

/** Of an object that is not there, or not known yet. */
export const unknownVersion = resourceVersion("0");

/** Why a key does not run now. It failed, its executor died, its handler asked for a later time, or its objects still change. */
export type Waits = "retry" | "interrupted" | "requeue" | "quiet";

/** Whether a key has an object. Unknown before the first list of the object's namespace is complete. */
export type KeyPresence = "object" | "none" | "unknown";

/** A key that is to be reconciled: one row on disk, one run at a time. */
export class KeyLane implements PendingKey, Due, FifoItem<KeyLane> {
  readonly kind = "key";
  readonly primary: Primary;
  /** That of `primary`. */
  readonly view: KnownObjects;
  /** `namespace/name`. */
  readonly key: string;
  /** Of its row. */
  readonly sequence: number;
  /** When it was woken first since its last run ended well; wall and monotonic milliseconds. */
  wokenAt: { readonly wall: number; readonly monotonic: number };
  causes: readonly Waking[];
  begun: number;
  forgiven: number;
  interruptions = 0;
  /** A run of it may have begun in a process before this one, or where it was cut off. */
  doubt: RedeliveryRisk;
  /** The journal's row of the last run that began. */
  journalRow: number | undefined;
  /** The newest state that a run has shown, of those that were cut off since one came to its end. */
  shown: ResourceVersion | undefined;
  running = false;
  /** What woke it since its run began. */
  since: readonly Waking[] = noCauses;
  waits: Waits | undefined;
  dueAt = 0;
  place = -1;
  /** As what it counts; undefined before it does. */
  standing: KeyPresence | undefined;
  /** Bytes that it counts for. */
  counted = 0;
  /** Its place among those that may run. */
  line: Fifo<KeyLane> | undefined;
  before: KeyLane | undefined;
  behind: KeyLane | undefined;
  /** It is out of attempts, and tries again for ever, as the manifest asks. */
  blocked = false;

  constructor(
    primary: Primary,
    key: string,
    sequence: number,
    { causes, begun, forgiven }: PendingKey & { readonly causes: readonly Waking[] },
    wokenAt: KeyLane["wokenAt"],
    doubt: RedeliveryRisk,
  ) {
    this.primary = primary;
    this.view = primary.view;
    this.key = key;
    this.sequence = sequence;
    this.wokenAt = wokenAt;
    this.causes = causes;
    this.begun = begun;
    this.forgiven = forgiven;
    this.doubt = doubt;
  }

  /** What the journal calls its runs. */
  get id(): string {
    return runId(this.sequence);
  }

  /** What logs and people call the run that began last. */
  get runId(): string {
    return `${this.id}/${this.begun}`;
  }

  /** Runs that count as attempts. */
  get attempts(): number {
    return this.begun - this.forgiven;
  }

  set attempts(count: number) {
    this.begun = this.forgiven + count;
  }

  /** Monotonic milliseconds. */
  get receivedAt(): number {
    return this.wokenAt.monotonic;
  }

  get namespace(): string {
    return this.key.slice(0, this.key.indexOf("/"));
  }

  get name(): string {
    return this.key.slice(this.key.indexOf("/") + 1);
  }

  /** No attempt of it counts and it could run: it waits for nothing but its function's turn. */
  get isDue(): boolean {
    return this.waits === undefined && this.attempts === 0;
  }

  /** Something newer counts from here on: no attempt before does. */
  forgive(): void {
    this.forgiven = this.begun;
    this.blocked = false;
  }

  /**
   * Notes a cause of its next run. Returns whether its row is to say so. A row with as many causes as there may be
   * stands for all objects that count for the key, but for those that are gone.
   */
  isNews(cause: Waking): boolean {
    const before = this.running ? this.since : this.causes;
    if (this.running) this.since = withCause(before, cause);
    else this.causes = withCause(before, cause);
    if (hasCause(before, cause)) return false;
    return !hasLostCauses(before) || cause.type === "Deleted" || cause.told === true;
  }

  /** As it is kept on disk. `notBefore`: wall milliseconds. */
  row(notBefore: number): SpilledKey {
    const { sequence, causes, since, begun, forgiven } = this;
    return {
      kind: "key",
      ...this.stored(Buffer.alloc(0)),
      sequence,
      redelivered: this.doubt !== "none",
      notBefore,
      // What woke it since its run began is newer than that attempt.
      pending: {
        causes: since.reduce(withCause, causes).map(causeAlone),
        begun,
        forgiven: since.length > 0 ? begun : forgiven,
      },
    };
  }

  /** A run of it as the dead letters keep it. */
  letter(newest: Newest | undefined): StoredEvent {
    const { type, meta } = this.told(newest);
    const body = newest?.body ?? this.view.nameAlone({ meta });
    return { ...this.stored(body), ...meta, type, flags: {}, deletedBy: unknownVersion };
  }

  private stored(body: Buffer) {
    const { view, id, namespace, name } = this;
    const { functionName, trigger, form } = view;
    return {
      view: view.id,
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

  /** The run that began last as the history and people have it. */
  told(newest: Newest | undefined) {
    const { view, key, namespace, name, runId } = this;
    const { uid = "", resourceVersion = unknownVersion } = newest ?? {};
    const type = newest ? ("Modified" as const) : ("Deleted" as const);
    return { view, id: runId, key, type, meta: { namespace, name, uid, resourceVersion } };
  }

  /** The run that began last as its handler is told it. */
  delivery(newest: Newest | undefined): Omit<Delivery, "redelivered" | "timeoutMs"> {
    const { primary, causes, attempts } = this;
    const { functionName, trigger } = primary.view;
    const { id, type, meta } = this.told(newest);
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
      causes: causes.map((cause) => toldCause(cause, primary)),
      seen: causes.flatMap(({ seen = [] }) => seen),
    };
  }

  /**
   * Its run is over. The row that is written of the key in this commit, or is gone with it, says all that the record would. A state
   * that is newer than what is known stays on record until its own event comes, which another mode would tell.
   */
  settle(row: number, started: StartedEvent, newest: Newest | undefined, commits: Commits): void {
    const { view, key, id } = this;
    const known = view.stands(key);
    const { resourceVersion: shown } = started;
    // An object that is gone for the API server may stand here: its last events are still to come.
    if (known && (newest?.uid ?? known.uid) === known.uid && isNewer(shown, known.resourceVersion))
      view.settle({ key, id, uid: known.uid, row, shown, comesAgain: true });
    else commits.settle(row, started);
    this.journalRow = undefined;
    this.shown = undefined;
    this.doubt = "none";
  }

  /** No run of it is made any more: what those that were cut off have shown stays on record. */
  settleShown(): void {
    const { view, key, id, journalRow: row, shown } = this;
    if (row !== undefined) view.settle({ key, id, uid: view.stands(key)?.uid ?? "", row, shown });
  }
}

/** A cause as the handler is told it: no namespace of a cluster-scoped object, and the trigger as it is called now. */
function toldCause(waking: Waking, primary: Primary): Cause {
  const { namespace, uid: _, told: __, replaced: ___, trigger, ...cause } = causeAlone(waking);
  return { ...cause, ...(trigger && { trigger: primary.nameOf(trigger) }), ...(namespace && { namespace }) };
}
