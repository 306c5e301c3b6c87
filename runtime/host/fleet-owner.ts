import { runtimeAccount } from "../access/account.ts";
import { asWatchfireError, WatchfireError } from "../base/errors.ts";
import { accountLabel } from "../catalog/names.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { noSuchFunction } from "../control/no-such-function.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { elsewhere } from "../journal/journal.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { readSlot } from "../journal/nats/slot.ts";
import type { Elector } from "../lease/elector.ts";
import { leaseApi } from "../lease/lease-api.ts";
import { FleetEntry } from "../migrate/fleet-entry.ts";
import { fleetPlace, type JournalLocation, readPlace, slotName } from "../migrate/location.ts";
import { connectNats, openSlot, roomOfSlot } from "../migrate/open-journal.ts";
import { untilReached } from "../migrate/until-reached.ts";
import type { DeadLetterService } from "../observe/control-routes.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import type { HeldSlot } from "../slots/held-slot.ts";
import type { FleetView } from "../slots/lease-observer.ts";
import { Membership } from "../slots/membership.ts";
import { SlotOwner } from "../slots/slot-owner.ts";
import type { Candidate } from "./components.ts";
import { Catalogue } from "./fleet/catalogue.ts";
import { DamagedSlots, damageOn } from "./fleet/damaged-slots.ts";
import { fleetLetters } from "./fleet/fleet-letters.ts";
import { type FleetFacts, KeptLease } from "./fleet/kept-lease.ts";
import { Reloads } from "./fleet/reloads.ts";
import { Shardings } from "./fleet/shardings.ts";
import type { Ownership, OwnershipParts } from "./ownership.ts";
import { Partition } from "./partition.ts";
import { recogniseCluster } from "./recognise-cluster.ts";

const notJoined = "it has not joined the fleet yet";

/** State of a replica that has joined its fleet. */
interface Entered {
  readonly connection: Nats;
  /** Location of the runtime's checkpoints when it joined. */
  readonly place: JournalLocation;
  /** The cluster's uid, if known. */
  readonly cluster: string | undefined;
}

/** Holds a partition for each slot of this replica of a fleet. */
export class FleetOwner implements Ownership {
  readonly partitions = new Map<number, Partition>();
  readonly deadLetters: DeadLetterService;
  private readonly parts: OwnershipParts;
  private readonly count: number;
  private readonly candidate: Candidate;
  private readonly elector: Elector;
  /** The runtime's Lease, which says where its checkpoints are. */
  private readonly lease: KeptLease;
  private readonly membership: Membership;
  private readonly slots: SlotOwner;
  private readonly shardings: Shardings;
  private readonly catalogue: Catalogue;
  private readonly reloads: Reloads;
  private joining: Promise<void> = Promise.resolve();
  private entered: Entered | undefined;
  private entry: FleetEntry | undefined;
  private place: JournalLocation | undefined;
  /** Why it takes no slots yet. */
  private obstacle: string | undefined = notJoined;

  constructor(parts: OwnershipParts, count: number) {
    const { transport, namespace, account = runtimeAccount, election, clock, random, log } = parts.options;
    const { elector } = parts.components;
    if (!elector || !election) throw new TypeError("a fleet's replica has a separate Lease");
    this.parts = parts;
    this.count = count;
    this.candidate = election;
    this.elector = elector;
    this.membership = new Membership(elector, election.identity);
    this.slots = new SlotOwner({
      leases: fleetLeases(transport, { namespace, account, label: accountLabel(account) }),
      membership: this.membership,
      slots: count,
      clock,
      random,
      log,
      begin: (held) => this.take(held),
      onLost: parts.onLost,
    });
    this.lease = new KeptLease(leaseApi(transport, namespace, account), () => this.facts, log);
    this.shardings = new Shardings(this.lease, log);
    this.catalogue = new Catalogue(parts.source, count, this.shardings);
    this.reloads = new Reloads({
      catalogue: this.catalogue,
      shardings: this.shardings,
      runs: () => [...this.partitions.values()],
      isHere: (name) =>
        this.slotsOf(name).some((slot) => this.partitions.has(slot) && !this.partitions.get(slot)?.damage),
      isStuck: (name) => this.isStuck(name),
      clock,
      log,
    });
    this.deadLetters = fleetLetters(
      () => new Map([...this.partitions].flatMap(([slot, { active }]) => (active ? [[slot, active.deadLetters]] : []))),
      (slot) => (slot < count ? describeOwners([slot], this.partitions, this.owners) : undefined),
    );
  }

