import { runtimeAccount } from "../../access/account.ts";
import { pause } from "../../base/clock.ts";
import { asWatchfireError, WatchfireError } from "../../base/errors.ts";
import { accountLabel } from "../../catalog/names.ts";
import type { Publication, StatusPublisher } from "../../control/function-status/status-publisher.ts";
import type { Pause } from "../../control/pauses.ts";
import { BodyRoom } from "../../engine/commit/deferred-rows.ts";
import { Budget, heapQuarter } from "../../engine/work/budget.ts";
import type { Nats } from "../../journal/nats/connection.ts";
import { leaseApi } from "../../lease/lease-api.ts";
import { FleetEntry } from "../../migrate/into-fleet.ts";
import { type JournalLocation, readPlace } from "../../migrate/journal-location.ts";
import { connectNats } from "../../migrate/open-nats.ts";
import { untilReached } from "../../migrate/until-reached.ts";
import type { ControlApi } from "../../observe/control-api.ts";
import { type Endpoints, serveEndpoints } from "../../observe/endpoints.ts";
import type { ExplainQuestion, Explanation } from "../../observe/explanation.ts";
import { keepToken } from "../../observe/token-file.ts";
import type { HostedState } from "../../sandbox/host/hosted-function.ts";
import { fleetLeases } from "../../slots/fleet-leases.ts";
import type { HeldSlot } from "../../slots/held-slot.ts";
import { Membership } from "../../slots/membership.ts";
import { SlotOwner } from "../../slots/slot-owner.ts";
import {
  type ActiveComponents,
  type Candidate,
  type Components,
  closeComponents,
  makeComponents,
  type RuntimeOptions,
  showStates,
} from "../components.ts";
import { functionDesk, noSuchFunction } from "../control-api.ts";
import { DataDirLock } from "../data-dir-lock.ts";
import { explainFunction } from "../explain-function.ts";
import { keptStatus } from "../kept-status.ts";
import { type OfferedFunctions, offeredFunctions } from "../offered-functions.ts";
import { isSettled, unsettledBy } from "../readiness.ts";
import { recogniseCluster } from "../recognise-cluster.ts";
import { describeStandings, describeStatus, type Status, type StatusParts } from "../status.ts";
import { Catalogue } from "./catalogue.ts";
import { damageOn } from "./damaged-slots.ts";
import { describeFleet } from "./describe-fleet.ts";
import { explainShards } from "./explain-shards.ts";
import { fleetLetters } from "./fleet-letters.ts";
import { fleetPublication } from "./fleet-publication.ts";
import { type FleetFacts, KeptLease } from "./kept-lease.ts";
import { mergedStatus, withStill, worstShards } from "./merged-status.ts";
import { Reloads } from "./reloads.ts";
import { Shardings } from "./shardings.ts";
import { SlotRun } from "./slot-run.ts";
import { whereabouts } from "./whereabouts.ts";

/** How often `untilReady` looks, in milliseconds: at first often, then ever less. */
const readyPollMs = { from: 5, to: 1_000 };

/** What a replica of a fleet is started with. */
export interface FleetOptions extends RuntimeOptions {
  readonly slots: number;
  readonly election: Candidate;
}

const notJoined = "it has not joined the fleet yet";

/** One replica of a fleet: it runs the functions of the slots that it has, and shares sources, executors and endpoints among them. */
export class FleetReplica {
  /** Resolves with the reason why it cannot go on. */
  readonly lost: Promise<WatchfireError>;
  private readonly options: FleetOptions;
  private readonly components: Components;
  private readonly residence: DataDirLock;
  private readonly losing = Promise.withResolvers<WatchfireError>();
  /** The runtime's, which says where its positions are. */
  private readonly lease: KeptLease;
  private readonly membership: Membership;
  private readonly slots: SlotOwner;
  private readonly offered: OfferedFunctions;
  private readonly spreads: Shardings;
  private readonly catalogue: Catalogue;
  private readonly reloads: Reloads;
  private readonly desk: ControlApi;
  private readonly publisher: StatusPublisher | undefined;
  private readonly runs = new Map<number, SlotRun>();
  /** Aborts when nothing more is to be begun. */
  private readonly stopping = new AbortController();
  private joining: Promise<void> = Promise.resolve();
  private connection: Nats | undefined;
  private cluster: string | undefined;
  private entry: FleetEntry | undefined;
  private place: JournalLocation | undefined;
  private endpoints: Endpoints | undefined;
  /** Why it takes no slots yet. */
  private delay: string | undefined = notJoined;
  private caughtUp = false;

