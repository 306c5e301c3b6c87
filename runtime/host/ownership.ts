import type { WatchfireError } from "../base/errors.ts";
import type { FunctionSource, Origin } from "../catalog/function-source.ts";
import type { DeadLetterService } from "../observe/control-routes.ts";
import type { Components, RuntimeOptions } from "./components.ts";
import type { DataDirLock } from "./data-dir-lock.ts";
import type { Partition } from "./partition.ts";
import type { Status } from "./status.ts";

/** What an ownership is made of. */
export interface OwnershipParts {
  readonly options: RuntimeOptions;
  readonly components: Components;
  readonly source: FunctionSource;
  readonly dataDir: DataDirLock;
  /** Aborts when nothing more is to be begun: reading may wait for the cluster. */
  readonly stopping: AbortSignal;
  /** The host's end. */
  readonly onLost: (error: WatchfireError) => void;
  /** The functions are known: how they stand may be published. */
  readonly known: () => void;
}

/** Which partitions a host holds, and what it knows of those that others hold. */
export interface Ownership {
  /** Those that are here, by their slots; 0 is all there is where there are none. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** The names of all functions, wherever they run. */
  readonly names: readonly string[];
  /** Whether what is here may dispatch, by the Lease where there is one. */
  readonly holds: boolean;
  /** Why it can begin nothing at present, in words. */
  readonly delay: string | undefined;
  /** Why not all partitions are here that are to be, in words. */
  readonly missing: string | undefined;
  /** Whether it has none, and knows who has it: a standby, which is ready to take over. */
  readonly isStandby: boolean;
  /** This process, as slots' Leases name it. */
  readonly owner: string | undefined;
  /** Who has each slot, as far as it is known here. */
  readonly owners: readonly (string | undefined)[];
  /** The slots that a function is in, that of its first shard first. */
  slotsOf(name: string): readonly number[];
  /** Where a function's code lies, if that is known of one that does not run here. */
  originOf(name: string): Origin | undefined;
  /** Where the shards of a function are that are not here, in words; undefined where all are. */
  elsewhere(name: string): string | undefined;
  /** Why there is no partition here that runs a function. `asked`: what was asked for, in words. */
  absent(name: string, asked: string): WatchfireError;
  readonly deadLetters: DeadLetterService;
  /** What `/status` says of it. */
  describe(): Pick<Status, "lease" | "fleet">;
  /** What comes before the endpoints. @throws WatchfireError when the data folder is another's */
  prepare(): Promise<void>;
  /** Takes partitions from now on. Resolves once the endpoints at `url` may answer for it. @throws the signal's reason */
  begin(url: string, signal: AbortSignal): Promise<void>;
  /** Reads the functions again. Never rejects. */
  reload(): Promise<void>;
  /** Lets handlers finish, and saves. Returns whether the journals that are still open may be closed as clean. */
  drain(): Promise<boolean | undefined>;
  /** Takes nothing any more, and lets go of nothing. */
  halt(): Promise<void>;
  /** Once all is closed: lets go of the Lease. */
  close(): Promise<void>;
}
