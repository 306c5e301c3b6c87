import { OwnObjects } from "../../../runtime/access/own-objects.ts";
import { Redactor } from "../../../runtime/access/redactor.ts";
import { Pauses } from "../../../runtime/control/pauses.ts";
import type { Delivery, Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../../runtime/engine/dispatcher.ts";
import { Assignees } from "../../../runtime/host/components.ts";
import { LiveFunction } from "../../../runtime/host/live-function.ts";
import { WatchRoom } from "../../../runtime/host/watch-room.ts";
import { silentObserver } from "../../../runtime/informer/fanout/observer.ts";
import { Informers } from "../../../runtime/informer/informers.ts";
import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { DeadLetters } from "../../../runtime/journal/dead-letters.ts";
import { Discovery } from "../../../runtime/kube/discovery.ts";
import type { Logger } from "../../../runtime/observe/log.ts";
import { ModelExecutor } from "../../engine/model-executor.ts";
import { settle, VirtualClock } from "../../virtual-clock.ts";
import { Dice } from "../random.ts";
import { ApiServer, type Manners } from "./api-server.ts";
import { namespaces as allNamespaces, Cluster, keyOf } from "./cluster.ts";
import { DataFolder, type Disk, InSecrets, mortal } from "./disk.ts";
import { historyLaw } from "./history-law.ts";
import { FunctionLaws } from "./laws.ts";
import { type Plan, planOf } from "./plan.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };

interface Member {
  readonly plan: Plan;
  readonly laws: FunctionLaws;
  /** The time since when its function is ready, in monotonic milliseconds. */
  readySince?: number | undefined;
}

interface Process {
  readonly server: ApiServer;
  readonly store: Checkpoint;
  readonly dispatcher: Dispatcher;
  readonly pauses: Pauses;
  readonly watches: Informers;
  readonly deadLetters: DeadLetters;
  readonly liveFunctions: Map<string, LiveFunction>;
}

/** Runs a seed's fleet from its first change until it is quiet. Returns the laws that were broken. */
export async function runFleet(seed: number): Promise<{ broken: readonly string[]; deliveries: number }> {
  const fleet = new Fleet(new Dice(seed));
  try {
    await fleet.live();
    return { broken: fleet.broken, deliveries: fleet.deliveries };
  } finally {
    fleet.remove();
  }
}

/**
 * Several functions on shared sources, end to end: the real watches, dispatcher and store with a simulated API server and a
 * virtual clock. Only the handlers are simulated.
 */
class Fleet {
  private readonly dice: Dice;
  private readonly clock = new VirtualClock();
  private readonly cluster: Cluster;
  private readonly disk: Disk;
  private readonly manners: Manners;
  private readonly compacts: boolean;
  private readonly restores: boolean;
  private readonly losesPower: boolean;
  private readonly memoryEvents: number;
  private readonly members: Member[] = [];
  private readonly past = { compacted: false, restored: false, draining: false };
  private readonly brokenHistory: string[] = [];
  private process!: Process;
  private incarnation = 0;
  private calm = false;
  /** True while handlers of the stuck objects fail. */
  private stuck = false;

  constructor(dice: Dice) {
    this.dice = dice;
    this.cluster = new Cluster(dice);
    this.disk = dice.chance(0.3) ? new InSecrets() : new DataFolder();
    this.manners = {
      watchList: dice.chance(0.6),
      pageSize: 1 + dice.below(4),
      faults: dice.chance(0.7),
      namesOldest: dice.chance(0.6),
      refusesOldLists: dice.chance(0.1),
    };
    this.cluster.served = dice.chance(0.9);
    this.cluster.deletesAsItWas = dice.chance(0.1);
    this.compacts = dice.chance(0.5);
    this.restores = dice.chance(0.15);
    this.losesPower = dice.chance(0.4);
    this.memoryEvents = dice.pick([2, 4, 1000]);
    // A subscription that catches up next to another one may miss a deletion that such an API shows at the same moment.
    const most = this.cluster.deletesAsItWas ? 1 : 3;
    for (let count = 1 + dice.below(most); count > 0; count--) {
      const plan = planOf(`f${count}`, dice);
      this.members.push({ plan, laws: new FunctionLaws(plan, this.cluster, this.past) });
    }
  }

  get broken(): readonly string[] {
    return [...this.brokenHistory, ...this.members.flatMap(({ laws }) => laws.broken)];
  }

  get deliveries(): number {
    return this.members.reduce((sum, { laws }) => sum + laws.deliveries, 0);
  }

  remove(): void {
    this.disk.remove();
  }

  async live(): Promise<void> {
    const { dice, cluster } = this;
    for (let changes = dice.below(8); changes > 0; changes--) cluster.change();
    await this.start();
    for (let steps = 40 + dice.below(60); steps > 0; steps--) {
      for (let changes = dice.below(3); changes > 0; changes--) cluster.change();
      await this.event();
      this.process.server.step();
      if (dice.chance(0.6)) await settle();
      if (dice.chance(0.4)) await this.clock.advance(dice.pick([0, 1, 300, 1_000, 5_000, 40_000]));
      this.observe();
      this.stuck ||= dice.chance(0.02);
      this.cluster.served ||= dice.chance(0.05);
    }
    // Revisions that a restore undid at the end are not overwritten by later changes.
    if (this.restores && dice.chance(0.5)) await this.restore();
    this.calm = true;
    this.cluster.served = true;
    await this.checkOthersThanStuck();
    await this.settleDown();
    for (const { laws } of this.members) laws.checkEnd();
    await this.end();
  }

  /**
   * If a handler is stuck, checks that everything else is delivered meanwhile. The Secrets store has no room for spilled events:
   * a
   * function that is stuck there waits.
   */
  private async checkOthersThanStuck(): Promise<void> {
    if (!this.stuck || this.members.every(({ plan }) => plan.stuck === undefined)) return;
    await this.bringAll();
    await this.quiet();
    for (const { plan, laws } of this.members) {
      if (plan.stuck === undefined || this.disk.holdsQueues) laws.checkEnd(plan.stuck);
    }
    this.stuck = false;
    await this.clock.advance(stuckMs);
  }

  /** Makes a random event happen to the cluster or to the runtime. */
  private async event(): Promise<void> {
    this.observe();
    const { dice } = this;
    const roll = dice.next();
    if (this.compacts && roll < 0.05) this.compact();
    else if (roll < 0.08) await this.kill(this.losesPower && dice.chance(0.5));
    else if (roll < 0.1) await this.restart();
    else if (roll < 0.14) await this.removeOrBring();
    else if (roll < 0.16) await this.replay();
    else if (roll < 0.17) this.process.server.disconnect();
    else if (this.restores && roll < 0.19) await this.restore();
  }

  /**
   * Compacts the history. Everything in the streams was sent before, so a client that is disconnected now has lost history.
   */
  private compact(): void {
    this.process.server.flush();
    this.cluster.compact();
    this.past.compacted = true;
  }

  /**
   * Restores the cluster. With newer resourceVersions, a source that connects later also detects it, from a list. Otherwise
   * nothing is written until every source has detected it: once the cluster has passed the recorded resourceVersions, the restore
   * could not be detected any more. So no source is disconnected or suspended at that moment.
   */
  private async restore(): Promise<void> {
    const { server, dispatcher, liveFunctions } = this.process;
    const bumps = this.dice.chance(0.5);
    const isAway = liveFunctions.size < this.members.length || dispatcher.status().some(({ full }) => full);
    if (isAway && !bumps) return;
    this.past.restored = true;
    server.down = true;
    server.disconnect();
    await settle();
    const backup = this.cluster.restore(bumps);
    for (const { laws } of this.members) laws.timeWentBack(backup);
    await this.clock.advance(5_000);
    server.down = false;
    if (!bumps) await this.quiet();
  }

  private async start(): Promise<void> {
    const { clock, dice } = this;
    const incarnation = this.incarnation;
    const isDead = () => incarnation !== this.incarnation;
    const server = new ApiServer(this.cluster, this.manners, dice, clock);
    server.calm = this.calm;
    const store = mortal(await this.disk.open(server, clock), isDead);
    const dispatcher = await Dispatcher.open({
      store,
      runner: new ModelExecutor(
        (name) => this.members.find(({ plan }) => plan.manifest.name === name)?.plan.manifest.delivery.concurrency ?? 1,
        (delivery) => this.run(delivery),
      ),
      clock,
      random: dice.next,
      observer: { collapsed: (name) => this.lawsOf(name)?.collapsed() },
      log: silent,
      memoryLimit: { events: this.memoryEvents, bytes: 1 << 20 },
    });
    await this.forgetLostPositions(store);
    const discovery = new Discovery(server, clock);
    const random = dice.next;
    const watches = new Informers({ transport: server, discovery, clock, random, observer: silentObserver });
    const deadLetters = new DeadLetters(store, dispatcher);
    const pauses = await Pauses.open({ store, dispatcher, clock });
    this.process = { server, store, dispatcher, pauses, watches, deadLetters, liveFunctions: new Map() };
    for (const { plan } of this.members) if (incarnation === 0 ? dice.chance(0.7) : true) await this.bring(plan);
  }

  private async forgetLostPositions(store: Checkpoint): Promise<void> {
    for (const { plan, laws } of this.members) {
      const { name } = plan.manifest;
      // A function that was removed continues from its record when it comes back.
      const retired = (await store.retiredViews()).filter((view) => view.function === name);
      const views = [...(await store.views(name)), ...retired];
      const cursors = views.flatMap((view) => view.cursors);
      const { namespaces } = plan.trigger;
      const has = (place: string) => cursors.some((it) => it.namespace === place && it.lowWaterMark !== undefined);
      const isLost = (namespace: string) => !has(namespaces.type === "all" ? "" : namespace);
      const places = namespaces.type === "names" ? namespaces.names : allNamespaces;
      const versions = new Map<string, number>();
      for (const { id } of views) {
        await store.known(id, (_, { uid, resourceVersion, deleted }) => {
          if (!deleted) versions.set(uid, Number(resourceVersion));
        });
      }
      if (places.some(isLost)) laws.begunAnew(isLost, versions);
      const begun = cursors.some(({ initial }) => !initial);
      laws.processBegins((namespace) => {
        const place = namespaces.type === "all" ? "" : namespace;
        return cursors.find((it) => it.namespace === place)?.initial ?? !begun;
      }, store.previousEnd === "power-loss");
      if (store.previousEnd === "power-loss") laws.recordIs(versions);
    }
  }

  private async bring(plan: Plan): Promise<void> {
    const { process, clock } = this;
    const { manifest } = plan;
    const offer = {
      manifest,
      origin: { type: "folder", manifest: manifest.file } as const,
      bundle: async () => ({
        script: "",
        sourceMap: "",
        sourceMapLength: 0,
        hash: "1".repeat(64),
        inputs: [],
        usesOldObject: plan.usesOldObject,
      }),
    };
    const { cluster, past, brokenHistory: broken } = this;
    const foundNoKind = (namespace: string | undefined) => this.lawsOf(manifest.name)?.foundNoKind(namespace);
    const of = { functionName: manifest.name, cluster, past, broken, foundNoKind };
    const watches = historyLaw({ watches: process.watches, ...of });
    const liveFunction = new LiveFunction(offer, {
      dispatcher: process.dispatcher,
      watches: watches as Informers,
      reads: { set() {}, delete() {}, of: () => undefined },
      redactor: new Redactor(),
      manifests: new Map(),
      assignees: new Assignees(),
      watchRoom: new WatchRoom(),
      pauses: process.pauses,
      pausedSets: new Map(),
      grants: undefined,
      sandbox: { load: async () => {}, unload: async () => {}, divide() {}, unite: async () => {} },
      canaryAborted() {},
      store: process.store,
      metrics: { user: { forget: () => {} } },
      transport: process.server,
      namespace: "watchfire",
      own: new OwnObjects({ namespace: "watchfire", account: "watchfire" }),
      clock,
      random: () => 0,
      log: silent as unknown as Logger,
    });
    process.liveFunctions.set(manifest.name, liveFunction);
    await this.patiently(liveFunction.start("start"));
  }

  /** Removes a function, restores it, or adds one late. */
  private async removeOrBring(): Promise<void> {
    const { plan } = this.dice.pick(this.members);
    const { liveFunctions } = this.process;
    const { name } = plan.manifest;
    const here = liveFunctions.get(name);
    if (!here) return this.bring(plan);
    await this.patiently(here.stop({ retire: this.dice.chance(0.5) }));
    liveFunctions.delete(name);
    this.lawsOf(name)?.processEnded();
  }

  private async replay(): Promise<void> {
    const { deadLetters, liveFunctions } = this.process;
    const letters = await deadLetters.list();
    if (letters.length === 0) return;
    const { letter, function: name } = this.dice.pick(letters);
    if (!liveFunctions.has(name)) return;
    this.lawsOf(name)?.replayed();
    await this.patiently(deadLetters.replay([letter]).catch(() => undefined));
  }

  /** Ends the process without draining, alone or with its machine. */
  private async kill(withPower: boolean): Promise<void> {
    const { process, disk } = this;
    this.incarnation++;
    process.server.cut();
    process.dispatcher.halt();
    await settle();
    if (withPower) disk.lostPower(this.dice);
    else disk.killed();
    await this.after(process);
  }

  /** Drains the process. */
  private async restart(): Promise<void> {
    const { process } = this;
    this.past.draining = true;
    const clean = await this.patiently(process.dispatcher.drain(10_000));
    await this.patiently(process.watches.close());
    await this.patiently(process.store.close(clean));
    this.past.draining = false;
    this.incarnation++;
    process.server.cut();
    await this.after(process);
  }

  private async after({ watches }: Process): Promise<void> {
    for (const member of this.members) {
      member.readySince = undefined;
      member.laws.processEnded();
    }
    void watches.close();
    await settle();
    await this.start();
  }

  run(delivery: Delivery): Promise<Outcome> {
    const { dice } = this;
    const incarnation = this.incarnation;
    const { laws, plan } = this.members.find(({ plan }) => plan.manifest.name === delivery.function) ?? {};
    laws?.begins(delivery);
    const isStuck = this.stuck && plan?.stuck === keyOf(delivery.object);
    const outcome = isStuck ? stuck : this.calm ? ok : this.outcome();
    return new Promise((resolve) => {
      const end = () => {
        if (incarnation !== this.incarnation) return;
        laws?.ends(delivery, outcome);
        resolve(outcome);
      };
      if (this.calm || dice.chance(0.5)) end();
      else this.clock.after(dice.pick([1, 100, 6_000, 80_000]), end);
    });
  }

  private outcome(): Outcome {
    const { dice } = this;
    if (dice.chance(0.7)) return ok;
    if (dice.chance(0.5)) return { type: "failed", durationMs: 1, error };
    if (dice.chance(0.4)) return { type: "permanent", durationMs: 1, error };
    if (dice.chance(0.5)) return { type: "failed", durationMs: 1, error, retryAfterMs: dice.below(20_000) };
    return { type: "interrupted" };
  }

  private observe(): void {
    for (const member of this.members) {
      const { plan, laws } = member;
      const liveFunction = this.process.liveFunctions.get(plan.manifest.name);
      const isReady = liveFunction?.state.type === "running" && liveFunction.behind.length === 0;
      member.readySince = isReady ? (member.readySince ?? this.clock.monotonic()) : undefined;
      if (this.clock.monotonic() - (member.readySince ?? Number.POSITIVE_INFINITY) > recordMs) laws.deployed();
      if (!liveFunction || laws.isReady) continue;
      laws.starting();
      if (isReady) laws.ready();
    }
  }

  private lawsOf(name: string): FunctionLaws | undefined {
    return this.members.find(({ plan }) => plan.manifest.name === name)?.laws;
  }

  /** Advances time until the work is done: commits are repeated, handlers end, the server answers. */
  private async patiently<T>(work: Promise<T>): Promise<T> {
    let open = true;
    const done = work.finally(() => {
      open = false;
    });
    done.catch(() => undefined);
    for (let round = 0; open; round++) {
      if (round > 2_000) throw new Error("it does not end");
      this.process?.server.step();
      await this.clock.advance(1_000);
    }
    return done;
  }

  /** Ends all faults for a while, and lets everything be received and handled. */
  private async quiet(): Promise<void> {
    this.process.server.calm = true;
    for (let round = 0; round < 30; round++) {
      this.process.server.flush();
      await this.clock.advance(5_000);
      this.observe();
    }
    this.process.server.calm = this.calm;
  }

  private async bringAll(): Promise<void> {
    const { liveFunctions } = this.process;
    for (const { plan } of this.members) if (!liveFunctions.has(plan.manifest.name)) await this.bring(plan);
  }

  private async settleDown(): Promise<void> {
    const { liveFunctions } = this.process;
    await this.bringAll();
    // A subscription that has no room left may be suspended at this moment.
    for (let round = 0, idle = 0; round < 200 && idle < 2; round++) {
      await this.quiet();
      const status = this.process.dispatcher.status();
      const hasNone = status.every(({ queued, inFlight, spilled, full }) => !full && queued + inFlight + spilled === 0);
      const isIdle = hasNone && [...liveFunctions.values()].every(({ behind }) => behind.length === 0);
      idle = isIdle ? idle + 1 : 0;
    }
  }

  private async end(): Promise<void> {
    const { process } = this;
    this.incarnation++;
    process.server.cut();
    process.dispatcher.halt();
    void process.watches.close();
    await settle();
  }
}

const ok: Outcome = { type: "ok", durationMs: 1 };
/** Time after which the readiness of a function is on record, in milliseconds. */
const recordMs = 1_000;
/** Wait that the handler of a stuck object asks for, in milliseconds. */
const stuckMs = 600_000;
const error = { name: "Error", message: "no", stack: "" };
const stuck: Outcome = { type: "failed", durationMs: 1, error, retryAfterMs: stuckMs };