  get names(): readonly string[] {
    return this.catalogue.names;
  }

  get holds(): boolean {
    return this.membership.holds;
  }

  get delay(): string | undefined {
    const { entry, obstacle, membership, elector } = this;
    const why = membership.unwritten?.message ?? elector.standing?.obstacle;
    return entry?.why?.message ?? (obstacle && (why ?? obstacle));
  }

  get missing(): string | undefined {
    if (this.slots.complete && this.reloads.isAgreed) return undefined;
    return this.slots.trouble ?? "its slots are being taken";
  }

  readonly isStandby = false;

  get owner(): string | undefined {
    return this.membership.owner;
  }

  get owners(): FleetView["owners"] {
    return this.slots.fleet?.owners ?? [];
  }

  get peers(): FleetView["peers"] {
    return this.slots.fleet?.peers ?? [];
  }

  slotsOf(name: string): readonly number[] {
    return this.catalogue.slotsOf(name);
  }

  originOf(name: string) {
    return this.catalogue.originOf(name);
  }

  elsewhere(name: string): string | undefined {
    const { partitions } = this;
    const isAtWork = (slot: number) => partitions.get(slot)?.active !== undefined && partitions.get(slot)?.holds;
    const others = this.slotsOf(name).filter((slot) => !isAtWork(slot));
    return describeOwners(others, partitions, this.owners);
  }

  absent(name: string): WatchfireError {
    const { names, partitions } = this;
    if (!names.includes(name)) return noSuchFunction(name, names);
    return new WatchfireError("WF_LEASE_STANDBY", {
      what: `the function's ${this.elsewhere(name)}`,
      hint: this.slotsOf(name).some((slot) => partitions.has(slot))
        ? "ask again in a moment; `watchfire slots` shows the state of its slots"
        : "ask that replica: its name begins with that of its host, which is its pod's",
    });
  }

  describe() {
    const { slots, catalogue, partitions, membership, candidate, count } = this;
    const unwritten = membership.unwritten ?? this.shardings.unwritten;
    const obstacle = this.delay ?? slots.trouble ?? unwritten?.message;
    return { fleet: describeFleet(candidate.identity, count, slots.fleet, partitions, catalogue, obstacle) };
  }

  async prepare(): Promise<void> {
    this.parts.dataDir.asReplica();
  }

  async begin(url: string, start: AbortSignal): Promise<void> {
    const { dataDir, stopping, onLost } = this.parts;
    dataDir.announce(url);
    const signal = AbortSignal.any([start, stopping]);
    this.joining = this.join(url, signal).catch((error: unknown) => {
      if (!signal.aborted) onLost(asWatchfireError(error));
    });
  }

  reload(): Promise<void> {
    return this.reloads.again(this.parts.stopping);
  }

  /** Takes no more slots, and releases each slot once its handlers have finished and its journal is closed. */
  async drain(): Promise<undefined> {
    await this.joining;
    // Other replicas stop counting on this one.
    await this.membership.retire().catch(() => undefined);
    await this.slots.drain();
  }

  halt(): Promise<void> {
    return this.slots.halt();
  }

  async close(): Promise<void> {
    await this.entered?.connection.close();
    await this.membership.leave();
  }

  /** The facts for the runtime's Lease. `undefined` if another replica may have moved the checkpoints. */
  private get facts(): FleetFacts | undefined {
    const { membership, place, shardings } = this;
    return membership.holds && place ? { place, shardings: shardings.all } : undefined;
  }

