import { runtimeAccount } from "../../access/account.ts";
import { accountLabel } from "../../catalog/names.ts";
import type { Nats } from "../../checkpoint/jetstream-connection.ts";
import { pause } from "../../clock.ts";
import { Budget, heapQuarter } from "../../dispatch/queue/budget.ts";
import { asWatchfireError, WatchfireError } from "../../errors.ts";
import { fleetLeases } from "../../fleet/fleet-leases.ts";
import type { HeldSlot } from "../../fleet/held-slot.ts";
import { Membership } from "../../fleet/membership.ts";
import { slotOf } from "../../fleet/rendezvous.ts";
import { Slots } from "../../fleet/slots.ts";
import { leaseApi } from "../../lease/lease-api.ts";
import { leaveAddress } from "../../observe/address-file.ts";
import { type Endpoints, serveEndpoints } from "../../observe/endpoints.ts";
import type { Question } from "../../observe/explanation.ts";
import type { FunctionDesk } from "../../observe/function-desk.ts";
import { keepToken } from "../../observe/token-file.ts";
import {
  type ActiveComponents,
  type Candidate,
  type Components,
  closeComponents,
  makeComponents,
  type RuntimeOptions,
  showStates,
} from "../components.ts";
import { explainFunction } from "../explain-function.ts";
import { functionDesk, noSuchFunction } from "../function-desk.ts";
import { type OfferedFunctions, offeredFunctions } from "../offered-functions.ts";
import { connectNats } from "../open-nats.ts";
import { untilReached } from "../open-store.ts";
import { isSettled } from "../readiness.ts";
import { recogniseCluster } from "../recognise-cluster.ts";
import { describeStatus, type Status } from "../status.ts";
import { Catalogue } from "./catalogue.ts";
import { claimFleet } from "./claim-fleet.ts";
import { describeFleet } from "./describe-fleet.ts";
import { fleetLetters } from "./fleet-letters.ts";
import { SlotRun } from "./slot-run.ts";

/** How often `untilReady` looks, in milliseconds: at first often, then ever less. */
const readyPollMs = { from: 5, to: 1_000 };

/** What a replica of a fleet is started with. */
export interface FleetOptions extends RuntimeOptions {
  readonly slots: number;
  readonly election: Candidate;
}

/** One replica of a fleet: it runs the functions of the slots that it has, and shares sources, executors and endpoints among them. */
export class FleetReplica {
  /** Resolves with the reason why it cannot go on. */
  readonly lost: Promise<WatchfireError>;
  private readonly options: FleetOptions;
  private readonly components: Components;
  private readonly losing = Promise.withResolvers<WatchfireError>();
  private readonly membership: Membership;
  private readonly slots: Slots;
  private readonly offered: OfferedFunctions;
  private readonly catalogue: Catalogue;
  private readonly desk: FunctionDesk;
  private readonly runs = new Map<number, SlotRun>();
  /** Aborts when nothing more is to be begun. */
  private readonly stopping = new AbortController();
  private joining: Promise<void> = Promise.resolve();
  private reloading: Promise<void> = Promise.resolve();
  private connection: Nats | undefined;
  private cluster: string | undefined;
  private endpoints: Endpoints | undefined;
  /** Why it takes no slots yet. */
  private delay: string | undefined = "it has not joined the fleet yet";
  private caughtUp = false;

  private constructor(options: FleetOptions, components: Components) {
    // Slots share what one runtime alone has.
    const quarter = heapQuarter();
    this.options = { ...options, memory: new Budget(() => quarter) };
    this.components = components;
    this.lost = this.losing.promise;
    const { elector } = components;
    if (!elector) throw new TypeError("a fleet's replica has a Lease of its own");
    void elector.lost.then(this.losing.resolve);
    const { transport, namespace, account = runtimeAccount, election, slots, clock, random, log } = options;
    this.membership = new Membership(elector, election.identity);
    this.slots = new Slots({
      leases: fleetLeases(transport, { namespace, account, label: accountLabel(account) }),
      membership: this.membership,
      slots,
      clock,
      random,
      log,
      begin: (held) => this.begin(held),
      onLost: this.losing.resolve,
    });
    this.offered = offeredFunctions(options, components, () => void this.reload());
    this.catalogue = new Catalogue(this.offered.source, slots);
    components.metrics.leader(() => this.isActive);
    showStates(components, () => this.active);
    this.desk = functionDesk({
      known: () => this.catalogue.names,
      acting: (name) => this.acting(name),
      live: (name) => this.runOf(name)?.live.get(name),
      recorder: components.recorder,
      redactor: components.redactor,
      functionLog: options.functionLog,
      transport,
      clock,
      log,
    });
  }

  /** Serves its endpoints, and joins the fleet beside them. @throws WatchfireError when the address is taken */
  static async start(options: FleetOptions, signal: AbortSignal): Promise<FleetReplica> {
    const replica = new FleetReplica(options, await makeComponents(options));
    try {
      signal.throwIfAborted();
      await replica.serve();
      replica.joining = replica.join(AbortSignal.any([signal, replica.stopping.signal]));
      return replica;
    } catch (error) {
      await replica.endpoints?.close();
      await closeComponents(replica.components, false);
      throw error;
    }
  }

  /** Where the endpoints are. */
  get url(): string {
    return this.endpoints?.url ?? "";
  }

