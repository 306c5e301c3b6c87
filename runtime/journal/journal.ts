import { WatchfireError } from "../base/errors.ts";
import type {
  DeadLetter,
  DeadLetterSummary,
  JournalEntries,
  KnownBody,
  KnownIdentity,
  Spilled,
  SpillHeader,
} from "./batch.ts";
import type { DeadLetterSize } from "./dead-letter-stats.ts";
import type { JournalState } from "./state.ts";

/**
 * How the last run ended. `new`: there was no run. `clean`: it drained. `killed`: it did not drain, but every write had reached
 * the kernel. `power-loss`: the machine went down too, so the last writes may be missing. A power loss remains the previous end
 * until an end is clean. While it does, events that may have been handled without a record are flagged.
 */
export type PreviousEnd = "new" | "clean" | "killed" | "power-loss";

/** Rows that are read on demand, ordered by number: the sequence of a waiting event, the id of a dead letter. */
export interface Queues {
  readonly spill: { readonly header: SpillHeader; readonly whole: Spilled };
  readonly letters: { readonly header: DeadLetterSummary; readonly whole: DeadLetter };
}

/** Selects rows of a queue. */
export interface QueueRange {
  /** Default: all functions. */
  readonly function?: string | undefined;
  /** Only rows with a greater number. */
  readonly after: number;
  /** Default: all. */
  readonly limit?: number | undefined;
}

/**
 * Storage of checkpoints, known objects, waiting events and dead letters, open once constructed. A backend is a folder that
 * implements this interface and passes the tests in `test/journal/store-contract.ts`. Used by one runtime at a time. Reads see
 * what was appended. Fails with the `WatchfireError`s in the registry's checkpoint section.
 */
export interface Journal {
  readonly previousEnd: PreviousEnd;

  /**
   * `queues`: a function's queue may be stored. Otherwise it waits in memory, holds up its informers, and only events that hold
   * up the low-water mark are written. `bodies`: bodies of known objects are stored, each only now and then, because they cost
   * more than the rest of the row. `packed`: rows are stored compressed.
   */
  readonly capabilities: { readonly queues: boolean; readonly bodies: boolean; readonly packed: boolean };

  /** Limits of waiting events and of dead letters, in bytes. On a disk: a share of its present size. */
  readonly room: { readonly spill: number; readonly letters: number };

  /** Why writes are refused at present, for a journal behind a network. Other journals report it at each append. */
  readonly trouble?: WatchfireError | undefined;

  /** The state recorded when the journal was opened, with all appends since. */
  readonly state: JournalState;

  /** Appends all entries, or nothing. A retry with the same entries waits for a write of them that is still under way. */
  append(entries: JournalEntries): Promise<void>;
  /** Resolves once every append so far is durable. Some journals write only at intervals. */
  sync(): Promise<void>;

  /** Calls `visit` for each known object of a view. */
  known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void>;
  /** Returns the last body stored for an object. */
  body(view: number, key: string): Promise<KnownBody | undefined>;

  /**
   * Returns rows without bodies. They are read during the iteration, within one turn of the event loop; an array has been read
   * already.
   */
  headers<Q extends keyof Queues>(queue: Q, range: QueueRange): Iterable<Queues[Q]["header"]>;
  /** Returns rows with their bodies, and no further row once `bytes` of bodies are read. Default: unlimited. */
  page<Q extends keyof Queues>(queue: Q, range: QueueRange, bytes?: number): Promise<readonly Queues[Q]["whole"][]>;
  /** Returns the size of each dead letter, oldest first. */
  letterSizes(): Iterable<readonly [functionName: string, letter: string, size: DeadLetterSize]>;

  /** Closes the journal. `clean`: everything known is appended, and no event was in flight. */
  close(clean: boolean): Promise<void>;
}

/** A journal that every replica reaches. Checkpoints can be moved from it to another journal. */
export interface SharedJournal extends Journal {
  /** The journal that the checkpoints were moved to, if they were. */
  readonly movedTo: string | undefined;
  /** True if the journal was empty when it was opened. */
  readonly isBlank: boolean;
  /**
   * As `sync`, but rejects if the journal cannot hold everything, where `sync` waits.
   * @throws WatchfireError WF_CHECKPOINT_FULL
   */
  syncWhole(): Promise<void>;
  /** Clears the journal to receive the checkpoints of another one. `end`: how that one's last run ended. */
  clear(end: PreviousEnd): Promise<void>;
  /** Records that the checkpoints are in another journal, `place`, and deletes them here. */
  moveTo(place: string): Promise<void>;
}

/** The error for checkpoints that are in another place than the one searched. */
export const elsewhere = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what });

/**
 * The error for checkpoints that are missing in the journal that the Lease names. Opening the journal nevertheless would make the
 * next start take the empty journal for the whole state.
 */
export const notThere = (what: string): WatchfireError => elsewhere(`${what}, though the Lease says so`);

/** Returns the first rows, and no further row once `bytes` of bodies are taken. */
export function takeWithin<Row extends Pick<Spilled, "body" | "oldBody">>(rows: Iterable<Row>, bytes: number): Row[] {
  const taken: Row[] = [];
  let size = 0;
  for (const row of rows) {
    if (size >= bytes) break;
    taken.push(row);
    size += row.body.length + (row.oldBody?.length ?? 0);
  }
  return taken;
}
