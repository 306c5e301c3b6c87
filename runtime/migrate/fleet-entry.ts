import { runtimeAccount } from "../access/account.ts";
import { pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { isAsAsked, spreadOf } from "../engine/state/sharding.ts";
import { elsewhere } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { Elector, lostError } from "../lease/elector.ts";
import { type LeaseApi, leaseApi } from "../lease/lease-api.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { awaited } from "../slots/taken-fleet.ts";
import { findPlace } from "./find.ts";
import { fleetSlots } from "./fleet-slots.ts";
import { namesIn } from "./layout.ts";
import { fleetPlace, type JournalLocation, placeIn, positionsKey, spreadsIn, spreadsNote } from "./location.ts";
import { movePositions } from "./move.ts";
import { withNats } from "./open-journal.ts";
import { openSources, type PlaceOptions } from "./sources.ts";
import { untilReached } from "./until-reached.ts";

/** One request, in milliseconds. */
const requestMs = 3_000;
/** From so many functions on that are gone and still on record, the record is swept. A Lease's annotations take 256 KiB. */
const mostGone = 100;
/** After positions that could not be reached, in milliseconds: another replica may reach them. */
const againMs = 2_000;

export interface EntryOptions extends PlaceOptions {
  /** How many slots the fleet has. */
  readonly slots: number;
  /** This replica's. */
  readonly identity: string;
  /** Reads the functions, whose manifests say how they are to be spread. */
  readonly manifests: () => Promise<readonly FunctionManifest[]>;
}

/**
 * A replica's way into its fleet. Positions that are in another place move into the fleet's slots first. The one replica
 * that holds the runtime's Lease moves them.
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
  /** The Lease asked for another sharding, or for a sweep, and that was done or could not be done. */
  private wasTried = false;
  /** Positions were the fleet's own when they were looked for last. */
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

  /** Why it is not in yet. */
  get why(): WatchfireError | undefined {
    const { elector, trouble, fault } = this;
    if (fault) return fault;
    if (elector?.fence)
      return awaited(
        trouble ?? elector.unwritten?.message ?? "they are being carried into the fleet's slots by this replica",
      );
    const { holder = "", obstacle } = elector?.standing ?? {};
    if (obstacle !== undefined) return awaited(obstacle);
    if (holder !== "") return awaited(`${holder} still works with them, or carries them over`);
    return trouble === undefined ? undefined : awaited(trouble);
  }

  /** Resolves once the positions are the fleet's, with where they are. @throws WatchfireError; the signal's reason */
  async enter(signal: AbortSignal): Promise<JournalLocation> {
    for (;;) {
      const place = await untilReached(this.options, signal, () => this.place(signal));
      if (place) return place;
      await this.campaign(signal);
    }
  }

  /** `undefined` if positions have to move first. If there are none anywhere, they are the fleet's from now on. */
  private async place(signal: AbortSignal): Promise<JournalLocation | undefined> {
    const { folder, here, options } = this;
    const { log, data } = options;
    const lease = await this.lease.get(requestMs);
    const annotations = lease?.annotations ?? {};
    const place = placeIn(annotations);
    const { where, set } = place;
    this.wasHere = where === here;
    if (this.wasHere) {
      // Another replica was quicker to begin, with nothing.
      if (set === "" && folder.holdsPositions && !folder.isCopy)
        throw elsewhere(
          `${data} has positions, and the fleet began without them. To go on with the fleet's, take checkpoint.db out of that folder`,
        );
      // Whoever moved them was ended before it could note that in the folder, or on the Lease.
      if (folder.retire()) log.warn({ data }, "older positions set aside");
      return this.wasTried || !(await this.due(annotations)) ? place : undefined;
    }
    if (where !== "" || (lease && lease.holder !== "") || folder.holdsPositions) return undefined;
    const found = await findPlace(options, signal);
    // On the Lease as it was read, which nobody holds. Whatever somebody has written meanwhile stands.
    const change = { holder: "", annotations: found?.annotations ?? { [positionsKey]: here } };
    const written = await (lease ? this.lease.update(lease, change, requestMs) : this.lease.create(change, requestMs));
    if (found) return this.place(signal);
    return written === "conflict" ? undefined : placeIn(written.annotations);
  }

  /**
   * The work that is to be done while no replica works. `spread`: a manifest asks for another sharding than its function's
   * positions have. `sweep`: many functions on record are gone.
   */
  private async due(annotations: Readonly<Record<string, string>>): Promise<"spread" | "sweep" | undefined> {
    const spreads = spreadsIn(annotations);
    if (spreads.size === 0) return undefined;
    const manifests = await this.options.manifests();
    const isOther = (manifest: FunctionManifest) => {
      const runs = spreads.get(manifest.name);
      return runs && !isAsAsked(spreadOf(manifest), runs);
    };
    if (manifests.some(isOther)) return "spread";
    for (const { name } of manifests) spreads.delete(name);
    return spreads.size >= mostGone ? "sweep" : undefined;
  }

  /** Waits for the runtime's Lease, which no former runtime holds then, and moves the positions, unless another replica does. */
  private async campaign(signal: AbortSignal): Promise<void> {
    const { options, lease } = this;
    const { identity, clock, random, log } = options;
    const placed = new AbortController();
    const eligible = (annotations: Readonly<Record<string, string>>) => {
      const place = placeIn(annotations);
      // If they were here all along, some are to be spread differently.
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
        // Another replica may do better, or this one a little later.
        if (!(error instanceof WatchfireError) || !passing.has(error.code)) throw error;
        log.warn({ error: error.message }, "positions not carried over");
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
    const { fence } = elector;
    if (!fence) throw lostError("it was lost before positions were carried over");
    const found = place.where === "" && !folder.holdsPositions ? await findPlace(options, signal) : undefined;
    // The next look goes by it, or by what a replica at work has said meanwhile.
    if (found) return placeIn(elector.annotations).where === "" ? elector.annotate(found.annotations) : undefined;
    const isHere = place.where === here;
    const due = isHere ? await this.due(elector.annotations) : "spread";
    if (!due || this.obstacle(place) !== undefined) return;
    // A sweep that fails keeps no replica from its work.
    this.wasTried = due === "sweep";
    // If replicas work, what is due waits for a start at which none does.
    const around = { ...options, isPatient: !isHere };
    const isDone =
      due === "sweep"
        ? await this.sweep(around, elector, signal)
        : await withNats(options, (connection) =>
            movePositions(around, elector, fleetSlots({ ...options, connection }, fence, signal), signal),
          );
    this.wasTried ||= isHere && !isDone;
    if (isDone) folder.retire();
  }

  /** Takes functions of which nothing is kept off the Lease: their return decides where they lie. No replica works meanwhile. */
  private async sweep(options: PlaceOptions, elector: Elector, signal: AbortSignal): Promise<boolean> {
    const { manifests } = this.options;
    const sources = await openSources(options, elector, signal);
    if (!sources) return false;
    try {
      const journals = sources.journals.map(({ store }) => store);
      const kept = await namesIn(journals, { retired: true });
      for (const { name } of await manifests()) kept.add(name);
      const spreads = spreadsIn(elector.annotations);
      const gone = [...spreads.keys()].filter((name) => !kept.has(name));
      for (const name of gone) spreads.delete(name);
      await sources.confirm();
      await elector.annotate(spreadsNote(spreads));
      options.log.info({ functions: gone.length }, "functions that are gone taken off the Lease");
      return true;
    } finally {
      await sources.close();
    }
  }

  /** Why this replica cannot move positions from there. */
  private obstacle({ where }: JournalLocation): string | undefined {
    if (!where.startsWith("sqlite/") || this.folder.holdsPositions) return undefined;
    return `they are on the volume of ${where.slice("sqlite/".length)}, which is not in ${this.options.data}`;
  }
}

/** Faults of a move that another replica, or a later one, may not meet. */
const passing: ReadonlySet<string> = new Set<ErrorCode>(["WF_LEASE_LOST", "WF_CHECKPOINT_SECRETS"]);
