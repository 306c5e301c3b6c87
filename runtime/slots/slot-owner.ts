import { type Clock, pause, type Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import { lostError } from "../lease/elector.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import { assignment } from "./assignment.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { claimSlot, HeldSlot } from "./held-slot.ts";
import { type FleetView, LeaseObserver } from "./lease-observer.ts";
import type { Membership } from "./membership.ts";

/** How often a replica looks at the fleet, in milliseconds. */
const lookMs = 1_000;
/** The same while slots are on their way to it from a replica that lives: they run nowhere meanwhile. */
const eagerLookMs = 200;
/** One request, in milliseconds. */
const requestMs = 3_000;

/** What a replica does with a slot that it has taken. */
export interface SlotWork {
  /** Ends what runs, and saves. Only then is the slot let go of. */
  end(): Promise<void>;
  /** The slot was let go of. */
  over?(): void;
}

interface SlotOwnerOptions {
  readonly leases: FleetLeases;
  readonly membership: Membership;
  /** How many there are. */
  readonly slots: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Begins the work of a slot that was taken. A failure is the replica's end, which it tells by itself. */
  readonly begin: (held: HeldSlot) => SlotWork;
  /** Called where a slot went to somebody else while it was worked on. */
  readonly onLost: (error: WatchfireError) => void;
}

interface OwnedSlot {
  readonly held: HeldSlot;
  readonly work: SlotWork;
  /** Once it is being given away. */
  leaving: Promise<void> | undefined;
}

/** The slots of one replica: takes those that are to be its own, and gives away those that are to be another's. */
export class SlotOwner {
  private readonly options: SlotOwnerOptions;
  private readonly sightings: LeaseObserver;
  private readonly own = new Map<number, OwnedSlot>();
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private view: FleetView | undefined;
  private fault: string | undefined;
  private isComplete = false;
  private isEager = false;

  constructor(options: SlotOwnerOptions) {
    this.options = options;
    this.sightings = new LeaseObserver(options.leases);
  }

  /** How the fleet stood when it was looked at last. */
  get fleet(): FleetView | undefined {
    return this.view;
  }

  /** Why the fleet cannot be looked at, while that is so. */
  get trouble(): string | undefined {
    return this.fault;
  }

  /** Whether it had, when it looked last, every slot that is to be its own. */
  get complete(): boolean {
    return this.isComplete;
  }

  /** Looks at the fleet every second, and acts on what it sees. */
  start(): void {
    this.running = this.run();
  }

  /** Ends the work of every slot, and lets go of each as it has ended. */
  async drain(): Promise<void> {
    this.stopping.abort();
    await this.running;
    const left = new AbortController();
    void this.keep(left.signal);
    await Promise.all([...this.own.values()].map((own) => this.leave(own))).finally(() => left.abort());
  }

  /** Takes nothing any more, and lets go of nothing. */
  async halt(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { clock, random, log } = this.options;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await this.look(signal);
        this.fault = undefined;
      } catch (error) {
        const fault = error instanceof Error ? error.message : String(error);
        if (fault !== this.fault) log.warn({ error: fault }, "the fleet cannot be seen");
        this.fault = fault;
      }
      const lookInMs = this.isEager ? eagerLookMs : lookMs;
      await pause(clock, lookInMs * (0.9 + 0.2 * random()), signal).catch(() => undefined);
    }
  }

  private async look(signal: AbortSignal): Promise<void> {
    const { leases, membership, slots, clock } = this.options;
    const before = new Set(this.own.keys());
    const settled = new Set([...this.own].flatMap(([slot, { leaving }]) => (leaving ? [] : [slot])));
    const sentAt = clock.monotonic();
    const listed = await leases.list(requestMs);
    const me = membership.owner;
    const view = this.sightings.look(listed, slots, { sentAt, heardAt: clock.monotonic(), me });
    this.view = view;
    if (signal.aborted || me === undefined || !membership.holds) return;
    // Where its own Lease was deleted it makes that one again. Until then nobody can reckon with it, nor it with others.
    const members = listed.has(membership.leaseIn(leases)) ? view.members : [];
    const targets = assignment(members, view.owners);
    this.isEager = view.owners.some((owner, slot) => owner !== undefined && owner !== me && targets[slot] === me);
    const takes: Promise<void>[] = [];
    for (const [slot, owner] of view.owners.entries()) {
      const own = this.own.get(slot);
      const record = view.slots[slot];
      if (own) {
        if (!record) {
          // Also of one that is being given away: its work may take long to end, and others would not wait for that.
          if (before.has(slot)) own.held.makeAgain();
        } else if (settled.has(slot)) {
          if (owner !== me) return this.stolen(slot, record);
          // Where nobody is to have it, this replica does not take slots any more, or is not seen to.
          if (targets[slot] !== undefined && targets[slot] !== me) void this.leave(own);
        }
      } else if (before.has(slot)) {
        // It was let go of meanwhile: what was listed is older.
      } else if (owner === me && record) {
        // An answer was lost on the way.
        this.begin(slot, record);
      } else if (owner === undefined && targets[slot] === me && !view.lost.has(slot)) {
        takes.push(this.take(slot, record, me));
      }
    }
    // A replica that came since counts their silence from then, and would wait for its own slots as long again.
    const told = view.silent.map((dead) => leases.member(dead.holder).update(dead, { holder: "" }, requestMs));
    await Promise.all([...takes, Promise.allSettled(told)]);
    const owed = targets.some((target, slot) => target === me && !this.own.has(slot));
    this.isComplete = members.includes(me) && !owed;
    for (const gone of view.forgotten) await leases.remove(gone, requestMs).catch(() => undefined);
  }

  /** While the last work ends, makes Leases again that somebody deletes: another would take such a slot. */
  private async keep(signal: AbortSignal): Promise<void> {
    const { leases, clock } = this.options;
    while (!signal.aborted) {
      await pause(clock, lookMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      const listed = await leases.list(requestMs).catch(() => undefined);
      for (const { held } of this.own.values())
        if (listed?.has(leases.nameOfSlot(held.slot)) === false) held.makeAgain();
    }
  }

  private async take(slot: number, record: LeaseRecord | undefined, me: string): Promise<void> {
    const { leases, membership, clock, log } = this.options;
    try {
      const written = await claimSlot(leases.slot(slot), record, me, clock);
      // An answer that came too late is found at the next look, where this replica lives then.
      if (written !== "conflict" && membership.holds && !this.stopping.signal.aborted) this.begin(slot, written);
    } catch (error) {
      log.warn({ slot, error: String(error) }, "slot not taken");
    }
  }

  private begin(slot: number, record: LeaseRecord): void {
    const { leases, membership, clock, log, begin } = this.options;
    const isAlive = () => membership.holds;
    const held = new HeldSlot({ slot, record, api: leases.slot(slot), isAlive, clock, log });
    log.info({ slot, fence: held.fence.number }, "slot taken");
    this.own.set(slot, { held, work: begin(held), leaving: undefined });
  }

  private leave(own: OwnedSlot): Promise<void> {
    own.leaving ??= (async () => {
      const { clock, log } = this.options;
      const { slot } = own.held;
      const from = clock.monotonic();
      await own.work.end();
      const isHeard = await own.held.release();
      if (this.own.get(slot) === own) this.own.delete(slot);
      own.work.over?.();
      log.info({ slot, drainedMs: Math.round(clock.monotonic() - from), isHeard }, "slot let go");
    })();
    return own.leaving;
  }

  private stolen(slot: number, record: LeaseRecord): void {
    this.stopping.abort();
    this.options.onLost(lostError(`slot ${slot} is with ${record.holder || "nobody"}`));
  }
}