  private constructor(options: FleetOptions, components: Components) {
    // Slots share what one runtime alone has.
    const quarter = heapQuarter();
    this.options = {
      ...options,
      memory: new Budget(() => quarter),
      bodyRoom: new BodyRoom(),
    };
    this.components = components;
    this.residence = new DataDirLock(options.data);
    this.lost = this.losing.promise;
    const { elector } = components;
    if (!elector) throw new TypeError("a fleet's replica has a Lease of its own");
    void elector.lost.then(this.losing.resolve);
    const { transport, namespace, account = runtimeAccount, election, slots, clock, random, log } = options;
    this.membership = new Membership(elector, election.identity);
    this.slots = new SlotOwner({
      leases: fleetLeases(transport, { namespace, account, label: accountLabel(account) }),
      membership: this.membership,
      slots,
      clock,
      random,
      log,
      begin: (held) => this.begin(held),
      onLost: this.losing.resolve,
    });
    this.offered = offeredFunctions(options, components, () => void this.reloads.again(this.stopping.signal));
    this.lease = new KeptLease(leaseApi(transport, namespace, account), () => this.facts, log);
    const spreads = new Shardings(this.lease, log);
    this.spreads = spreads;
    this.catalogue = new Catalogue(this.offered.source, slots, spreads);
    this.reloads = new Reloads({
      catalogue: this.catalogue,
      spreads,
      runs: () => [...this.runs.values()],
      isHere: (name) => this.runsOf(name).some(({ damage }) => !damage),
      isStuck: (name) => this.isStuck(name),
      clock,
      log,
    });
    components.metrics.leader(() => this.isActive);
    const merged = {
      dispatcher: { status: () => mergedStatus(this.active.flatMap(({ dispatcher }) => dispatcher.status())) },
      pauses: { of: (name: string) => this.paused(name) },
    };
    showStates(
      components,
      () => [merged],
      () => [...withStill([], this.still), ...describeStandings(this.activeParts)],
    );
    this.desk = functionDesk({
      known: () => this.catalogue.names,
      acting: (name) => {
        return this.acting(name).map(({ active, live }) => ({ ...active, live: (of: string) => live.get(of) }));
      },
      elsewhere: (name) => this.elsewhere(name),
      recorder: components.recorder,
      redactor: components.redactor,
      functionLog: options.functionLog,
      transport,
      clock,
      log,
    });
    this.publisher = keptStatus(options, elector, () => this.publication());
  }

  /** Serves its endpoints, and joins the fleet beside them. @throws WatchfireError when the address or the data folder is taken */
  static async start(options: FleetOptions, signal: AbortSignal): Promise<FleetReplica> {
    const replica = new FleetReplica(options, await makeComponents(options));
    try {
      signal.throwIfAborted();
      replica.residence.asReplica();
      await replica.serve();
      replica.joining = replica.join(AbortSignal.any([signal, replica.stopping.signal]));
      return replica;
    } catch (error) {
      await replica.endpoints?.close();
      replica.residence.end();
      await closeComponents(replica.components, false);
      throw error;
    }
  }

  /** Where the endpoints are. */
  get url(): string {
    return this.endpoints?.url ?? "";
  }

  /**
   * True once it has joined, and every function of its slots that can run has caught up with its first list. A slot that
   * stands still holds it up where it has no other.
   */
  get ready(): boolean {
    if (!this.caughtUp && !this.damage && this.slots.complete && this.reloads.isAgreed) {
      const runs = [...this.runs.values()];
      this.caughtUp =
        runs.every(({ damage, live }) => damage !== undefined || live.loaded) && isSettled(this.statusParts);
    }
    return this.caughtUp && this.obstacle === undefined;
  }

