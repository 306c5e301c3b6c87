import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { isNewer } from "../base/resource-version.ts";
import { accountLabel } from "../catalog/names.ts";
import type { ViewRow } from "../journal/batch.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import { otherCluster } from "../journal/cluster.ts";
import { sweepSlots } from "../journal/nats/sweep.ts";
import {
  type Backup,
  type BackupNote,
  placeBackup,
  readBackup,
  readStoreState,
} from "../journal/sqlite/backup-file.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import type { JournalState } from "../journal/state.ts";
import { Elector, lostError } from "../lease/elector.ts";
import { leaseApi } from "../lease/lease-api.ts";
import type { Fence } from "../lease/lease-record.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import { TakenFleet } from "../slots/taken-fleet.ts";
import {
  annotationsOf,
  type JournalLocation,
  placeIn,
  positionsKey,
  setOf,
  setOfName,
  shardingsNote,
} from "./location.ts";
import { readSets } from "./nats-sets.ts";
import { isShared, withNats } from "./open-journal.ts";
import { openStore } from "./open-store.ts";
import { withStoredJournals } from "./read-store.ts";
import type { PlaceOptions } from "./sources.ts";

/** How long a runtime may hold the Lease before it counts as running, in milliseconds. That of a killed one is free before. */
const patienceMs = 20_000;

/** The volume of this name holds the backup while it moves into its store. No pod has it, so no runtime starts meanwhile. */
const backupPod = "restored-backup";

/** A backup that was restored. */
export interface RestoredBackup extends BackupNote {
  readonly functions: readonly string[];
  /** The path at which the previous checkpoints are kept. */
  readonly previous?: string | undefined;
}

/**
 * Replaces the checkpoints of a data folder. The previous file is kept in the folder.
 * @param isForced newer checkpoints are replaced as well
 * @throws WatchfireError WF_RESTORE_RUNNING, WF_RESTORE_NEWER, WF_RESTORE_UNCOMPARED, WF_BACKUP_UNREADABLE; others of the
 * checkpoint section
 */
export function restoreFolder(data: string, file: string, clock: Clock, isForced: boolean): RestoredBackup {
  const { note, state } = readBackup(file);
  const folder = new DataFolder(data, clock);
  const check = () => {
    // Also folds the log of a killed runtime into the file.
    const current = currentOf(data, folder, isForced);
    if (!isForced && current) assertOlder([current], state, note);
  };
  const previous = folder.replace((to) => placeBackup(file, to), check);
  return { ...note, functions: functionsOf(state), previous };
}

/**
 * Returns a folder's checkpoints; `undefined` if it never had any, or some that cannot be compared and are replaced all the same.
 * @throws WatchfireError WF_RESTORE_UNCOMPARED if it has such ones, unless `isForced`
 */
function currentOf(data: string, folder: DataFolder, isForced: boolean): JournalState | undefined {
  const refuse = (what: string, cause?: unknown): undefined => {
    if (!isForced) throw new WatchfireError("WF_RESTORE_UNCOMPARED", { what, place: { file: data }, cause });
    return undefined;
  };
  if (folder.wasMoved) return refuse("the folder's checkpoints were moved into Secrets, or onto NATS");
  try {
    return readStoreState(data);
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    if (error.code === "WF_CHECKPOINT_MISSING") return undefined;
    return refuse(`they cannot be read: ${error.message}`, error);
  }
}

interface RestoreOptions extends Omit<PlaceOptions, "data" | "identity"> {
  readonly identity: string;
  readonly account: string;
  /** Replaces newer checkpoints as well, and those that cannot be compared. */
  readonly isForced: boolean;
}

/**
 * Replaces the checkpoints in Secrets, or on NATS, while no runtime works. The backup becomes the place that the Lease names, and
 * moves into the store from there. If this process ends meanwhile, no runtime starts until a restore has ended.
 * @throws WatchfireError WF_RESTORE_RUNNING, WF_RESTORE_NEWER, WF_RESTORE_UNCOMPARED, WF_BACKUP_UNREADABLE; others of the
 * checkpoint section; the signal's reason
 */
