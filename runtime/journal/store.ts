import type { WatchfireError } from "../base/errors.ts";
import type {
  Batch,
  Cursor,
  DeadLetter,
  DeadLetterSummary,
  JournalRow,
  KnownBody,
  KnownIdentity,
  Spilled,
  SpillHeader,
} from "./batch.ts";
import type { DeadLetterLimit, DeadLetterStock } from "./dead-letter-stats.ts";

/**
 * How the last run ended. `new`: there was none. `clean`: it drained. `killed`: it did not drain, but every write had
 * reached the kernel. `power-loss`: the machine went down too, so the last writes may be missing. It stays so until an
 * end is clean. An event that may have been handled without a record is flagged only while that is known.
 */
export type PreviousEnd = "new" | "clean" | "killed" | "power-loss";

/** What a trigger knows of its resource's objects: one per (function, trigger, resource), shared by its cursors. */
export interface StoredView {
  readonly id: number;
  readonly function: string;
  readonly trigger: string;
  /** `group/Kind`; another version of the same resource keeps the view. */
  readonly resource: string;
  /** Begins its event ids: the trigger's first name, with a number behind it where another view of the function has that. Never changes. */
  readonly identity: string;
  /** The trigger as its records were last written under it, as JSON; undefined before it is noted. */
  readonly manifest: string | undefined;
  readonly cursors: readonly Cursor[];
}

/** What is on record of a view beside its rows. */
export type ViewRecord = Pick<StoredView, "id" | "trigger" | "identity" | "manifest">;

/**
 * Where positions, known objects, waiting events and dead letters are kept. One runtime at a time.
 * Reads see every batch whose `commit` resolved. Failures are `WatchfireError`s of the registry's checkpoint section.
 */
export interface CheckpointStore {
  readonly previousEnd: PreviousEnd;

  /** How many bytes of events may wait in it; where it is a disk, a share of the disk as it is now. */
  readonly spillLimit: number;

  /**
   * Whether a function's queue may wait in it. Where not, it waits in memory, its sources wait for it, and only what holds
   * a position up is written.
   */
  readonly holdsQueues: boolean;

  /** Whether bodies are written, which costs more than all else that is known of an object: then each is, now and then. */
  readonly writesBodies: boolean;

  /** Why nothing can be written at present, of a store that is reached over a network; others say it at each commit. */
  readonly trouble?: WatchfireError | undefined;

  /** The uid of the kube-system namespace whose cluster the positions belong to; undefined before the first. */
  cluster(): Promise<string | undefined>;
  setCluster(uid: string): Promise<void>;

  /** Functions that were paused by a command, and since when (epoch milliseconds). */
  paused(): Promise<ReadonlyMap<string, number>>;
  /** `since` undefined: it is not paused any more. On record once `sync` has resolved. */
  setPaused(functionName: string, since: number | undefined): Promise<void>;

  /** Live views; of one function, or of all. */
  views(functionName?: string): Promise<StoredView[]>;
  /** Finds or makes a view; one that was retired comes back as it was. */
  openView(functionName: string, trigger: string, resource: string): Promise<StoredView>;
  /** Changes what is on record of views, all at once: two may swap names. No other view of the function and resource has one of them. */
  recordViews(records: readonly ViewRecord[]): Promise<void>;
  /** Views that were retired and can still come back. `before`: only those that were retired before it (epoch milliseconds). */
  retiredViews(before?: number): Promise<StoredView[]>;
  /** Marks views as no longer used, from `at` (epoch milliseconds) on. `purge` deletes them. */
  retire(views: readonly number[], at: number): Promise<void>;
  /**
   * Deletes, with all they hold and what of them had begun, the views that were retired before `before` (epoch
   * milliseconds). Gives their number. No other view is given the id of one of them.
   */
  purge(before: number): Promise<number>;

  /** Calls `visit` for each known object of a view. */
  known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void>;
  /** The last body stored for an object. */
  body(view: number, key: string): Promise<KnownBody | undefined>;

  journal(): Promise<JournalRow[]>;

  /**
   * What a function has in its spill after `sequence`, by sequence, without bodies. Default: all. Read as it is iterated, in one
   * turn of the event loop; an array is read already. `spillByTurns` reads it in many.
   */
  spillHeaders(functionName: string, after?: number): Promise<Iterable<SpillHeader>>;
  /** The next spilled events after `sequence`, by sequence; at most `limit`, and none after `bytes` of bodies. Default: however many. */
  spilled(functionName: string, after: number, limit: number, bytes?: number): Promise<Spilled[]>;
  /** Notes of all that a function has in its spill that a handler may have had it. */
  doubtSpilled(functionName: string): Promise<void>;

  /** Oldest first, a page at a time. */
  deadLetters(page?: DeadLetterPage): Promise<DeadLetterSummary[]>;
  /** Bounds a function's dead letters from now on: what goes beyond the limit goes from the store. */
  limitDeadLetters(functionName: string, limit: DeadLetterLimit): Promise<void>;
  /** How many a function has, and what they take; known without reading. */
  deadLetterStock(functionName: string): DeadLetterStock;
  deadLetter(letter: string): Promise<DeadLetter | undefined>;

  /** All of the batch or nothing of it. Gives the ids of its dead letters, in their order. */
  commit(batch: Batch): Promise<readonly string[]>;

  /** Resolves when all that was committed outlives this process, which some stores see to only now and then. */
  sync(): Promise<void>;

  /** `clean`: everything known was committed, and nothing was in flight. */
  close(clean: boolean): Promise<void>;
}

/** Where positions are kept: in a file, in Secrets, or on NATS JetStream. */
export const storeKinds = ["sqlite", "kubernetes", "nats"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Which dead letters to list. */
export interface DeadLetterPage {
  /** Only this function's; without it all. */
  readonly function?: string | undefined;
  /** Begins after this letter; without it at the oldest. */
  readonly after?: string | undefined;
  /** Default and most: `deadLetterPageSize`. */
  readonly limit?: number;
}

/** Of dead letters, at most so many are in memory at once, without their bodies. */
export const deadLetterPageSize = 1000;

/** How long a removed function's positions are kept, so that putting it back loses nothing: seven days. */
export const retirementMs = 7 * 24 * 60 * 60 * 1000;
