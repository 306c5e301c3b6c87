import { type Clock, pause, type Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Elector, leaseMs, lostError } from "../lease/elector.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { HeldSlot, type HeldSlotOptions } from "./held-slot.ts";
import { LeaseObserver, ownerOf } from "./lease-observer.ts";

/** The fault of positions that are in another place, and are waited for. */
export const awaited = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_AWAITED", { what });

/** How often the fleet is looked at, in milliseconds. */
const lookMs = 1_000;
/** One request, in milliseconds. */
const requestMs = 3_000;

export interface TakeOptions {
  readonly leases: FleetLeases;
  /** This process's. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Whether replicas that live are waited for. Default true. */
  readonly isPatient?: boolean;
  /** Called with who still works, or what is in the way, and with `undefined` at its end. */
  readonly waiting?: ((why: string | undefined) => void) | undefined;
}

/** All slots of a fleet in one hand. While it lives no replica takes one. */
export class TakenFleet {
  private readonly elector: Elector;
  private readonly held: Map<number, HeldSlot>;

  private constructor(elector: Elector, held: Map<number, HeldSlot>) {
    this.elector = elector;
    this.held = held;
  }

  /**
   * Waits until no replica of the fleet lives, by the fleet's own laws, and takes all its slots. A replica that comes
   * meanwhile goes first. Undefined where one lives and is not waited for.
   * @throws the signal's reason; WatchfireError WF_LEASE_LOST
   */
  static async take(options: TakeOptions, slots: number, signal: AbortSignal): Promise<TakenFleet | undefined> {
    const { leases, identity, clock, random, log, isPatient = true } = options;
    // As a member that takes no part: its slots are those of one that lives.
    const elector = new Elector({ api: leases.member(identity), identity, clock, random, log });
    const held = new Map<number, HeldSlot>();
    const taken = new TakenFleet(elector, held);
    let told: string | undefined;
    const waiting = (why: string | undefined): void => {
      if (why !== undefined && why !== told) log.warn({ error: awaited(why).message }, "slots not taken yet");
      told = why;
      options.waiting?.(why);
    };
    try {
      await elector.campaign(signal);
      const me = ownerOf(identity, elector.fence?.number ?? 0);
      const own = { clock, log, isAlive: () => elector.holds };
      const sightings = new LeaseObserver(leases);
      for (; held.size < slots; await pause(clock, held.size < slots ? lookMs : 0, signal)) {
        if (!elector.holds) throw lostError("the fleet's slots could not be held");
        try {
          const sentAt = clock.monotonic();
          const listed = await leases.list(requestMs);
          const view = sightings.look(listed, slots, { sentAt, heardAt: clock.monotonic() });
          const others = new Set([...view.members, ...view.owners].filter((each) => each !== undefined && each !== me));
          adopt(leases, me, view.slots, held, own);
          if (others.size > 0 && !isPatient) {
            await taken.release();
            return undefined;
          }
          if (others.size > 0) {
            waiting(
              `replicas of a fleet of ${slots} slots still work: ${[...others].map(nameOf).toSorted().join(", ")}`,
            );
            await taken.letGo();
          } else await takeAll(leases, me, view.slots, held, own);
        } catch (error) {
          waiting(error instanceof Error ? error.message : String(error));
        }
      }
      waiting(undefined);
      return taken;
    } catch (error) {
      await taken.release();
      throw error;
    }
  }

  /** In their order. */
  get slots(): readonly HeldSlot[] {
    return [...this.held.values()].toSorted((a, b) => a.slot - b.slot);
  }

  /** Resolves where nobody can have taken one for the next seconds. @throws WatchfireError WF_LEASE_LOST */
  async confirm(): Promise<void> {
    await this.elector.annotate({});
  }

  /** Lets go of all; work that needs them must have ended. Never rejects. */
  async release(): Promise<void> {
    await this.letGo();
    await this.elector.release();
  }

  private async letGo(): Promise<void> {
    await Promise.all([...this.held.values()].map((each) => each.release()));
    this.held.clear();
  }
}

/** The options of each slot that is taken. */
type SlotHolder = Pick<HeldSlotOptions, "clock" | "isAlive" | "log">;

/** A slot that was taken without an answer is in this process's name. It is held from now on, and let go of with the others. */
function adopt(
  leases: FleetLeases,
  me: string,
  records: readonly (LeaseRecord | undefined)[],
  held: Map<number, HeldSlot>,
  own: SlotHolder,
): void {
  for (const [slot, record] of records.entries()) {
    if (record?.holder !== me || held.has(slot)) continue;
    held.set(slot, new HeldSlot({ ...own, slot, record, api: leases.slot(slot) }));
  }
}

/** Takes those that nobody has; one that somebody was quicker to take is looked at again. */
async function takeAll(
  leases: FleetLeases,
  me: string,
  records: readonly (LeaseRecord | undefined)[],
  held: Map<number, HeldSlot>,
  own: SlotHolder,
): Promise<void> {
  for (const [slot, record] of records.entries()) {
    if (held.has(slot)) continue;
    const api = leases.slot(slot);
    const now = own.clock.now();
    const claim = { holder: me, durationMs: leaseMs, acquiredAt: now, renewedAt: now };
    const written = record
      ? await api.update(record, { ...claim, transitions: record.transitions + 1 }, requestMs)
      : await api.create({ ...claim, transitions: 1 }, requestMs);
    if (written === "conflict") return;
    held.set(slot, new HeldSlot({ ...own, slot, record: written, api }));
  }
}

/** The replica's, without its term. */
const nameOf = (owner: string | undefined): string => owner?.replace(/#\d+$/, "") ?? "";
