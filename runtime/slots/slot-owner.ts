import { type Clock, pause, type Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import { lostError } from "../lease/elector.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { claimSlot, HeldSlot } from "./held-slot.ts";
import { type FleetView, LeaseObserver } from "./lease-observer.ts";
import type { Membership } from "./membership.ts";
import { drawn } from "./rendezvous.ts";

/** Milliseconds between two checks of the fleet. */
const lookMs = 1_000;
/** The same while slots are moving to it from a live replica, because they run nowhere meanwhile. */
const eagerLookMs = 200;
/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;

/** The work that a replica does for a slot it has taken. */
export interface SlotWork {
  /** Ends the work and saves. The slot is released only after that. */
  end(): Promise<void>;
  /** Called when the slot was released. */
  over?(): void;
}

interface SlotOwnerOptions {
  readonly leases: FleetLeases;
  readonly membership: Membership;
  /** Number of slots. */
  readonly slots: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Begins the work of a slot that was taken. It handles failures itself, by ending the replica. */
  readonly begin: (held: HeldSlot) => SlotWork;
  /** Called if another process took a slot while this replica worked on it. */
  readonly onLost: (error: WatchfireError) => void;
}

interface OwnedSlot {
  readonly held: HeldSlot;
  readonly work: SlotWork;
  /** Set once it is being given away. */
  leaving: Promise<void> | undefined;
}

/** Owns the slots of one replica: takes those assigned to it, and gives away those assigned to others. */
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

  /** The fleet's state at the last check. */
  get fleet(): FleetView | undefined {
    return this.view;
  }

  /** Why the fleet cannot be checked; `undefined` if it can. */
  get trouble(): string | undefined {
    return this.fault;
  }

  /** Whether it had all slots assigned to it at the last check. */
  get complete(): boolean {
    return this.isComplete;
  }

  /** Starts to check the fleet every second and to act on the result. */
  start(): void {
    this.running = this.run();
  }

  /** Ends the work of every slot and releases each slot as its work has ended. */
  async drain(): Promise<void> {
    this.stopping.abort();
    await this.running;
    const left = new AbortController();
    void this.keep(left.signal);
    await Promise.all([...this.own.values()].map((own) => this.leave(own))).finally(() => left.abort());
  }

  /** Stops taking slots, without releasing any. */
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
    // If its own Lease was deleted, it first creates that again. Until then the replicas cannot compute a common assignment.
    const members = listed.has(membership.leaseIn(leases)) ? view.members : [];
    const targets = assignment(members, view.owners);
    this.isEager = view.owners.some((owner, slot) => owner !== undefined && owner !== me && targets[slot] === me);
    const takes: Promise<void>[] = [];
    for (const [slot, owner] of view.owners.entries()) {
      const own = this.own.get(slot);
      const record = view.slots[slot];
      if (own) {
        if (!record) {
          // Also for a slot that is being given away: its work may take long to end, and others would take the slot before.
          if (before.has(slot)) own.held.makeAgain();
        } else if (settled.has(slot)) {
          if (owner !== me) return this.stolen(slot, record);
          // If it is assigned to no member, this replica does not take slots any more, or is not visible to others.
          if (targets[slot] !== undefined && targets[slot] !== me) void this.leave(own);
        }
      } else if (before.has(slot)) {
        // Released meanwhile; the list is older.
      } else if (owner === me && record) {
        // The answer to the write that took it was lost.
        this.begin(slot, record);
      } else if (owner === undefined && targets[slot] === me && !view.lost.has(slot)) {
        takes.push(this.take(slot, record, me));
      }
    }
    // Releases the Leases of dead replicas. A replica that started later measures their silence from then, and would wait again
    // for its own slots.
    const notices = view.silent.map((dead) => leases.member(dead.holder).update(dead, { holder: "" }, requestMs));
    await Promise.all([...takes, Promise.allSettled(notices)]);
    const owed = targets.some((target, slot) => target === me && !this.own.has(slot));
    this.isComplete = members.includes(me) && !owed;
    for (const gone of view.forgotten) await leases.remove(gone, requestMs).catch(() => undefined);
  }

  /** Creates deleted Leases again while the last work ends, because another replica would take such a slot. */
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
      log.info({ slot, drainedMs: Math.round(clock.monotonic() - from), isHeard }, "slot released");
    })();
    return own.leaving;
  }

  private stolen(slot: number, record: LeaseRecord): void {
    this.stopping.abort();
    this.options.onLost(lostError(`slot ${slot} is with ${record.holder || "no replica"}`));
  }
}

/**
 * Assigns each slot to a member. The counts differ by at most one. A slot stays with its live owner unless that one has too many,
 * so that the fewest possible slots move. All processes that see the same members and owners compute the same result.
 * @param members the live members, without duplicates, in any order
 * @param owners the owner of each slot; `undefined`, or a name not in `members`, if it is free
 * @returns a member for each slot; `undefined` for all if there are no members
 */
export function assignment(
  members: readonly string[],
  owners: readonly (string | undefined)[],
): readonly (string | undefined)[] {
  if (members.length === 0) return owners.map(() => undefined);
  const held = new Map<string, number[]>(members.map((member) => [member, []]));
  for (const [slot, owner] of owners.entries()) held.get(owner ?? "")?.push(slot);
  const count = (member: string) => held.get(member)?.length ?? 0;
  // If the counts cannot be equal, members with the most slots keep one more.
  const ordered = [...members].sort((a, b) => count(b) - count(a) || (a < b ? -1 : 1));
  const least = Math.floor(owners.length / members.length);
  const more = owners.length % members.length;
  const target: (string | undefined)[] = owners.map(() => undefined);
  const room = new Map<string, number>();
  for (const [place, member] of ordered.entries()) {
    const quota = place < more ? least + 1 : least;
    const slots = held.get(member) ?? [];
    const kept = slots.toSorted((a, b) => drawn(member, b) - drawn(member, a)).slice(0, quota);
    for (const slot of kept) target[slot] = member;
    if (kept.length < quota) room.set(member, quota - kept.length);
  }
  for (const [slot, kept] of target.entries()) {
    if (kept !== undefined) continue;
    const [taker, left] = [...room].reduce((a, b) => (drawn(b[0], slot) > drawn(a[0], slot) ? b : a));
    target[slot] = taker;
    if (left > 1) room.set(taker, left - 1);
    else room.delete(taker);
  }
  return target;
}
