import { type Clock, pause, type Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Elector, lostError } from "../lease/elector.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { claimSlot, HeldSlot } from "./held-slot.ts";
import { LeaseObserver, ownerOf } from "./lease-observer.ts";

/** The fault of checkpoints that are in another place, and are waited for. */
export const awaited = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_AWAITED", { what });

/** Interval at which the fleet's Leases are read, in milliseconds. */
const lookMs = 1_000;
/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;

export interface TakeOptions {
  readonly leases: FleetLeases;
  /** This process's identity. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Whether to wait for live replicas. Default: true. */
  readonly isPatient?: boolean;
  /** Called with the reason for waiting, and with `undefined` when the wait ends. */
  readonly waiting?: ((why: string | undefined) => void) | undefined;
}

/** All slots of a fleet, owned by this process. While it owns them, no replica takes one. */
export class TakenFleet {
  private readonly options: TakeOptions;
  private readonly count: number;
  private readonly elector: Elector;
  private readonly held = new Map<number, HeldSlot>();
  private readonly observer: LeaseObserver;

  private constructor(options: TakeOptions, count: number) {
    const { leases, identity, clock, random, log } = options;
    this.options = options;
    this.count = count;
    // Joins as a member without work, so that other replicas see its slots as owned by a live one.
    this.elector = new Elector({ identity, clock, random, log, api: leases.member(identity) });
    this.observer = new LeaseObserver(leases);
  }

  /**
   * Waits until no replica of the fleet lives, by the rules of the fleet, and takes all its slots. A replica that starts
   * meanwhile takes precedence. `undefined` if one lives and is not waited for.
   * @throws the signal's reason; WatchfireError WF_LEASE_LOST
   */
  static async take(options: TakeOptions, slots: number, signal: AbortSignal): Promise<TakenFleet | undefined> {
    const taken = new TakenFleet(options, slots);
    try {
      await taken.elector.campaign(signal);
      if (await taken.takeAll(signal)) return taken;
    } catch (error) {
      await taken.release();
      throw error;
    }
    await taken.release();
    return undefined;
  }

  /** The slots, in ascending order. */
  get slots(): readonly HeldSlot[] {
    return [...this.held.values()].toSorted((a, b) => a.slot - b.slot);
  }

  /** Resolves if nobody can have taken one for the next seconds. @throws WatchfireError WF_LEASE_LOST */
  async confirm(): Promise<void> {
    await this.elector.annotate({});
  }

  /** Releases all; work that needs them must have ended. Never rejects. */
  async release(): Promise<void> {
    await this.letGo();
    await this.elector.release();
  }

  /** Returns `false` if a replica lives and is not waited for. */
  private async takeAll(signal: AbortSignal): Promise<boolean> {
    const { count, held, elector, options } = this;
    const { clock, log, isPatient = true } = options;
    let logged: string | undefined;
    const waiting = (why: string | undefined): void => {
      if (why !== undefined && why !== logged) log.warn({ error: awaited(why).message }, "slots not taken yet");
      logged = why;
      options.waiting?.(why);
    };
    for (; held.size < count; await pause(clock, held.size < count ? lookMs : 0, signal)) {
      if (!elector.holds) throw lostError("the fleet's slots could not be held");
      try {
        const others = await this.look();
        if (others.length > 0 && !isPatient) return false;
        if (others.length > 0) waiting(`replicas of a fleet of ${count} slots still work: ${others.join(", ")}`);
      } catch (error) {
        waiting(error instanceof Error ? error.message : String(error));
      }
    }
    waiting(undefined);
    return true;
  }

  /** Takes the slots that nobody has, or releases all if replicas live. Returns the names of these. */
  private async look(): Promise<string[]> {
    const { held, options } = this;
    const { leases, identity, clock, log } = options;
    const me = ownerOf(identity, this.elector.fence?.number ?? 0);
    const sentAt = clock.monotonic();
    const listed = await leases.list(requestMs);
    const view = this.observer.look(listed, this.count, { sentAt, heardAt: clock.monotonic() });
    const others = new Set([...view.members, ...view.owners].filter((each) => each !== undefined && each !== me));
    for (const [slot, record] of view.slots.entries()) {
      // A slot that was taken without an answer is in this process's name. It is released with the others.
      const isMine = record?.holder === me;
      if (held.has(slot) || (others.size > 0 && !isMine)) continue;
      const api = leases.slot(slot);
      const written = record && isMine ? record : await claimSlot(api, record, me, clock);
      // Another process was faster: the slot is read again.
      if (written === "conflict") break;
      held.set(slot, new HeldSlot({ slot, record: written, api, clock, log, isAlive: () => this.elector.holds }));
    }
    if (others.size > 0) await this.letGo();
    // The names have no terms.
    return [...others].map((owner) => owner?.replace(/#\d+$/, "") ?? "").toSorted();
  }

  private async letGo(): Promise<void> {
    await Promise.all([...this.held.values()].map((each) => each.release()));
    this.held.clear();
  }
}