  /** True if a function's first slot is damaged, whichever replica holds it. */
  private isStuck(name: string): boolean {
    const [slot = 0] = this.slotsOf(name);
    return (this.partitions.get(slot)?.damage ?? damageOn(this.slots.fleet?.slots[slot]?.annotations)) !== undefined;
  }

  /** Checks that the fleet and the cluster are the expected ones, and takes slots from then on. */
  private async join(url: string, signal: AbortSignal): Promise<void> {
    const { slots, membership, count } = this;
    const { options, source, dataDir, stopping, known } = this.parts;
    const { clock, log } = options;
    const waiting = (why: string | undefined) => {
      this.obstacle = why ?? notJoined;
    };
    const cluster = await recogniseCluster(options, signal, waiting);
    // Waits until the checkpoints are this fleet's, and moves them if this replica can reach them.
    const manifests = async () => (await source.read(signal)).functions.map(({ manifest }) => manifest);
    this.entry = new FleetEntry({ ...options, ...this.candidate, slots: count, cluster, manifests });
    const place = await this.entry.enter(signal);
    this.place = place;
    this.entry = undefined;
    const connection = await untilReached({ clock, log, waiting }, signal, () => connectNats({ ...options, cluster }));
    this.entered = { connection, place, cluster };
    await this.reloads.first(signal, waiting);
    await membership.join(signal, this.parts.announcement());
    this.obstacle = undefined;
    dataDir.takeOver(url);
    log.info({ replica: membership.owner, slots: count }, "joined the fleet");
    slots.start();
    known();
    void this.reloads.agree(stopping);
    void this.lease.keep(clock, stopping);
  }

  private take(held: HeldSlot): Partition {
    const { entered, parts, catalogue, partitions, count } = this;
    if (!entered) throw new TypeError("a slot was taken before the fleet was joined");
    const over = (ended: Partition) => {
      if (partitions.get(held.slot) === ended) partitions.delete(held.slot);
    };
    const run = { ...parts, ...entered, slots: count, held, catalogue, over, readPlace: () => readPlace(this.lease) };
    const partition = runSlot(run);
    partitions.set(held.slot, partition);
    return partition;
  }
}

/** Inputs of a slot's partition. */
export interface SlotRunParts extends Entered, Pick<OwnershipParts, "options" | "components" | "onLost"> {
  readonly held: HeldSlot;
  readonly catalogue: Pick<Catalogue, "of">;
  /** Number of slots of the fleet. */
  readonly slots: number;
  /** Reads where the checkpoints are. */
  readonly readPlace: () => Promise<JournalLocation>;
  readonly over: (partition: Partition) => void;
}

/** Runs the functions of one slot, from the opening of its checkpoints to the last commit. */
export function runSlot(parts: SlotRunParts): Partition {
  const { options, catalogue, cluster, held } = parts;
  const { clock, log } = options;
  const damages = new DamagedSlots({ held, clock, log });
  const partition = new Partition({
    ...parts,
    source: (recorded) => catalogue.of(held.slot, recorded),
    damage: () => damages.fault,
  });
  void partition.begin(async (signal, opening) => {
    const from = clock.monotonic();
    await partition.open(await openJournal(parts, damages, signal, opening), cluster);
    await partition.live.read(signal);
    if (signal.aborted) return;
    const tookMs = Math.round(clock.monotonic() - from);
    log.info({ slot: held.slot, functions: partition.live.all.length, tookMs }, "slot runs");
  });
  return partition;
}

