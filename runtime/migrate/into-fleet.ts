import { runtimeAccount } from "../access/account.ts";
import { type Clock, pause, type Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { isAsAsked, spreadOf, spreadsIn, spreadsNote } from "../engine/state/sharding.ts";
import { claimCluster } from "../journal/cluster.ts";
import { elsewhere } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { Elector, lostError } from "../lease/elector.ts";
import { type LeaseApi, leaseApi } from "../lease/lease-api.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { Logger } from "../observe/log.ts";
import { awaited } from "../slots/taken-fleet.ts";
import { fillSlots } from "./fill-slots.ts";
import { findPlace } from "./found-journal.ts";
import { annotationsOf, fleetPlace, type JournalLocation, placeIn, positionsKey } from "./journal-location.ts";
import { namesIn, retiredIn } from "./names-in.ts";
import { connectNats, type NatsPlace } from "./open-nats.ts";
import { openFormer, type PreviousLayout } from "./previous-layout.ts";
import { untilReached } from "./until-reached.ts";

/** One request, in milliseconds. */
const requestMs = 3_000;
/** From so many functions on that are gone and still on record, the record is swept. A Lease's annotations take 256 KiB. */
const mostGone = 100;
/** After positions that could not be reached, in milliseconds: another replica may reach them. */
const againMs = 2_000;

export interface EntryOptions {
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account?: string | undefined;
  /** The data folder: positions of a runtime alone may be in it. */
  readonly data: string;
  /** How many slots the fleet has. */
  readonly slots: number;
  readonly nats?: NatsPlace | undefined;
  /** Of this replica. */
  readonly identity: string;
  /** The cluster's uid, where it is known. */
  readonly cluster: string | undefined;
  /** Reads the functions, whose manifests say how they are to be spread. */
  readonly manifests: () => Promise<readonly FunctionManifest[]>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/**
 * A replica's way into its fleet. Positions that are elsewhere are carried into the fleet's slots first. The one replica
 * that holds the runtime's Lease does it.
 */
export class FleetEntry {
  private readonly options: EntryOptions;
  private readonly lease: LeaseApi;
  private readonly here: string;
  private elector: Elector | undefined;
  private trouble: string | undefined;
  /** What is waited for, where that has a code of its own. */
  private fault: WatchfireError | undefined;
  /** What the fleet's record asked for was done, or could not be done. */
  private wasTried = false;
  /** Positions were the fleet's own when they were looked for last. */
  private wasHere = false;

  constructor(options: EntryOptions) {
    const { transport, namespace, account = runtimeAccount, slots } = options;
    this.options = options;
    this.lease = leaseApi(transport, namespace, account);
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
    const patient = {
      ...this.options,
      waiting: (why: string | undefined, fault?: WatchfireError) => this.waits(why, fault),
    };
    for (;;) {
      const place = await untilReached(patient, signal, () => this.place(signal));
      if (place) return place;
      await this.carry(signal);
    }
  }

  /** Undefined where they are to be carried first. They are the fleet's from now on where there are none anywhere. */
  private async place(signal: AbortSignal): Promise<JournalLocation | undefined> {
    const { log, data } = this.options;
    const folder = this.folder;
    const lease = await this.lease.get(requestMs);
    const annotations = lease?.annotations ?? {};
    const place = placeIn(annotations);
    const { where, set } = place;
    this.wasHere = where === this.here;
    if (this.wasHere) {
      // Another replica was quicker to begin, with nothing.
      if (set === "" && folder.holdsPositions && !folder.isCopy)
        throw elsewhere(
          `${data} has positions, and the fleet began without them. To go on with the fleet's, take checkpoint.db out of that folder`,
        );
      // Whoever carried them was ended before it could say so here, or before it could say so on the Lease.
      if (folder.retire()) log.warn({ data }, "older positions set aside");
      return this.wasTried || !(await this.due(annotations)) ? place : undefined;
    }
    if (where !== "" || (lease && lease.holder !== "") || folder.holdsPositions) return undefined;
    const found = await findPlace(this.options, signal);
    if (found) {
      // Nothing is said where somebody has said it meanwhile.
      await this.say(lease, found.annotations);
      return this.place(signal);
    }
    const written = await this.say(lease, { [positionsKey]: this.here });
    return written === "conflict" ? undefined : placeIn(written.annotations);
  }

  /** On the Lease as it was read, which nobody holds. */
  private say(lease: LeaseRecord | undefined, annotations: Readonly<Record<string, string>>) {
    const change = { holder: "", annotations };
    return lease ? this.lease.update(lease, change, requestMs) : this.lease.create(change, requestMs);
  }

  /**
   * What is to be done while no replica works. `spread`: a manifest asks for another spread than its function's positions
   * have. `sweep`: many functions on record are gone.
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

  /** Waits until the former runtime works no more, and carries its positions over, unless another replica does. */
  private async carry(signal: AbortSignal): Promise<void> {
    const { identity, clock, random, log } = this.options;
    const placed = new AbortController();
    const eligible = (annotations: Readonly<Record<string, string>>) => {
      const place = placeIn(annotations);
      // Where they were so all along, some are to be spread anew.
      if (place.where === this.here && !this.wasHere) placed.abort();
      return this.obstacle(place);
    };
    const elector = new Elector({ api: this.lease, identity, clock, random, log, eligible });
    this.elector = elector;
    const lost = new AbortController();
    void elector.lost.then((error) => lost.abort(error));
    try {
      await elector.campaign(AbortSignal.any([signal, placed.signal]));
      const held = AbortSignal.any([signal, lost.signal]);
      const patient = {
        ...this.options,
        waiting: (why: string | undefined, fault?: WatchfireError) => this.waits(why, fault),
      };
      await untilReached(patient, held, () => this.carryOver(elector, held));
    } catch (error) {
      signal.throwIfAborted();
      if (!placed.signal.aborted && !this.isPassing(error)) throw error;
    } finally {
      await elector.release();
      this.elector = undefined;
    }
    if (this.trouble !== undefined) await pause(clock, againMs, signal);
  }

  /** Whether another replica may do better, or this one a little later. */
  private isPassing(error: unknown): boolean {
    if (!(error instanceof WatchfireError)) return false;
    if (error.code !== "WF_LEASE_LOST" && error.code !== "WF_CHECKPOINT_SECRETS") return false;
    this.options.log.warn({ error: error.message }, "positions not carried over");
    this.waits(error.message, error);
    return true;
  }

  private async carryOver(elector: Elector, signal: AbortSignal): Promise<void> {
    const { options, here } = this;
    const { log, slots, cluster, account = runtimeAccount } = options;
    const place = placeIn(elector.annotations);
    const { fence } = elector;
    if (!fence) throw lostError("it was lost before positions were carried over");
    const found = place.where === "" && !this.folder.holdsPositions ? await findPlace(options, signal) : undefined;
    // The next look goes by it, or by what a replica at work has said meanwhile.
    if (found) return placeIn(elector.annotations).where === "" ? elector.annotate(found.annotations) : undefined;
    const isHere = place.where === here;
    const due = isHere ? await this.due(elector.annotations) : "spread";
    if (!due) return;
    const waiting = (why: string | undefined) => this.waits(why);
    const connection = await connectNats(options);
    try {
      const former = await openFormer(
        { ...options, account, waiting, isPatient: !isHere },
        elector,
        connection,
        signal,
      );
      // Replicas work: it stays as it is, until a start at which none does.
      this.wasTried = isHere && (!former || due === "sweep");
      if (!former) return;
      try {
        if (due === "sweep") return await this.sweep(elector, former);
        for (const { store } of former.sources) if (cluster !== undefined) await claimCluster(store, cluster);
        const manifests = await options.manifests();
        const filled = await fillSlots({ ...options, connection, slots, manifests }, former, fence, signal);
        await former.confirm();
        await elector.annotate({ ...annotationsOf({ where: here, ...filled }), ...spreadsNote(filled.spreads) });
        log.info(
          { from: place.where || "the data folder", to: here, functions: filled.functions },
          "positions carried over",
        );
        await former.over(here).catch((error: unknown) => {
          log.warn({ error: String(error) }, "what positions were carried from was not cleared");
        });
      } finally {
        await former.close();
      }
      this.folder.retire();
    } finally {
      await connection.close();
    }
  }

  /** Takes those off the record of whom nothing is kept: where they lie is for their return to say. No replica works meanwhile. */
  private async sweep(elector: Elector, former: PreviousLayout): Promise<void> {
    const stores = former.sources.map(({ store }) => store);
    const kept = new Set([...(await namesIn(stores)), ...(await retiredIn(stores))]);
    for (const { name } of await this.options.manifests()) kept.add(name);
    const spreads = spreadsIn(elector.annotations);
    const gone = [...spreads.keys()].filter((name) => !kept.has(name));
    for (const name of gone) spreads.delete(name);
    await former.confirm();
    await elector.annotate(spreadsNote(spreads));
    this.options.log.info({ functions: gone.length }, "functions that are gone taken off the Lease");
  }

  /** Why this replica cannot carry positions over from there. */
  private obstacle({ where }: JournalLocation): string | undefined {
    if (!where.startsWith("sqlite/") || this.folder.holdsPositions) return undefined;
    return `they are on the volume of ${where.slice("sqlite/".length)}, which is not in ${this.options.data}`;
  }

  private waits(why: string | undefined, fault?: WatchfireError): void {
    this.trouble = why;
    this.fault = fault;
  }

  private get folder(): DataFolder {
    return new DataFolder(this.options.data, this.options.clock);
  }
}
