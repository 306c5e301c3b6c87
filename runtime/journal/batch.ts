import type { ResourceVersion } from "../base/resource-version.ts";
import { type EventType, eventTypes } from "../manifest/function.ts";

/** A known object without its body. */
export interface KnownIdentity {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /** Digest of the trigger's `changedFields`; "" if it names no fields. */
  readonly hash: string;
  /**
   * True if the object is deleted. The row is kept until the low-water mark passes the deletion, to recognise replays of the
   * event.
   */
  readonly deleted: boolean;
  /** Whether the trigger's conditions held for this state. */
  readonly matched: boolean;
  /** The keys (`namespace/name`) that this state belongs to, under a trigger with `key`. `undefined`: not recorded. */
  readonly keys?: readonly string[] | undefined;
  /** The form that the row and its body are written in. `undefined`: written by a runtime that recorded no form. */
  readonly form?: string | undefined;
}

/** A known object as it is written. */
export interface KnownState extends KnownIdentity {
  /**
   * The body to store. `undefined`: no body is kept. "older": the stored body stays, and is older than the object from now on.
   */
  readonly body: Buffer | "older" | undefined;
}

/** A write of one known object. `state` undefined deletes the row. */
export interface KnownWrite {
  readonly view: number;
  readonly key: string;
  readonly state: KnownState | undefined;
}

/** The current body of a known object whose row was written without it. Ignored if the object is not known. */
export interface LastBody {
  readonly view: number;
  readonly key: string;
  readonly body: Buffer;
}

/** A known object's body on record. */
export interface KnownBody {
  readonly bytes: Buffer;
  /** True if the body belongs to an earlier state of the object than the rest of the row. */
  readonly isOlder: boolean;
}

/** A trigger's checkpoint on one of its informers. */
export interface Cursor {
  readonly view: number;
  /** The informer's namespace; "" for all namespaces. */
  readonly namespace: string;
  /** Stands for the informer's selectors. A different value means that a list is needed. */
  readonly selection: string;
  /** Every event up to this resourceVersion is terminal. `undefined` until the first list is complete. */
  readonly lowWaterMark: ResourceVersion | undefined;
  /** Counts how often event ids could repeat: after resourceVersions went back, or after the selection changed. */
  readonly epoch: number;
  /** True if the first list shows objects that existed before the function's first deployment. */
  readonly initial: boolean;
}

/** Events whose handlers are about to begin. Durable before the handlers begin. */
export interface JournalRow {
  readonly id: number;
  readonly started: readonly StartedEvent[];
}

export interface StartedEvent {
  readonly view: number;
  readonly key: string;
  /** The event's id. */
  readonly id: string;
  /** For a deletion found by comparison: the newest resourceVersion that the object may have had. */
  readonly resourceVersion: ResourceVersion;
  readonly type: EventType;
  readonly attempt: number;
}

/**
 * Returns the id that stands in the journal for a run of a key. No event's id begins like this. `sequence`: of the key's spilled
 * row.
 */
export const runId = (sequence: number): string => `key/${sequence}`;

/** Returns the sequence in the id of a key's run, or `undefined` for an event's id. */
export const runSequence = (id: string): number | undefined =>
  id.startsWith("key/") ? Number(id.slice(4)) : undefined;

