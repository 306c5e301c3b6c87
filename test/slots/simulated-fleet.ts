import type { Clock } from "../../runtime/base/clock.ts";
import { Elector } from "../../runtime/lease/elector.ts";
import { readLease } from "../../runtime/lease/lease-record.ts";
import type { FleetLeases } from "../../runtime/slots/fleet-leases.ts";
import type { HeldSlot } from "../../runtime/slots/held-slot.ts";
import { Membership } from "../../runtime/slots/membership.ts";
import { SlotOwner } from "../../runtime/slots/slot-owner.ts";
import { caller, type Fate, ProcessClock, SimulatedLease } from "../lease/simulated-leases.ts";
import type { VirtualClock } from "../virtual-clock.ts";

const silent = { info: () => {}, warn: () => {} };

/** All Leases of a fleet, behind an unreliable network. */
export class SimulatedFleet {
  readonly all = new Map<string, SimulatedLease>();
  readonly network: VirtualClock;

  constructor(network: VirtualClock) {
    this.network = network;
  }

  lease(name: string): SimulatedLease {
    const found = this.all.get(name) ?? new SimulatedLease(this.network, name);
    this.all.set(name, found);
    return found;
  }

  /** The Leases as one process reaches them. */
  leases(clock: Clock, fate: () => Fate): FleetLeases {
    const call = caller(this.network, clock, fate);
    const nameOfSlot = (slot: number) => `slot-${slot}`;
    const nameOfMember = (identity: string) => `replica-${identity}`;
    return {
      nameOfSlot,
      nameOfMember,
      isMember: (name) => name.startsWith("replica-"),
      slot: (slot) => this.lease(nameOfSlot(slot)).api(clock, fate),
      member: (identity) => this.lease(nameOfMember(identity)).api(clock, fate),
      list: (timeoutMs) =>
        call(timeoutMs, () => {
          const there = [...this.all.values()].flatMap(({ object }) => (object ? [readLease(object)] : []));
          return new Map(there.map((lease) => [lease.name, lease]));
        }),
      remove: ({ name, resourceVersion }, timeoutMs) =>
        call(timeoutMs, () => {
          const lease = this.lease(name);
          if (lease.object?.metadata.resourceVersion === resourceVersion) lease.remove();
        }),
    };
  }
}

/**
 * One replica as a simulated process that the test can stop, suspend, or ask to end. A slot's work takes `drainMs` to end.
 */
export class SimulatedReplica {
  readonly clock: ProcessClock;
  readonly slots: SlotOwner;
  fate: () => Fate = () => ({ thereMs: 5, backMs: 5 });
  drainMs = 200;
  /** Slots whose work is ending. */
  draining = 0;
  isOver = false;
  private readonly membership: Membership;
  private readonly working = new Map<number, HeldSlot>();
  private readonly stop = new AbortController();

  constructor(fleet: SimulatedFleet, identity: string, slots: number) {
    this.clock = new ProcessClock(fleet.network);
    const { clock } = this;
    const leases = fleet.leases(clock, () => this.fate());
    const random = () => 0.5;
    const elector = new Elector({
      api: leases.member(identity),
      identity,
      clock,
      random,
      log: silent,
      makesAgain: true,
    });
    this.membership = new Membership(elector, identity);
    const over = () => {
      this.isOver = true;
      void this.slots.halt();
    };
    const begin = (held: HeldSlot) => {
      this.working.set(held.slot, held);
      const end = () =>
        new Promise<void>((resolve) => {
          this.draining++;
          clock.after(this.drainMs, () => {
            this.draining--;
            this.working.delete(held.slot);
            resolve();
          });
        });
      return { end };
    };
    this.slots = new SlotOwner({
      leases,
      membership: this.membership,
      slots,
      clock,
      random,
      log: silent,
      begin,
      onLost: over,
    });
    void elector.lost.then(over);
    this.membership.join(this.stop.signal).then(
      () => this.slots.start(),
      () => {},
    );
  }

  /** The slots that it believes to hold and works on while it runs. */
  get believes(): number[] {
    if (this.clock.stopped || this.isOver) return [];
    return [...this.working.values()].filter(({ holds }) => holds).map(({ slot }) => slot);
  }

  /** The slots that it has acquired and not released. */
  get held(): HeldSlot[] {
    return [...this.working.values()];
  }

  /** Ends as after SIGTERM. */
  async end(): Promise<void> {
    this.stop.abort();
    await this.membership.retire().catch(() => {});
    await this.slots.drain();
    await this.membership.leave();
    this.isOver = true;
  }
}