/** Opens the slot's journal. Retries temporary faults, and waits until damaged checkpoints are repaired. */
function openJournal(
  { options, connection, slots, place, readPlace, held, onLost: lose }: SlotRunParts,
  damages: DamagedSlots,
  signal: AbortSignal,
  { damaged, waiting }: { readonly damaged: () => void; readonly waiting: (why: string | undefined) => void },
): Promise<Checkpoint> {
  const room = roomOfSlot(slots);
  const slot = slotName(place.set, held.slot);
  const patient = { ...options, waiting };
  const onLost = (error: WatchfireError) => {
    if (!signal.aborted) lose(error);
  };
  const open = async () => {
    // Read after the slot is held: a replica that moves checkpoints holds all slots until the Lease names the new place.
    const { where, set, carried } = await readPlace();
    if (where !== fleetPlace(slots) || set !== place.set)
      throw elsewhere(`the checkpoints of slot ${held.slot} were moved to ${where || "nowhere"}`);
    const of = { connection, slot, carried: carried[held.slot], room, cacheBytes: room };
    return new Checkpoint(await openSlot({ ...options, ...of, onLost }, held));
  };
  return damages.untilWhole(
    {
      open: () => untilReached(patient, signal, open),
      read: () => untilReached(patient, signal, () => readSlot({ ...options, nats: connection, slot })),
      damaged,
    },
    signal,
  );
}

/**
 * Describes who owns slots, such as `slots 1, 4 are with b; slot 2 is with nobody yet`. Returns `undefined` for an empty list.
 * `here`: slots that this replica has, including those that are opening or ending. `owners`: owners by slot, from the Leases.
 */
export function describeOwners(
  slots: readonly number[],
  here: ReadonlyMap<number, unknown>,
  owners: readonly (string | undefined)[] = [],
): string | undefined {
  // The holder in a Lease ends with the number of its term.
  const nameOf = (slot: number) => owners[slot]?.replace(/#\d+$/, "") ?? "no replica yet";
  const ownerOf = (slot: number) => (here.has(slot) ? "this replica, which does not run it now" : nameOf(slot));
  const words = [...Map.groupBy(slots, ownerOf)].map(([owner, [first, ...more]]) =>
    more.length === 0 ? `slot ${first} is with ${owner}` : `slots ${[first, ...more].join(", ")} are with ${owner}`,
  );
  return words.length === 0 ? undefined : words.join("; ");
}

/** Describes the fleet from the view of one of its replicas. */
export function describeFleet(
  replica: string,
  slots: number,
  view: FleetView | undefined,
  partitions: ReadonlyMap<number, Partition>,
  catalogue: Pick<Catalogue, "names" | "slotsOf">,
  obstacle: string | undefined,
): FleetReport {
  const placed = catalogue.names.flatMap((name) => catalogue.slotsOf(name).map((slot) => ({ name, slot })));
  const functions = Map.groupBy(placed, ({ slot }) => slot);
  return {
    replica,
    replicas: view?.members.length ?? 0,
    ...(obstacle !== undefined && { obstacle }),
    slots: Array.from({ length: slots }, (_, slot) => {
      const partition = partitions.get(slot);
      const owner = view?.owners[slot]?.replace(/#\d+$/, "") ?? "";
      return {
        slot,
        owner: partition ? replica : owner,
        ...(partition ? describeSlot(partition) : describeOther(owner, damageOn(view?.slots[slot]?.annotations))),
        functions: (functions.get(slot) ?? []).map(({ name }) => name).toSorted(),
      };
    }),
  };
}

type SlotState = Pick<FleetReport["slots"][number], "state" | "reason" | "oldestEventSeconds">;

function describeSlot({ isEnding, active, damage, delay, held }: Partition): SlotState {
  const unwritten = held?.unwritten?.message;
  if (isEnding) return { state: "leaving", reason: unwritten ?? "its handlers finish, then another replica takes it" };
  if (damage) return { state: "damaged", reason: damage.message };
  if (!active) return { state: "opening", reason: delay ?? unwritten ?? "its checkpoints are being read" };
  const lags = active.dispatcher.status().map(({ lagSeconds }) => lagSeconds);
  const oldestEventSeconds = Math.max(0, ...lags);
  return { state: "running", ...(unwritten !== undefined && { reason: unwritten }), oldestEventSeconds };
}

function describeOther(owner: string, damage: string | undefined): SlotState {
  if (owner === "")
    return { state: "free", reason: "it has no owner yet, or its owner is dead: a replica takes it at the next check" };
  return damage === undefined
    ? { state: "elsewhere", reason: `${owner} has it` }
    : { state: "damaged", reason: damage };
}
