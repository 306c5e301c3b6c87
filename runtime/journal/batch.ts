import type { ResourceVersion } from "../base/resource-version.ts";
import type { EventType } from "../manifest/function.ts";

/** A known object without its body. */
export interface KnownIdentity {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /** Of the trigger's `changedFields`; "" where it names none. */
  readonly hash: string;
  /** The object is gone; kept so that a replayed event of it is recognised, until the low-water mark passes. */
  readonly deleted: boolean;
  /** Whether the trigger's conditions held for this state. */
  readonly matched: boolean;
  /** Whom this state counts for, under a trigger with `key`: `namespace/name` each. Absent: not noted. */
  readonly keys?: readonly string[] | undefined;
  /** The form that the row and its body are written in. Absent: written by a runtime that noted none. */
  readonly form?: string | undefined;
}

/** A known object as it is written. */
export interface KnownState extends KnownIdentity {
  /** Absent: none is kept. "older": the one on record stays, and is older than the object from then on. */
  readonly body: Buffer | "older" | undefined;
}

/** What a known object becomes; `state` undefined forgets it. */
export interface KnownWrite {
  readonly view: number;
  readonly key: string;
  readonly state: KnownState | undefined;
}

/** The body of a known object as it stands, which was written without it. Of an object that is not known, it is left out. */
export interface LastBody {
  readonly view: number;
  readonly key: string;
  readonly body: Buffer;
}

/** A known object's body on record. */
export interface KnownBody {
  readonly bytes: Buffer;
  /** It is of an earlier state of the object than what else is known. */
  readonly isOlder: boolean;
}

/** A trigger's position on one of its sources. */
export interface Cursor {
  readonly view: number;
  /** The source's namespace; "" for all. */
  readonly namespace: string;
  /** Stands for the source's selectors: another value means that a list is needed. */
  readonly selection: string;
  /** Everything up to it is terminal; undefined before the first list is complete. */
  readonly lowWaterMark: ResourceVersion | undefined;
  /** Counts the times that event ids could repeat: resourceVersions went back, or the selection changed. */
  readonly epoch: number;
  /** Whether its first list shows objects from before the function's first deployment. */
  readonly initial: boolean;
}

/** Events whose handlers begin; durable before they do. */
export interface JournalRow {
  readonly id: number;
  readonly started: readonly StartedEvent[];
}

export interface StartedEvent {
  readonly view: number;
  readonly key: string;
  /** The event's id. */
  readonly id: string;
  /** Of a deletion that was found, the newest that it may have. */
  readonly resourceVersion: ResourceVersion;
  readonly type: EventType;
  readonly attempt: number;
}

/** What the journal, and its row, call a run of a key; no event's id begins so. `sequence`: of the row that stands for the key. */
export const runId = (sequence: number): string => `key/${sequence}`;

/** The sequence in the id of a run of a key; undefined of an event's id. */
export const runSequence = (id: string): number | undefined =>
  id.startsWith("key/") ? Number(id.slice(4)) : undefined;

/** An event as it is kept on disk. */
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
  /** As the delivery carries them. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** Its own resourceVersion; of a deletion that was found, the newest that it may have. */
  readonly deletedBy: ResourceVersion;
  readonly body: Buffer;
  readonly oldBody: Buffer | undefined;
  /** The form that its bodies have. Absent: written by a runtime that noted none. */
  readonly form?: string | undefined;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

/** What woke a key: a change that a trigger selects, or the runtime itself. */
export interface Cause {
  /** `Requeue`: its handler had asked for it; `Resync`: it was time; `Replay`: somebody asked for it. */
  readonly type: EventType | "Requeue" | "Resync" | "Replay";
  /** Of a change: the trigger, and the object that changed. Of a schedule: the trigger. On record by identity, to a handler by name. */
  readonly trigger?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** Of a deletion: the object that is gone. */
  readonly uid?: string | undefined;
  /** Of a change: the uid of the first object that had the name before and was deleted, since the key ran last. */
  readonly replaced?: string | undefined;
  /** A handler may have been told of the change as an event, before its function reconciled. */
  readonly told?: boolean | undefined;
}

/** A key that is to be reconciled, in the one row that stands for all that woke it. */
export interface PendingKey {
  /** Oldest first, a few at most. */
  readonly causes: readonly Cause[];
  /** Runs that had begun for this row. */
  readonly begun: number;
  /** How many of them count as no attempt any more: something newer woke it since. */
  readonly forgiven: number;
}