  /** Resolves when it is ready. */
  async untilReady(signal: AbortSignal): Promise<void> {
    for (let delayMs = readyPollMs.from; !this.ready; delayMs = Math.min(delayMs * 1.05, readyPollMs.to)) {
      await pause(this.options.clock, delayMs, signal);
    }
  }

  /** Its own functions, and who has which slot. */
  status(): Status {
    const { slots, options, catalogue, runs, membership } = this;
    const unwritten = membership.unwritten ?? this.spreads.unwritten;
    const obstacle = this.waitsFor ?? slots.trouble ?? unwritten?.message;
    const { identity } = options.election;
    const fleet = describeFleet(identity, options.slots, slots.fleet, runs, catalogue, obstacle);
    const { functions, ...rest } = describeStatus(this.activeParts);
    return { ...rest, functions: withStill(worstShards(functions), this.still), fleet };
  }

  /** Takes no slot any more, lets handlers finish, saves, lets go of each slot, and leaves the fleet. */
  async drain(): Promise<void> {
    const { log } = this.options;
    log.info({}, "draining");
    this.stopping.abort();
    await this.joining;
    await this.publisher?.close();
    // Nobody is to count on it from now on.
    await this.membership.retire().catch(() => undefined);
    await this.slots.drain();
    await this.close();
    await this.membership.leave();
    log.info({}, "drained");
  }

  /** Stops at once: what runs is interrupted, nothing more is saved, and all of it comes again. */
  async halt(): Promise<void> {
    this.stopping.abort();
    for (const run of this.runs.values()) run.halt();
    await this.slots.halt();
    for (const run of this.runs.values()) run.halt();
    await this.publisher?.close();
    await this.close();
    await this.membership.leave();
  }

  private async close(): Promise<void> {
    this.offered.code?.close();
    await this.endpoints?.close();
    this.residence.end();
    await closeComponents(this.components, false);
    await this.connection?.close();
  }

  /** Of the slots whose positions are open. */
  private get active(): ActiveComponents[] {
    return [...this.runs.values()].flatMap(({ active }) => active ?? []);
  }

  private get isActive(): boolean {
    return this.membership.holds && this.active.length > 0;
  }

  /** What the runtime's Lease has to say, as long as nobody can have carried positions away. */
  private get facts(): FleetFacts | undefined {
    const { membership, place, spreads } = this;
    return membership.holds && place ? { place, spreads: spreads.all } : undefined;
  }

  /** Why the positions of a slot cannot be saved at present. */
  private get unsaved(): WatchfireError | undefined {
    return this.active.flatMap(({ dispatcher, store }) => dispatcher.trouble ?? store.trouble ?? [])[0];
  }

  /** Why it can run nothing at present. */
  private get obstacle(): WatchfireError | undefined {
    const stores = this.active.map(({ store }) => store.trouble);
    return this.components.executors.trouble() ?? stores.find((trouble) => trouble !== undefined) ?? this.damage;
  }

  /** Whether a function's first slot stands still, whoever has it. */
  private isStuck(name: string): boolean {
    const [slot = 0] = this.catalogue.slotsOf(name);
    return (this.runs.get(slot)?.damage ?? damageOn(this.slots.fleet?.slots[slot]?.annotations)) !== undefined;
  }

  /** By function, why a slot of it that is here stands still. */
  private get still(): ReadonlyMap<string, WatchfireError> {
    const { names } = this.catalogue;
    const faults = names.map((name) => [name, this.runsOf(name).find(({ damage }) => damage)?.damage] as const);
    return new Map(faults.flatMap(([name, fault]) => (fault ? [[name, fault]] : [])));
  }