/** An event as it is stored. */
export interface StoredEvent {
  readonly view: number;
  readonly function: string;
  readonly trigger: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  readonly type: EventType;
  readonly id: string;
  /** The delivery's flags. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The resourceVersion of the deletion. For a deletion found by comparison: the newest that it may have. */
  readonly deletedBy: ResourceVersion;
  readonly body: Buffer;
  readonly oldBody: Buffer | undefined;
  /** The form that the bodies are written in. `undefined`: written by a runtime that recorded no form. */
  readonly form?: string | undefined;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

/**
 * Types of causes. `Requeue`: the handler requested another run. `Resync`: the resync period elapsed. `Replay`: a user requested
 * it.
 */
export const causeTypes = [...eventTypes, "Requeue", "Resync", "Replay"] as const;

/** The reason why a key is reconciled: a change that a trigger selects, or the runtime itself. */
export interface Cause {
  readonly type: (typeof causeTypes)[number];
  /**
   * For a change: the trigger and the object that changed. For a schedule: the trigger. Stored by the trigger's identity;
   * handlers receive its name.
   */
  readonly trigger?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** For a deletion: the uid of the deleted object. */
  readonly uid?: string | undefined;
  /** For a change: the uid of the first object of that name that was deleted since the key's last run. */
  readonly replaced?: string | undefined;
  /** True if a handler may have received the change as an event before the function began to reconcile. */
  readonly delivered?: boolean | undefined;
}

/** A key to reconcile, with one row for everything that woke it. */
export interface PendingKey {
  /** The most recent causes, oldest first. Bounded. */
  readonly causes: readonly Cause[];
  /** Runs begun for this row. */
  readonly begun: number;
  /** How many of those runs do not count as attempts, because a newer change woke the key since. */
  readonly forgiven: number;
}

/** Fields that every row in the spill has. */
interface SpilledRow {
  /** The function's order of arrival. */
  readonly sequence: number;
  /** True if an earlier delivery of the event, or of a newer state, may have run. */
  readonly redelivered: boolean;
  /** Epoch milliseconds before which it must not begin. */
  readonly notBefore?: number | undefined;
}

/**
 * An event that waits in the spill because its function's memory was full or because it held up the low-water mark. `tick`: the
 * time of a schedule.
 */
export interface SpilledEvent extends StoredEvent, SpilledRow {
  readonly kind: "event" | "tick";
  /** True for a replayed dead letter, which was filtered, recorded and counted before. */
  readonly replayed: boolean;
}

/** A key to reconcile, identified by namespace and name. It has no body. */
export interface SpilledKey
  extends SpilledRow,
    Pick<
      StoredEvent,
      "view" | "function" | "trigger" | "namespace" | "name" | "id" | "form" | "receivedAt" | "body" | "oldBody"
    > {
  readonly kind: "key";
  readonly pending: PendingKey;
}

/** A row of the spill. */
export type Spilled = SpilledEvent | SpilledKey;

/** A row without its bodies, with the size of `body` in bytes. */
type Header<T extends Spilled> = Omit<T, "body" | "oldBody"> & { readonly size: number };
export type KeyHeader = Header<SpilledKey>;
export type SpillHeader = Header<SpilledEvent> | KeyHeader;

/** An event that was given up, stored whole so that it can be replayed. */
export interface NewDeadLetter extends StoredEvent {
  readonly apiVersion: string;
  readonly kind: string;
  readonly attempts: number;
  readonly error: { readonly name: string; readonly message: string; readonly stack: string; readonly code?: string };
  /** Epoch milliseconds. */
  readonly failedAt: number;
}

export interface DeadLetter extends NewDeadLetter {
  /** The id that the store assigned; commands take it as their argument. */
  readonly letter: string;
  /** True if its bodies were dropped to keep the function within its limit. Such a letter can be shown, but not replayed. */
  readonly bodyDropped: boolean;
}

/** Returns the letter without its bodies. */
export const emptyLetter = (event: NewDeadLetter, letter: string): DeadLetter => ({
  ...event,
  letter,
  bodyDropped: true,
  body: Buffer.alloc(0),
  oldBody: undefined,
});

export type DeadLetterSummary = Omit<DeadLetter, "body" | "oldBody">;

/** A write of one entry of a function's own state (`ctx.state`). */
export interface StateWrite {
  readonly function: string;
  readonly key: string;
  /** JSON text. `undefined` deletes the entry. */
  readonly value: string | undefined;
}

/** Writes that are committed atomically. */
export interface Batch {
  /** At most one write for each object. */
  readonly known: readonly KnownWrite[];
  /** Bodies of objects in the state that `known` records. */
  readonly bodies: readonly LastBody[];
  readonly cursors: readonly Cursor[];
  /** Deleted before `cursors` are written, which may be in the same namespaces. */
  readonly droppedCursors: readonly Pick<Cursor, "view" | "namespace">[];
  readonly journal: readonly JournalRow[];
  readonly settledJournal: readonly number[];
  readonly spill: readonly Spilled[];
  readonly unspill: readonly { readonly function: string; readonly sequence: number }[];
  readonly deadLetters: readonly NewDeadLetter[];
  readonly droppedDeadLetters: readonly string[];
  /** Applied in their order. */
  readonly state: readonly StateWrite[];
}

export const emptyBatch: Batch = {
  known: [],
  bodies: [],
  cursors: [],
  droppedCursors: [],
  journal: [],
  settledJournal: [],
  spill: [],
  unspill: [],
  deadLetters: [],
  droppedDeadLetters: [],
  state: [],
};

/** The stored record of a view: what the store keeps for one trigger or schedule of a function. Without its cursors, objects and events. */
export interface ViewRow {
  readonly id: number;
  readonly function: string;
  readonly trigger: string;
  /** `group/Kind`. Another version of the same resource keeps the view. */
  readonly resource: string;
  /**
   * Prefix of the view's event ids: the trigger's first name, followed by a number if another view of the function has that name.
   * Never changes.
   */
  readonly identity: string;
  /** The trigger at the last write of its record, as JSON. `undefined` until it is recorded. */
  readonly manifest: string | undefined;
  /** Epoch milliseconds since when the view is not in use. `undefined` for a live view. */
  readonly retiredAt: number | undefined;
}

/** Input of `Journal.append`: a batch in its final form, or a change of views, pauses or the cluster. */
export interface JournalEntries extends Omit<Batch, "deadLetters"> {
  readonly deadLetters: readonly DeadLetter[];
  /** Dead letters whose bodies are deleted. */
  readonly emptiedDeadLetters: readonly string[];
  /** New views, and replacements of stored ones. Both together, because two views may swap names. */
  readonly views: readonly ViewRow[];
  /** Views to delete with everything that belongs to them, including their begun attempts. */
  readonly goneViews: readonly number[];
  /** The uid of the cluster that the checkpoints belong to. `undefined`: unchanged. */
  readonly cluster?: string;
  /** Functions paused since `since` (epoch milliseconds). `since` undefined: resumed. */
  readonly paused: readonly (readonly [functionName: string, since: number | undefined])[];
  /** The function whose whole spill is to be marked as possibly delivered. */
  readonly possiblyDelivered?: string;
}

export const emptyEntries: JournalEntries = {
  ...emptyBatch,
  deadLetters: [],
  emptiedDeadLetters: [],
  views: [],
  goneViews: [],
  paused: [],
};