  /** True once it has joined, and every function of its slots that can run has caught up with its first list. */
  get ready(): boolean {
    if (!this.caughtUp && this.slots.complete) {
      const runs = [...this.runs.values()];
      this.caughtUp = runs.every(({ live }) => live.loaded) && isSettled(this.statusParts);
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
    const { active, slots, options, catalogue, runs } = this;
    const obstacle = this.delay ?? slots.trouble;
    const parts = {
      ...this.statusParts,
      role: this.isActive ? ("active" as const) : ("standby" as const),
      dispatch: active.flatMap(({ dispatcher }) => dispatcher.status()),
      checkpoint: active.map(({ dispatcher }) => dispatcher.trouble).find((trouble) => trouble !== undefined),
    };
    const { identity } = options.election;
    const fleet = describeFleet(identity, options.slots, slots.fleet, runs, catalogue.names, obstacle);
    return { ...describeStatus(parts), fleet };
  }

  /** Takes no slot any more, lets handlers finish, saves, lets go of each slot, and leaves the fleet. */
  async drain(): Promise<void> {
    const { log } = this.options;
    log.info({}, "draining");
    this.stopping.abort();
    await this.joining;
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
    await this.close();
    await this.membership.leave();
  }

  private async close(): Promise<void> {
    this.offered.code?.close();
    await this.endpoints?.close();
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

  /** Why it can run nothing at present. */
  private get obstacle(): WatchfireError | undefined {
    const stores = this.active.map(({ store }) => store.trouble);
    return this.components.executors.trouble() ?? stores.find((trouble) => trouble !== undefined);
  }

  private get statusParts() {
    const { sandbox, watches, redactor, executors, reads } = this.components;
    const runs = [...this.runs.values()];
    return {
      liveFunctions: runs.flatMap(({ live }) => live.all),
      rejected: runs.flatMap(({ live }) => live.rejected),
      sandbox: (name: string) => sandbox.status(name),
      executors: { rights: executors.rights(), trouble: executors.trouble() },
      sources: watches.status(),
      reads: (name: string) => reads.of(name),
      deployment: this.offered.source.trouble,
      redact: (name: string, text: string) => redactor.redact(name, text),
      paused: (name: string) => this.runOf(name)?.active?.pauses.of(name),
      forbidden: (name: string) => this.runOf(name)?.active?.grants?.fault(name),
    };
  }

  private runOf(name: string): SlotRun | undefined {
    return this.runs.get(slotOf(name, this.options.slots));
  }

  /** @throws WatchfireError WF_RUNTIME_NO_FUNCTION; WF_LEASE_STANDBY where another replica has the function */
  private acting(name: string): ActiveComponents {
    const { names } = this.catalogue;
    if (!names.includes(name)) throw noSuchFunction(name, names);
    const run = this.runOf(name);
    if (run?.active && run.held.holds) return run.active;
    const slot = slotOf(name, this.options.slots);
    const owner = this.slots.fleet?.owners[slot]?.replace(/#\d+$/, "") ?? "nobody yet";
    throw new WatchfireError("WF_LEASE_STANDBY", { what: `the function's slot ${slot} is with ${owner}` });
  }

  private async serve(): Promise<void> {
    const { listen, data } = this.options;
    const letters = fleetLetters(
      () => new Map([...this.runs].flatMap(([slot, { active }]) => (active ? [[slot, active.deadLetters]] : []))),
    );
    const inspection = {
      live: () => true,
      ready: () => this.ready && !this.stopping.signal.aborted,
      obstacle: () => this.obstacle?.message ?? this.delay,
      status: () => this.status(),
      metrics: () => this.components.metrics.text(),
      token: keepToken(data),
      deadLetters: () => letters,
      explain: async (question: Question) => {
        const active = this.acting(question.function);
        const live = this.runOf(question.function)?.live.get(question.function);
        return explainFunction(active, live, this.status().functions, question, this.options);
      },
      functions: this.desk,
    };
    this.endpoints = await serveEndpoints(listen.host, listen.port, inspection, listen.spare);
    this.components.endpoints.port = this.endpoints.port;
    leaveAddress(data, this.endpoints.url);
  }

  /** Makes sure that it is this fleet's and this cluster's, and takes slots from then on. Never rejects. */
  private async join(signal: AbortSignal): Promise<void> {
    const { options, slots, membership } = this;
    const { transport, namespace, account = runtimeAccount, clock, log, data } = options;
    const waiting = (why: string | undefined) => {
      this.delay = why ?? this.delay;
    };
    const patient = { clock, log, waiting };
    try {
      const lease = leaseApi(transport, namespace, account);
      await untilReached(patient, signal, () => claimFleet(lease, options.slots, data));
      this.cluster = await recogniseCluster(options, signal);
      this.connection = await untilReached(patient, signal, () => connectNats(options));
      this.reloading = this.catalogue.read(signal);
      await this.reloading;
      await membership.join(signal);
      this.delay = undefined;
      log.info({ replica: membership.owner, slots: options.slots }, "joined the fleet");
      slots.start();
    } catch (error) {
      if (!signal.aborted) this.losing.resolve(asWatchfireError(error));
    }
  }

  private begin(held: HeldSlot): SlotRun {
    const { options, components, catalogue, connection, cluster } = this;
    if (!connection) throw new TypeError("a slot was taken before the fleet was joined");
    const { slots } = options;
    const onLost = this.losing.resolve;
    const over = (ended: SlotRun) => {
      if (this.runs.get(held.slot) === ended) this.runs.delete(held.slot);
    };
    const run = new SlotRun({ options, components, catalogue, connection, slots, cluster, onLost, over }, held);
    this.runs.set(held.slot, run);
    return run;
  }

  /** Reads the functions again, for all slots. Never rejects. */
  private reload(): Promise<void> {
    this.reloading = this.reloading
      .then(() => this.catalogue.read(this.stopping.signal))
      .then(async () => {
        await Promise.all([...this.runs.values()].map((run) => run.reload()));
      })
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.options.log.error({ error: String(error) }, "reload failed");
      });
    return this.reloading;
  }
}