  /** Why it is not ready, in words. */
  private get unready(): string | undefined {
    const why = this.obstacle?.message ?? this.waitsFor;
    if (why !== undefined || this.caughtUp) return why;
    if (!this.slots.complete || !this.reloads.isAgreed) return this.slots.trouble ?? "its slots are being taken";
    const loaded = [...this.runs.values()].every(({ damage, live }) => damage !== undefined || live.loaded);
    return loaded ? unsettledBy(this.statusParts) : "the functions of its slots are being read";
  }

  /** Where all slots that are here stand still, why the first does. */
  private get damage(): WatchfireError | undefined {
    const damages = [...this.runs.values()].map(({ damage }) => damage);
    return damages.includes(undefined) ? undefined : damages[0];
  }

  /** Why it takes no slots. */
  private get waitsFor(): string | undefined {
    const { entry, delay, membership, components } = this;
    const why = membership.unwritten?.message ?? components.elector?.standing?.obstacle;
    return entry?.why?.message ?? (delay && (why ?? delay));
  }

  private get statusParts() {
    const { watches, redactor, executors, reads } = this.components;
    const runs = [...this.runs.values()];
    return {
      liveFunctions: runs.flatMap(({ live }) => live.all).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      rejected: runs.flatMap(({ live }) => live.rejected),
      sandbox: (name: string) => this.worstInstance(name),
      executors: { rights: executors.rights(), trouble: executors.trouble(), memoryLimit: executors.memoryLimit() },
      sources: watches.status(),
      reads: (name: string) => reads.of(name),
      deployment: this.offered.source.trouble,
      redact: (name: string, text: string) => redactor.redact(name, text),
      paused: (name: string) => this.paused(name),
      forbidden: (name: string) => this.runsOf(name).flatMap(({ active }) => active?.grants?.fault(name) ?? [])[0],
    };
  }

  private get activeParts(): StatusParts {
    const { active } = this;
    return {
      ...this.statusParts,
      role: this.isActive ? "active" : "standby",
      dispatch: mergedStatus(active.flatMap(({ dispatcher }) => dispatcher.status())),
      checkpoint: active.map(({ dispatcher }) => dispatcher.trouble).find((trouble) => trouble !== undefined),
    };
  }

  /** Of the slots that a function is in, those that are here, that of its first shard first. */
  private runsOf(name: string): SlotRun[] {
    return this.catalogue.slotsOf(name).flatMap((slot) => this.runs.get(slot) ?? []);
  }

  private paused(name: string): Pause | undefined {
    for (const run of this.runsOf(name)) {
      const pause = run.active?.pauses.of(name);
      if (pause) return pause;
    }
    return undefined;
  }

  /** How the instances of a function are that are here: the first that is not ready stands for all. */
  private worstInstance(name: string): HostedState | undefined {
    const { sandbox } = this.components;
    const states = this.runsOf(name).flatMap(({ live }) => sandbox.status(live.get(name)?.instance ?? name) ?? []);
    return states.find(({ state }) => state !== "ready") ?? states[0];
  }

  /** @throws WatchfireError WF_RUNTIME_NO_FUNCTION; WF_LEASE_STANDBY where other replicas have all of the function */
  private acting(name: string): { readonly active: ActiveComponents; readonly live: SlotRun["live"] }[] {
    const { names } = this.catalogue;
    if (!names.includes(name)) throw noSuchFunction(name, names);
    const runs = this.runsOf(name);
    const here = runs.flatMap(({ active, held, live }) => (active && held.holds ? [{ active, live }] : []));
    if (here.length > 0) return here;
    throw new WatchfireError("WF_LEASE_STANDBY", {
      what: `the function's ${this.elsewhere(name)}`,
      hint:
        runs.length > 0
          ? "ask again in a moment; `watchfire slots` says how its slots stand"
          : "ask that replica: its name begins with that of its host, which is its pod's",
    });
  }

  /** Where the shards of a function are that are not here; undefined where all are. */
  private elsewhere(name: string): string | undefined {
    const { runs } = this;
    const isAtWork = (slot: number) => runs.get(slot)?.active !== undefined && runs.get(slot)?.held.holds;
    const others = this.catalogue.slotsOf(name).filter((slot) => !isAtWork(slot));
    return whereabouts(others, runs, this.slots.fleet?.owners);
  }

