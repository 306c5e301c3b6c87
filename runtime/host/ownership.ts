import type { WatchfireError } from "../base/errors.ts";
import type { FunctionSource, Origin } from "../catalog/function-source.ts";
import type { DeadLetterService } from "../observe/control-routes.ts";
import type { FleetView } from "../slots/lease-observer.ts";
import type { Components, RuntimeOptions } from "./components.ts";
import type { DataDirLock } from "./data-dir-lock.ts";
import type { Partition } from "./partition.ts";
import type { Status } from "./status.ts";

/** Dependencies of an `Ownership`. */
export interface OwnershipParts {
  readonly options: RuntimeOptions;
  readonly components: Components;
  readonly source: FunctionSource;
  readonly dataDir: DataDirLock;
  /** Aborts when nothing more may be started, because reads may wait for the cluster. */
  readonly stopping: AbortSignal;
  /** Ends the host. */
  readonly onLost: (error: WatchfireError) => void;
  /** Called once the functions are known, so that their status may be published. */
  readonly known: () => void;
  /** The announcement of how this replica answers others of its fleet. `undefined` if it does not. */
  readonly announcement: () => string | undefined;
}

/** Decides which partitions a host holds, and knows who holds the others. */
export interface Ownership {
  /** The partitions here, by slot. Without slots: one partition, at 0. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** The names of all functions, wherever they run. */
  readonly names: readonly string[];
  /** True if the partitions here may dispatch, according to the Lease if there is one. */
  readonly holds: boolean;
  /** Describes why nothing can start at present. */
  readonly delay: string | undefined;
  /** Describes why some partitions are not here yet. */
  readonly missing: string | undefined;
  /** True for a standby: it holds no partition, knows who does, and is ready to take over. */
  readonly isStandby: boolean;
  /** This process, as the slots' Leases name it. */
  readonly owner: string | undefined;
  /** Owners by slot, as far as they are known here. */
  readonly owners: readonly (string | undefined)[];
  /** The live replicas of a fleet, with their announcements. */
  readonly peers: FleetView["peers"];
  /** Returns the slots of a function, its first shard's slot first. */
  slotsOf(name: string): readonly number[];
  /** Returns the origin of a function's code, if it is known, also for functions that do not run here. */
  originOf(name: string): Origin | undefined;
  /** Describes where a function's other shards are. `undefined` if all are here. */
  elsewhere(name: string): string | undefined;
  /** The error for a function without a partition here. `asked`: describes the request. */
  absent(name: string, asked: string): WatchfireError;
  readonly deadLetters: DeadLetterService;
  /** Returns its part of `/status`. */
  describe(): Pick<Status, "lease" | "fleet">;
  /** Runs before the endpoints are opened. @throws WatchfireError if the data folder belongs to another runtime */
  prepare(): Promise<void>;
  /** Takes partitions from now on. Resolves once the endpoints at `url` may answer for it. @throws the signal's reason */
  begin(url: string, signal: AbortSignal): Promise<void>;
  /** Reads the functions again. Never rejects. */
  reload(): Promise<void>;
  /** Lets handlers finish, and saves. Returns whether the journals that are still open may be closed as clean. */
  drain(): Promise<boolean | undefined>;
  /** Takes nothing more, and releases nothing. */
  halt(): Promise<void>;
  /** Releases the Lease, after everything is closed. */
  close(): Promise<void>;
}
