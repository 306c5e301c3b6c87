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
 * How the last run ended. `new`: there was none. `clean`: it drained. `killed`: it did not drain, but every write had
 * reached the kernel. `power-loss`: the machine went down too, so the last writes may be missing. It stays so until an
 * end is clean. An event that may have been handled without a record is flagged only while that is known.
 */
export type PreviousEnd = "new" | "clean" | "killed" | "power-loss";

/** Rows that are read when they are needed, in the order of their numbers: the sequences of waiting events, the dead letters' own. */
export interface Queues {
  readonly spill: { readonly header: SpillHeader; readonly whole: Spilled };
  readonly letters: { readonly header: DeadLetterSummary; readonly whole: DeadLetter };
}

/** Which rows of a queue. */
export interface QueueRange {
  /** Default: of all functions. */
  readonly function?: string | undefined;
  /** The number that they come behind. */
  readonly after: number;
  /** Default: all. */
  readonly limit?: number | undefined;
}

/**
 * The store of positions, known objects, waiting events and dead letters; it is created open. A backend is a folder that
 * implements this and passes the tests in `test/journal/store-contract.ts`. One runtime at a time.
 * Reads see what was appended. Failures are `WatchfireError`s of the registry's checkpoint section.
 */
export interface Journal {
  readonly previousEnd: PreviousEnd;

  /**
   * `queues`: a function's queue may wait in it. Where not, the queue waits in memory, its sources wait for it, and only what
   * holds a position up is written. `bodies`: bodies of known objects are written, which costs more than all else that is
   * known of them: then each is, now and then. `packed`: what it has lies compressed.
   */
  readonly capabilities: { readonly queues: boolean; readonly bodies: boolean; readonly packed: boolean };

  /** How many bytes of waiting events and of dead letters it takes. On a disk it is a share of that as it is now. */
  readonly room: { readonly spill: number; readonly letters: number };

  /** Why nothing can be written at present, where it is reached over a network; others say it at each append. */
  readonly trouble?: WatchfireError | undefined;

  /** The state on record when it was opened, with all appends since. */
  readonly state: JournalState;

  /** All of the entries or nothing of them. Whoever tries the same again, waits for them where they are on their way. */
  append(entries: JournalEntries): Promise<void>;
  /** Resolves when all that was appended outlives this process, which some see to only now and then. */
  sync(): Promise<void>;

  /** Calls `visit` for each known object of a view. */
  known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void>;
  /** The last body stored for an object. */
  body(view: number, key: string): Promise<KnownBody | undefined>;

  /** Rows without bodies. Read as they are iterated, in one turn of the event loop; an array is read already. */
  headers<Q extends keyof Queues>(queue: Q, range: QueueRange): Iterable<Queues[Q]["header"]>;
  /** Rows with their bodies; none after `bytes` of bodies. Default: however many. */
  page<Q extends keyof Queues>(queue: Q, range: QueueRange, bytes?: number): Promise<readonly Queues[Q]["whole"][]>;
  /** The size of each dead letter, oldest first. */
  letterSizes(): Iterable<readonly [functionName: string, letter: string, size: DeadLetterSize]>;

  /** `clean`: everything known was appended, and nothing was in flight. */
  close(clean: boolean): Promise<void>;
}

/** One that every replica reaches: positions may leave it for another. */
export interface SharedJournal extends Journal {
  /** The other journal that has the positions, if they moved. */
  readonly movedTo: string | undefined;
  /** Whether nothing was in it when it was opened. */
  readonly isBlank: boolean;
  /** As `sync`, but told when it cannot hold it all, which `sync` waits out. @throws WatchfireError WF_CHECKPOINT_FULL */
  syncWhole(): Promise<void>;
  /** Clears it for the positions of another journal, whose last run ended so. */
  clear(end: PreviousEnd): Promise<void>;
  /** Says that the positions are in another journal from now on, and forgets them. */
  moveTo(place: string): Promise<void>;
}

/** The fault of positions that are in another place than where they were looked for. */
export const elsewhere = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what });

/** Positions are to be in a journal, and are not. Were it opened, the next start would take it for all that there was. */
export const notThere = (what: string): WatchfireError => elsewhere(`${what}, though the Lease says so`);

/** The first rows of them, and none after `bytes` of bodies. */
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