  private async serve(): Promise<void> {
    const { listen, data } = this.options;
    const letters = fleetLetters(
      () => new Map([...this.runs].flatMap(([slot, { active }]) => (active ? [[slot, active.deadLetters]] : []))),
      (slot) => (slot < this.options.slots ? whereabouts([slot], this.runs, this.slots.fleet?.owners) : undefined),
    );
    const inspection = {
      live: () => true,
      ready: () => this.ready && !this.stopping.signal.aborted,
      obstacle: () => (this.stopping.signal.aborted ? "it drains" : this.unready),
      unsaved: () => this.unsaved,
      status: () => this.status(),
      metrics: () => this.components.metrics.text(),
      token: keepToken(data),
      deadLetters: () => letters,
      explain: (question: ExplainQuestion) => this.explain(question),
      functions: this.desk,
      clock: this.options.clock,
    };
    this.endpoints = await serveEndpoints(listen.host, listen.port, inspection, listen.spare);
    this.components.endpoints.port = this.endpoints.port;
    this.residence.announce(this.url);
  }

  private async explain(question: ExplainQuestion): Promise<Explanation> {
    const { functions } = this.status();
    const here = this.acting(question.function);
    return explainShards(
      await Promise.all(
        here.map(({ active, live }) => {
          return explainFunction(active, live.get(question.function), functions, question, this.options);
        }),
      ),
      this.elsewhere(question.function),
    );
  }

  /** Makes sure that it is this fleet's and this cluster's, and takes slots from then on. Never rejects. */
  private async join(signal: AbortSignal): Promise<void> {
    const { options, slots, membership } = this;
    const { clock, log } = options;
    const waiting = (why: string | undefined) => {
      this.delay = why ?? notJoined;
    };
    const patient = { clock, log, waiting };
    try {
      const cluster = await recogniseCluster(options, signal, waiting);
      this.cluster = cluster;
      await this.enter(signal);
      this.connection = await untilReached(patient, signal, () => connectNats({ ...options, cluster }));
      await this.reloads.first(signal, waiting);
      await membership.join(signal);
      this.delay = undefined;
      this.residence.takeOver(this.url);
      log.info({ replica: membership.owner, slots: options.slots }, "joined the fleet");
      slots.start();
      this.publisher?.start();
      void this.reloads.agree(this.stopping.signal);
      void this.lease.keep(clock, this.stopping.signal);
    } catch (error) {
      if (!signal.aborted) this.losing.resolve(asWatchfireError(error));
    }
  }

  private publication(): Publication {
    const { catalogue, runs, membership, slots } = this;
    const { functions: reports } = this.status();
    const { owner = "" } = membership;
    return fleetPublication({ owner, owners: slots.fleet?.owners ?? [], reports, runs, catalogue });
  }

  /** Waits until the positions are this fleet's, and carries them over where this replica reaches them. */
  private async enter(signal: AbortSignal): Promise<void> {
    const { cluster, options } = this;
    const manifests = async () => (await this.offered.source.read(signal)).functions.map(({ manifest }) => manifest);
    const entry = new FleetEntry({ ...options, ...options.election, cluster, manifests });
    this.entry = entry;
    this.place = await entry.enter(signal);
    this.entry = undefined;
  }

  private begin(held: HeldSlot): SlotRun {
    const { options, components, catalogue, connection, cluster, place } = this;
    if (!connection || !place) throw new TypeError("a slot was taken before the fleet was joined");
    const { slots } = options;
    const onLost = this.losing.resolve;
    const over = (ended: SlotRun) => {
      if (this.runs.get(held.slot) === ended) this.runs.delete(held.slot);
    };
    const parts = {
      ...{ options, components, catalogue, connection, slots, place, cluster, onLost, over },
      readPlace: () => readPlace(this.lease),
    };
    const run = new SlotRun(parts, held);
    this.runs.set(held.slot, run);
    return run;
  }
}
