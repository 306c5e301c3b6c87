import { runtimeAccount } from "../access/account.ts";
import { pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { isSatisfiedBy, shardingOf } from "../engine/state/sharding.ts";
import { elsewhere } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { Elector } from "../lease/elector.ts";
import { type LeaseApi, leaseApi } from "../lease/lease-api.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { awaited } from "../slots/taken-fleet.ts";
import { findPlace } from "./find.ts";
import { fleetSlots } from "./fleet-slots.ts";
import { namesIn } from "./layout.ts";
import { fleetPlace, type JournalLocation, placeIn, positionsKey, shardingsIn, shardingsNote } from "./location.ts";
import { movePositions } from "./move.ts";
import { withNats } from "./open-journal.ts";
import { openSources, type PlaceOptions } from "./sources.ts";
import { untilReached } from "./until-reached.ts";

/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;
/** Number of recorded functions without a manifest from which on the record is swept. A Lease's annotations hold 256 KiB. */
const mostGone = 100;
/** Pause after checkpoints could not be reached, in milliseconds. Another replica may reach them. */
const againMs = 2_000;

export interface EntryOptions extends PlaceOptions {
  /** Number of slots of the fleet. */
  readonly slots: number;
  /** The identity of this replica. */
  readonly identity: string;
  /** Reads the functions, whose manifests say how they should be spread. */
  readonly manifests: () => Promise<readonly FunctionManifest[]>;
}

/**
 * Lets a replica join its fleet. Checkpoints in another place are first moved into the fleet's slots, by the replica that holds
 * the runtime's Lease.
 */
export class FleetEntry {
  private readonly options: EntryOptions;
  private readonly lease: LeaseApi;
  private readonly folder: DataFolder;
  private readonly here: string;
  private elector: Elector | undefined;
  private trouble: string | undefined;
  /** The fault that is waited out, if it has a code. */
  private fault: WatchfireError | undefined;
  /** True if a new sharding or a sweep was due and has been attempted. */
  private wasTried = false;
  /** True if the checkpoints were in the fleet's slots at the last check. */
  private wasHere = false;

  constructor(options: EntryOptions) {
    const { transport, namespace, account = runtimeAccount, slots, data, clock } = options;
    this.options = {
      ...options,
      waiting: (why: string | undefined, fault?: WatchfireError) => {
        this.trouble = why;
        this.fault = fault;
      },
    };
    this.lease = leaseApi(transport, namespace, account);
    this.folder = new DataFolder(data, clock);
    this.here = fleetPlace(slots);
  }

  /** Why the replica has not joined yet. */
  get why(): WatchfireError | undefined {
    const { elector, trouble, fault } = this;
    if (fault) return fault;
    if (elector?.fence)
      return awaited(trouble ?? elector.unwritten?.message ?? "this replica is moving them into the fleet's slots");
    const { holder = "", obstacle } = elector?.standing ?? {};
    if (obstacle !== undefined) return awaited(obstacle);
    if (holder !== "") return awaited(`${holder} still works with them, or is moving them`);
    return trouble === undefined ? undefined : awaited(trouble);
  }

  /**
   * Resolves with the location of the checkpoints once they are in the fleet's slots.
   * @throws WatchfireError; the signal's reason
   */
  async enter(signal: AbortSignal): Promise<JournalLocation> {
    for (;;) {
      const place = await untilReached(this.options, signal, () => this.place(signal));
      if (place) return place;
      await this.campaign(signal);
    }
  }

  /**
   * Returns the location, or `undefined` if checkpoints must be moved first. If there are no checkpoints, the fleet starts with
   * empty slots.
   */
  private async place(signal: AbortSignal): Promise<JournalLocation | undefined> {
    const { folder, here, options } = this;
    const { log, data } = options;
    const lease = await this.lease.get(requestMs);
    const annotations = lease?.annotations ?? {};
    const place = placeIn(annotations);
    const { where, set } = place;
    this.wasHere = where === here;
    if (this.wasHere) {
      // Another replica has started the fleet with empty slots before.
      if (set === "" && folder.holdsPositions && !folder.isCopy)
        throw elsewhere(
          `${data} has checkpoints, and the fleet began without them. To continue with the fleet's, take checkpoint.db out of that folder`,
        );
      // The process that moved them ended before it could record that in the folder or on the Lease.
      if (folder.retire()) log.warn({ data }, "older checkpoints set aside");
      return this.wasTried || !(await this.due(annotations)) ? place : undefined;
    }
    if (where !== "" || (lease && lease.holder !== "") || folder.holdsPositions) return undefined;
    const found = await findPlace(options, signal);
    // Updates the version that was read, when the Lease had no holder. Changes written meanwhile stay.
    const change = { holder: "", annotations: found?.annotations ?? { [positionsKey]: here } };
    const written = await (lease ? this.lease.update(lease, change, requestMs) : this.lease.create(change, requestMs));
    if (found) return this.place(signal);
    return written === "conflict" ? undefined : placeIn(written.annotations);
  }

  /**
   * Returns the work to do while no replica is active. `reshard`: a manifest requests another sharding than its function's
   * checkpoints have. `sweep`: many recorded functions have no manifest.
   */
  private async due(annotations: Readonly<Record<string, string>>): Promise<"reshard" | "sweep" | undefined> {
    const shardings = shardingsIn(annotations);
    if (shardings.size === 0) return undefined;
    const manifests = await this.options.manifests();
    const isOther = (manifest: FunctionManifest) => {
      const runs = shardings.get(manifest.name);
      return runs && !isSatisfiedBy(shardingOf(manifest), runs);
    };
    if (manifests.some(isOther)) return "reshard";
    for (const { name } of manifests) shardings.delete(name);
    return shardings.size >= mostGone ? "sweep" : undefined;
  }

  /** Waits for the runtime's Lease, which no other runtime then holds, and moves the checkpoints, unless another replica does. */
  private async campaign(signal: AbortSignal): Promise<void> {
    const { options, lease } = this;
    const { identity, clock, random, log } = options;
    const placed = new AbortController();
    const eligible = (annotations: Readonly<Record<string, string>>) => {
      const place = placeIn(annotations);
      // If they were here before, some functions must be spread differently.
      if (place.where === this.here && !this.wasHere) placed.abort();
      return this.obstacle(place);
    };
    const elector = new Elector({ api: lease, identity, clock, random, log, eligible });
    this.elector = elector;
    const lost = new AbortController();
    void elector.lost.then((error) => lost.abort(error));
    try {
      await elector.campaign(AbortSignal.any([signal, placed.signal]));
      const held = AbortSignal.any([signal, lost.signal]);
      await untilReached(options, held, () => this.move(elector, held));
    } catch (error) {
      signal.throwIfAborted();
      if (!placed.signal.aborted) {
        // Another replica may succeed, or this one later.
        if (!(error instanceof WatchfireError) || !passing.has(error.code)) throw error;
        log.warn({ error: error.message }, "checkpoints not moved");
        options.waiting?.(error.message, error);
      }
    } finally {
      await elector.release();
      this.elector = undefined;
    }
    if (this.trouble !== undefined) await pause(clock, againMs, signal);
  }

  private async move(elector: Elector, signal: AbortSignal): Promise<void> {
    const { options, here, folder } = this;
    const place = placeIn(elector.annotations);
    const found = place.where === "" && !folder.holdsPositions ? await findPlace(options, signal) : undefined;
    // The next check uses this annotation, or what an active replica has written meanwhile.
    if (found) return placeIn(elector.annotations).where === "" ? elector.annotate(found.annotations) : undefined;
    const isHere = place.where === here;
    const due = isHere ? await this.due(elector.annotations) : "reshard";
    if (!due || this.obstacle(place) !== undefined) return;
    // A sweep that fails does not keep replicas from starting.
    this.wasTried = due === "sweep";
    // If replicas are active, the work is postponed to a start without active replicas.
    const around = { ...options, isPatient: !isHere };
    const isDone =
      due === "sweep"
        ? await this.sweep(around, elector, signal)
        : await withNats(options, (connection) =>
            movePositions(around, elector, fleetSlots({ ...options, connection }, elector, signal), signal),
          );
    this.wasTried ||= isHere && !isDone;
    if (isDone) folder.retire();
  }

  /**
   * Removes functions without manifest and checkpoints from the Lease. Their sharding is decided again if they return. No replica
   * is active meanwhile.
   */
  private async sweep(options: PlaceOptions, elector: Elector, signal: AbortSignal): Promise<boolean> {
    const { manifests } = this.options;
    const sources = await openSources(options, elector, signal);
    if (!sources) return false;
    try {
      const journals = sources.journals.map(({ store }) => store);
      const kept = await namesIn(journals, { retired: true });
      for (const { name } of await manifests()) kept.add(name);
      const shardings = shardingsIn(elector.annotations);
      const gone = [...shardings.keys()].filter((name) => !kept.has(name));
      for (const name of gone) shardings.delete(name);
      await sources.confirm();
      await elector.annotate(shardingsNote(shardings));
      options.log.info({ functions: gone.length }, "removed functions taken off the Lease");
      return true;
    } finally {
      await sources.close();
    }
  }

  /** Returns why this replica cannot move checkpoints from there. */
  private obstacle({ where }: JournalLocation): string | undefined {
    if (!where.startsWith("sqlite/") || this.folder.holdsPositions) return undefined;
    return `they are on the volume of ${where.slice("sqlite/".length)}, which is not in ${this.options.data}`;
  }
}

/** Faults of a move that another replica, or a later one, may not encounter. */
const passing: ReadonlySet<string> = new Set<ErrorCode>(["WF_LEASE_LOST", "WF_CHECKPOINT_SECRETS"]);