export async function restoreShared(
  store: Exclude<StoreKind, "sqlite">,
  options: RestoreOptions,
  file: string,
  signal: AbortSignal,
): Promise<RestoredBackup> {
  const { note, state } = readBackup(file);
  const { cluster, clock, transport, namespace, account, isForced } = options;
  if (cluster !== undefined && state.cluster !== undefined && state.cluster !== cluster)
    throw otherCluster("the backup is", state.cluster, cluster);
  const elector = new Elector({ ...options, api: leaseApi(transport, namespace, account) });
  let before: JournalLocation | undefined;
  const folder = mkdtempSync(join(tmpdir(), "watchfire-restore-"));
  try {
    await takeLease(elector, clock, signal);
    await withoutReplicas(options, elector, signal, async () => {
      if (!isForced) await assertReplaceable(store, options, elector, { note, state });
      new DataFolder(folder, clock).replace(
        (to) => placeBackup(file, to),
        () => undefined,
      );
      before = placeIn(elector.annotations);
      await elector.annotate(annotationsFor(before, elector.fence));
    });
    const place = { ...options, store, data: folder, pod: backupPod, onLost: () => undefined };
    const opened = await openStore(place, elector, signal);
    // The next start has to flag what may have been delivered since the backup.
    await opened.close(false);
    if (before?.slots !== undefined) await sweep(options, before.set);
    return { ...note, functions: functionsOf(state) };
  } finally {
    await elector.release();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the Lease's annotations while the backup moves. The slots of a fleet are replaced by a set of one slot. */
function annotationsFor({ slots }: JournalLocation, fence: Fence | undefined): Readonly<Record<string, string>> {
  const where = `sqlite/${backupPod}`;
  if (slots === undefined) return { [positionsKey]: where };
  if (!fence) throw lostError("it was lost before the backup was restored");
  return { ...annotationsOf({ where, set: setOf(fence), carried: {} }), ...shardingsNote(new Map()) };
}

/** Deletes the slots that the backup has replaced. No Lease names them any more. */
async function sweep(options: RestoreOptions, set: string): Promise<void> {
  try {
    await withNats(options, (nats) => sweepSlots(nats, (name) => setOfName(name) === set));
  } catch (error) {
    options.log.warn({ error: String(error) }, "previous slots not cleared after the restore");
  }
}

/** @throws WatchfireError WF_RESTORE_RUNNING if a runtime keeps the Lease; the signal's reason */
async function takeLease(elector: Elector, clock: Clock, signal: AbortSignal): Promise<void> {
  const late = new AbortController();
  const timer = clock.after(patienceMs, () => late.abort());
  try {
    await elector.campaign(AbortSignal.any([signal, late.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (!late.signal.aborted) throw error;
    const { holder = "", obstacle } = elector.standing ?? {};
    const what =
      holder === "" ? `the runtime's Lease cannot be taken: ${obstacle}` : `${holder} holds the runtime's Lease`;
    throw new WatchfireError("WF_RESTORE_RUNNING", { what });
  } finally {
    timer.cancel();
  }
}

/** Calls `work` while no replica of a fleet has a slot, if the checkpoints are a fleet's. @throws WF_RESTORE_RUNNING */
async function withoutReplicas(
  options: RestoreOptions,
  elector: Elector,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const { slots } = placeIn(elector.annotations);
  if (slots === undefined) return work();
  const { transport, namespace, account } = options;
  const leases = fleetLeases(transport, { namespace, account, label: accountLabel(account) });
  const taken = await TakenFleet.take({ ...options, leases, isPatient: false }, slots, signal);
  if (!taken) throw new WatchfireError("WF_RESTORE_RUNNING", { what: "replicas of the fleet have slots" });
  try {
    await work();
  } finally {
    await taken.release();
  }
}

/** @throws WatchfireError WF_RESTORE_NEWER, or WF_RESTORE_UNCOMPARED if the present checkpoints cannot be read */
async function assertReplaceable(
  store: Exclude<StoreKind, "sqlite">,
  options: RestoreOptions,
  elector: Elector,
  { note, state }: Backup,
): Promise<void> {
  const { where } = placeIn(elector.annotations);
  const refuse = (what: string, cause?: unknown) => new WatchfireError("WF_RESTORE_UNCOMPARED", { what, cause });
  if (where === `sqlite/${backupPod}`) return;
  if (where.startsWith("sqlite/"))
    throw refuse(`they are on the volume of ${where.slice("sqlite/".length)}, and cannot be compared from here`);
  const present = isShared(where) ? where : where === "" ? store : "nats";
  const lease = leaseApi(options.transport, options.namespace, options.account);
  try {
    if (
      where === "" &&
      store === "nats" &&
      (await withNats(options, (nats) => readSets(nats, options.clock))).length > 0
    )
      throw refuse("NATS has checkpoints, and no Lease says which of them are valid");
    await withStoredJournals(present, { ...options, lease }, async (found) => {
      const states = found?.journals.map(({ store: each }) => each.journal.state) ?? [];
      assertOlder(states, state, note);
    });
  } catch (error) {
    if (!(error instanceof WatchfireError) || error.code.startsWith("WF_RESTORE_")) throw error;
    throw refuse(`they cannot be read: ${error.message}`, error);
  }
}

/** @throws WatchfireError WF_RESTORE_NEWER with the functions that are newer */
function assertOlder(current: readonly JournalState[], backup: JournalState, { takenAt }: BackupNote): void {
  const newer = [...new Set(current.flatMap((state) => newerIn(state, backup)))].toSorted();
  if (newer.length === 0) return;
  const [some, more] = [newer.slice(0, namedAtMost).join(", "), newer.length - namedAtMost];
  const what = `functions are further than the backup of ${new Date(takenAt).toISOString()}: ${some}`;
  throw new WatchfireError("WF_RESTORE_NEWER", { what: more > 0 ? `${what} and ${more} more` : what });
}

/** Number of functions that a message names. */
const namedAtMost = 5;

/** Returns the functions with a position that is newer than the backup's, or that the backup does not know. */
function newerIn(current: JournalState, backup: JournalState): string[] {
  const nameOf = ({ function: name, trigger, resource }: Pick<ViewRow, "function" | "trigger" | "resource">) =>
    JSON.stringify([name, trigger, resource]);
  const known = new Map([...backup.views.values()].map((view) => [nameOf(view), view.cursors]));
  return [...current.views.values()].flatMap((view) => {
    const isFurther = [...view.cursors.values()].some(({ namespace, lowWaterMark, epoch }) => {
      const before = known.get(nameOf(view))?.get(namespace);
      if (lowWaterMark === undefined) return false;
      if (before?.lowWaterMark === undefined || epoch !== before.epoch) return epoch >= (before?.epoch ?? 0);
      return isNewer(lowWaterMark, before.lowWaterMark);
    });
    return isFurther ? [view.function] : [];
  });
}

const functionsOf = ({ views }: JournalState): readonly string[] =>
  [...new Set([...views.values()].map((view) => view.function))].toSorted();