/** What a row that waits on disk has, whatever its kind. */
interface SpilledRow {
  /** The function's order of arrival. */
  readonly sequence: number;
  /** An earlier delivery of it, or of a newer state, may have run. */
  readonly redelivered: boolean;
  /** Epoch milliseconds: it is not to begin before. */
  readonly notBefore?: number | undefined;
}

/** An event that waits on disk: its function's memory was full, or it held up the low-water mark. `tick`: the time of a schedule. */
export interface SpilledEvent extends StoredEvent, SpilledRow {
  readonly kind: "event" | "tick";
  /** A dead letter that was put back: already filtered, known and counted once. */
  readonly replayed: boolean;
}

/** A key that is to be reconciled, which its namespace and name are. It has no body. */
export interface SpilledKey
  extends SpilledRow,
    Pick<
      StoredEvent,
      "view" | "function" | "trigger" | "namespace" | "name" | "id" | "form" | "receivedAt" | "body" | "oldBody"
    > {
  readonly kind: "key";
  readonly pending: PendingKey;
}

/** What waits on disk. */
export type Spilled = SpilledEvent | SpilledKey;

/** The same without bodies, and with the size of its own, in bytes. */
type Header<T extends Spilled> = Omit<T, "body" | "oldBody"> & { readonly size: number };
export type KeyHeader = Header<SpilledKey>;
export type SpillHeader = Header<SpilledEvent> | KeyHeader;

/** An event that was given up, whole, so that it can be replayed. */
export interface NewDeadLetter extends StoredEvent {
  readonly apiVersion: string;
  readonly kind: string;
  readonly attempts: number;
  readonly error: { readonly name: string; readonly message: string; readonly stack: string; readonly code?: string };
  /** Epoch milliseconds. */
  readonly failedAt: number;
}

export interface DeadLetter extends NewDeadLetter {
  /** Given by the store; what the commands take. */
  readonly letter: string;
  /** Its bodies had to go so that its function keeps within its limit: it can be looked at, and not replayed. */
  readonly bodyDropped: boolean;
}

/** The letter without its bodies. */
export const emptyLetter = (event: NewDeadLetter, letter: string): DeadLetter => ({
  ...event,
  letter,
  bodyDropped: true,
  body: Buffer.alloc(0),
  oldBody: undefined,
});

export type DeadLetterSummary = Omit<DeadLetter, "body" | "oldBody">;

/** Writes that take effect together. */
export interface Batch {
  /** Each object at most once. */
  readonly known: readonly KnownWrite[];
  /** Of objects as they stand with `known`. */
  readonly bodies: readonly LastBody[];
  readonly cursors: readonly Cursor[];
  /** They go before `cursors` come, which may be of the same namespaces. */
  readonly droppedCursors: readonly Pick<Cursor, "view" | "namespace">[];
  readonly journal: readonly JournalRow[];
  readonly settledJournal: readonly number[];
  readonly spill: readonly Spilled[];
  readonly unspill: readonly { readonly function: string; readonly sequence: number }[];
  readonly deadLetters: readonly NewDeadLetter[];
  readonly droppedDeadLetters: readonly string[];
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
};

/** What is on record of a view beside what hangs on it. */
export interface ViewRow {
  readonly id: number;
  readonly function: string;
  readonly trigger: string;
  /** `group/Kind`; another version of the same resource keeps the view. */
  readonly resource: string;
  /** Begins its event ids: the trigger's first name, with a number behind it where another view of the function has that. Never changes. */
  readonly identity: string;
  /** The trigger as its records were last written under it, as JSON; undefined before it is noted. */
  readonly manifest: string | undefined;
  /** Since when it is not used any more (epoch milliseconds); undefined of a live one. */
  readonly retiredAt: number | undefined;
}

/** What a journal is given to write: a batch as it is to be on record, or a change of what all batches stand on. */
export interface JournalEntries extends Omit<Batch, "deadLetters"> {
  readonly deadLetters: readonly DeadLetter[];
  /** Dead letters whose bodies go. */
  readonly emptiedDeadLetters: readonly string[];
  /** New, or in the place of what was on record of them: two may swap names. */
  readonly views: readonly ViewRow[];
  /** They go with all that hangs on them, and what of them had begun. */
  readonly goneViews: readonly number[];
  /** The uid of the cluster whose positions these are; absent: as before. */
  readonly cluster?: string;
  /** Functions that are paused since then (epoch milliseconds), or are so no more. */
  readonly paused: readonly (readonly [functionName: string, since: number | undefined])[];
  /** A handler may have had all that waits of this function. */
  readonly doubted?: string;
}

export const emptyEntries: JournalEntries = {
  ...emptyBatch,
  deadLetters: [],
  emptiedDeadLetters: [],
  views: [],
  goneViews: [],
  paused: [],
};
