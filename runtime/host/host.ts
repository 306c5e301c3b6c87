import { dirname, join } from "node:path";
import { runtimeAccount } from "../access/account.ts";
import { pause } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import { readVariables } from "../base/variables.ts";
import { revisionsOf } from "../catalog/deploy/rollback.ts";
import { FolderSource } from "../catalog/folder-source.ts";
import { type FunctionCode, openCode } from "../catalog/function-code.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { ConsoleAccess, loginLink } from "../console/access.ts";
import type { ConsoleParts } from "../console/app.ts";
import type { FleetLink } from "../console/fleet-link.ts";
import { type FunctionCounters, MetricSeries } from "../console/metric-series.ts";
import { AccountReviews } from "../control/access/account-reviews.ts";
import { AuditLog } from "../control/access/audit-log.ts";
import { tokenCaller } from "../control/access/caller.ts";
import { Gate } from "../control/access/gate.ts";
import { EventsOfFunctions } from "../control/function-status/events-of-functions.ts";
import { FunctionObjects } from "../control/function-status/function-objects.ts";
import type { Pause } from "../control/pauses.ts";
import { BodyRoom } from "../engine/commit/deferred-rows.ts";
import type { UnloadedCounts } from "../engine/dispatcher.ts";
import { Budget, heapQuarter } from "../engine/work/budget.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { openStore } from "../migrate/open-store.ts";
import type { ControlApi } from "../observe/control-api.ts";
import { type Endpoints, type Inspection, serveEndpoints } from "../observe/endpoints.ts";
import type { ExplainQuestion, Explanation } from "../observe/explanation.ts";
import { supportReport } from "../observe/support-report.ts";
import { keepToken } from "../observe/token-file.ts";
import type { HostedState } from "../sandbox/host/hosted-function.ts";
import {
  type ActiveComponents,
  type Components,
  closeComponents,
  makeComponents,
  type RuntimeOptions,
} from "./components.ts";
import { describeConfiguration, settingsOf } from "./configuration.ts";
import { type Acting, createControlApi } from "./control-api.ts";
import { DataDirLock } from "./data-dir-lock.ts";
import { explainFunction } from "./explain-function.ts";
import { FleetOwner } from "./fleet-owner.ts";
import { type FunctionSources, functionSources } from "./function-sources.ts";
import type { Trouble } from "./live-function.ts";
import { mergedStatus, mergedUnloaded, withStill, worstShards } from "./merged-status.ts";
import type { Ownership } from "./ownership.ts";
import type { Partition } from "./partition.ts";
import { type StatusPublishers, statusPublishers } from "./publishers.ts";
import { isSettled, unsettledBy } from "./readiness.ts";
import { functionElsewhere, openReplicaLink } from "./replica-link.ts";
import { SoleOwner } from "./sole-owner.ts";
import { describeStandby, describeStandings, describeStatus, type Status, type StatusParts } from "./status.ts";

/**
 * Interval of `untilReady`, in milliseconds: short at first, because a start takes moments, then longer, in case it never becomes
 * ready.
 */
const readyPollMs = { from: 5, to: 1_000 };

/**
 * The process. Holds partitions, and shares informers, executors and endpoints among them. A single process has one partition,
 * one with a Lease has it while the Lease is held, and a replica of a fleet has one for each of its slots.
 */
export class Host {
  /** Resolves with the reason why it cannot continue: another replica has the Lease or the store, or no store can be opened. */
  readonly lost: Promise<WatchfireError>;
  /** The operations on one function, for commands. */
  readonly controlApi: ControlApi;
  private readonly options: RuntimeOptions;
  private readonly components: Components;
  private readonly dataDir: DataDirLock;
  private readonly losing = Promise.withResolvers<WatchfireError>();
  /** Aborts when nothing more may be started, because reads may wait for the cluster. */
  private readonly stopping = new AbortController();
  private readonly source: FunctionSource;
  private readonly ownSource: FunctionSource;
  private readonly code: FunctionCode | undefined;
  private readonly ownership: Ownership;
  private readonly publishers: StatusPublishers;
  /** The log of changes that somebody asked for. */
  private readonly audit: AuditLog;
  /** The sessions of the console; `undefined` without a console. */
  private readonly consoleAccess: ConsoleAccess | undefined;
  /** Samples for the console's plots. */
  private readonly series: MetricSeries | undefined;
  private endpoints: Endpoints | undefined;
  /** The connection to the other replicas of the fleet, for the console. */
  private link: FleetLink | undefined;
  private caughtUp = false;

  private constructor(options: RuntimeOptions, components: Components, journal: Checkpoint | undefined) {
    this.options = options;
    this.components = components;
    this.dataDir = new DataDirLock(options.data);
    this.lost = this.losing.promise;
    const { functions, slots, functionLog, transport, clock, log } = options;
    const { elector, recorder, redactor, history } = components;
    void elector?.lost.then(this.losing.resolve);
    this.consoleAccess = options.console ? new ConsoleAccess(clock) : undefined;
    this.series = options.console
      ? new MetricSeries(
          () => this.counters,
          clock,
          () => this.sourceCounters,
        )
      : undefined;
    this.code = functions === undefined ? undefined : (options.code ?? openCode(functions, clock, options.trust));
    this.audit = this.auditLog();
    if (options.setNamespaces?.length && !options.accounts)
      throw new TypeError("sets of other namespaces need accounts");
    const { all, own, sets } = this.sources();
    this.source = all;
    this.ownSource = own;
    const quarter = heapQuarter();
    const parts = {
      // Slots share the memory that a single runtime has.
      options:
        slots === undefined ? options : { ...options, memory: new Budget(() => quarter), bodyRoom: new BodyRoom() },
      components,
      source: this.source,
      dataDir: this.dataDir,
      stopping: this.stopping.signal,
      onLost: this.losing.resolve,
      known: () => {
        for (const publisher of this.publishers) publisher.start();
      },
      announcement: () => this.link?.announcement,
    };
    this.ownership = slots === undefined ? new SoleOwner(parts, journal) : new FleetOwner(parts, slots);
    const { ownership } = this;
    this.publishers = statusPublishers({ options, components, ownership, sets, status: () => this.status() });
    this.controlApi = createControlApi({
      acting: (name) => this.acting(name, "the function is"),
      elsewhere: (name) => this.ownership.elsewhere(name),
      names: () => this.ownership.names,
      ...{ recorder, redactor, functionLog, history, transport, clock, log },
    });
  }

  /**
   * Opens the journal, loads every function that can run, and subscribes it. A function that cannot run is disabled without
   * affecting others. Waits for a cluster that does not answer, with the endpoints up. With an election, only the endpoints are
   * served until the Lease, or slots, are held.
   * @throws WatchfireError if the data folder belongs to another runtime or cluster, or the address is taken
   */
  static async start(options: RuntimeOptions, signal: AbortSignal): Promise<Host> {
    // A data folder in use is reported before anything else is done.
    const alone = { ...options, cluster: undefined, onLost: () => {} };
    const journal = options.election ? undefined : await openStore(alone, undefined, signal);
    let made: Host | undefined;
    const host = new Host(options, await makeComponents(options, () => made), journal);
    made = host;
    try {
      await host.ownership.prepare();
      signal.throwIfAborted();
      await host.serve();
      await host.ownership.begin(host.url, signal);
      return host;
    } catch (error) {
      await host.close(false);
      throw error;
    }
  }

  /** URL of the endpoints. */
  get url(): string {
    return this.endpoints?.url ?? "";
  }

  /** The port of the endpoints, once they listen. */
  get port(): number | undefined {
    return this.endpoints?.port;
  }

  /** A link that logs one browser in to the console; undefined without a console. */
  loginLink(): string | undefined {
    return this.consoleAccess && loginLink(this.url, this.consoleAccess.newCode(tokenCaller));
  }

  /** Reads the functions again: starts new ones, updates changed ones, stops removed ones. Never rejects. */
  reload(): Promise<void> {
    return this.ownership.reload();
  }

  /** Applies the pauses of sets. */
  setsChanged(): void {
    for (const { live } of this.partitions) for (const each of live.all) each.heedSet();
  }

  /** True if it may dispatch: it holds the Lease, or there is no other replica. */
  get isActive(): boolean {
    return this.ownership.holds && this.active.length > 0;
  }

  /**
   * True once its partitions are open and each of their functions that can run has caught up with its first list. Remains true
   * while executors can be started. A standby is never ready. A damaged slot matters only if there is no other slot.
   */
  get ready(): boolean {
    if (!this.caughtUp && !this.damage && this.ownership.missing === undefined && this.isLoaded)
      this.caughtUp = isSettled(this.readiness);
    return this.caughtUp && this.obstacle === undefined;
  }

  /** Resolves once it is ready. */
  async untilReady(signal: AbortSignal): Promise<void> {
    for (let delayMs = readyPollMs.from; !this.ready; delayMs = Math.min(delayMs * 1.05, readyPollMs.to)) {
      await pause(this.options.clock, delayMs, signal);
    }
  }

  /** Describes the functions here, and who runs the others. */
  status(): Status {
    const { lease, fleet } = this.ownership.describe();
    if (this.isWaiting) {
      const { live } = this.partitions[0] as Partition;
      return describeStandby(live.offered, live.rejected, lease, this.source.trouble, this.components.executors());
    }
    const status = describeStatus(this.statusParts);
    if (!fleet) return { ...status, ...(lease && { lease }) };
    const { functions, ...rest } = status;
    return { ...rest, functions: withStill(worstShards(functions), this.still), fleet };
  }

  /** The manifests of the accepted functions. */
  get functions(): readonly FunctionManifest[] {
    return this.partitions.flatMap(({ live }) => live.all.map(({ manifest }) => manifest));
  }

  /** Returns the text of a function's file as compiled into the running code, by the name in stack traces. */
  sourceText(functionName: string, file: string): string | undefined {
    return this.partitionsOf(functionName)[0]?.live.get(functionName)?.sourceText(file);
  }

  private get hasCanary(): boolean {
    return this.partitions.some(({ live }) => live.all.some(({ canary }) => canary.state));
  }

  /** Writes the end of a canary into the audit log, and an Event. */
  canaryAborted(functionName: string, reason: string): void {
    this.audit.record({ who: "the runtime", verb: "abort", function: functionName, reason, result: "done" });
  }

  /** Returns the folder for the fixtures of a function of the functions folder. */
  private fixtureFolder(functionName: string): string | undefined {
    const manifest = this.functions.find(({ name }) => name === functionName);
    return manifest && join(dirname(manifest.file), "events");
  }

  /** Stops receiving events, lets handlers finish for at most 25 s, saves, closes everything, and releases the Lease. */
  async drain(): Promise<void> {
    const { log } = this.options;
    log.info({}, "draining");
    this.stopping.abort();
    for (const partition of this.partitions) partition.freeze();
    await Promise.all(this.publishers.map((publisher) => publisher.close()));
    const clean = await this.ownership.drain();
    await this.close(clean ?? false);
    log.info({ clean }, "drained");
  }

  /**
   * Stops at once, as a killed process does: running handlers are interrupted, nothing more is saved, and their events are
   * redelivered.
   */
  async halt(): Promise<void> {
    this.stopping.abort();
    for (const partition of this.partitions) partition.halt();
    await this.ownership.halt();
    for (const partition of this.partitions) partition.halt();
    await Promise.all(this.publishers.map((publisher) => publisher.close()));
    await this.close(false);
  }

  /** Closes everything. The Lease is released even if a journal cannot be closed. */
  private async close(clean: boolean): Promise<void> {
    const { active } = this;
    this.code?.close();
    this.series?.close();
    this.link?.close();
    await this.endpoints?.close();
    this.dataDir.end();
    try {
      await Promise.all(active.map(({ leave }) => leave()));
      await closeComponents(this.components);
      await Promise.all(active.map(({ store }) => store.close(clean)));
    } finally {
      await this.ownership.close();
    }
  }

  private get partitions(): Partition[] {
    return [...this.ownership.partitions.values()];
  }

  /** The components of all partitions whose journal is open. */
  private get active(): ActiveComponents[] {
    return this.partitions.flatMap(({ active }) => active ?? []);
  }

  /** True if another replica may run everything. Never true in a fleet, which always has something to report. */
  private get isWaiting(): boolean {
    return this.options.slots === undefined && this.active.length === 0;
  }

  /** Returns a function's partitions that are here, its first shard's first. */
  private partitionsOf(name: string): Partition[] {
    return this.ownership.slotsOf(name).flatMap((slot) => this.ownership.partitions.get(slot) ?? []);
  }

  /** True if each partition has read its functions, except damaged ones. */
  private get isLoaded(): boolean {
    return this.partitions.every(({ damage, live }) => damage !== undefined || live.loaded);
  }

  /** Why nothing can run at present, if that is so. */
  private get obstacle(): Trouble | undefined {
    const stores = this.active.map(({ store }) => store.trouble);
    return this.components.executors().trouble ?? stores.find((trouble) => trouble !== undefined) ?? this.damage;
  }

  /** The first partition's damage, if all partitions here are damaged. */
  private get damage(): WatchfireError | undefined {
    const damages = this.partitions.map(({ damage }) => damage);
    return damages.includes(undefined) ? undefined : damages[0];
  }

  /** By function, the damage of one of its slots here. */
  private get still(): ReadonlyMap<string, WatchfireError> {
    const faults = this.ownership.names.map((name) => {
      return [name, this.partitionsOf(name).find(({ damage }) => damage)?.damage] as const;
    });
    return new Map(faults.flatMap(([name, fault]) => (fault ? [[name, fault]] : [])));
  }

  /** Describes why it is not ready. */
  private get unready(): string | undefined {
    const { delay, missing } = this.ownership;
    const why = this.obstacle?.message ?? delay;
    if (why !== undefined || this.caughtUp) return why;
    if (missing !== undefined) return missing;
    if (this.isLoaded) return unsettledBy(this.readiness);
    return `the functions ${this.options.slots === undefined ? "" : "of its slots "}are being read`;
  }

  /** The counts of the functions here, merged over their shards. */
  private get counts() {
    return mergedStatus(this.active.flatMap(({ dispatcher }) => dispatcher.status()));
  }

  /** The counts of the functions here, for the plots. */
  private get counters(): FunctionCounters[] {
    const { metrics } = this.components;
    return this.counts.map(({ function: name, queued, spilled, failures }) => {
      const ended = metrics.outcomesOf(name).filter(({ outcome }) => outcome !== "filtered" && outcome !== "retry");
      const events = ended.reduce((sum, { count }) => sum + count, 0);
      return { name, events, errors: failures, waiting: queued + spilled };
    });
  }

  private get sourceCounters() {
    const { watches } = this.components;
    return watches.status().map((source) => ({ key: sourceKey(source), bytes: source.receivedBytes ?? 0 }));
  }

  /** Returns what is on record here of a function that is not loaded. */
  private unloaded(name: string): UnloadedCounts | undefined {
    const partitions = this.ownership.names.includes(name) ? this.partitionsOf(name) : this.partitions;
    return mergedUnloaded(partitions.flatMap(({ active }) => active?.dispatcher.unloaded(name) ?? []));
  }

  /** The counts on record here of each function that is not loaded. */
  private get allUnloaded() {
    const { active } = this;
    const there = this.partitions.flatMap(({ live }) => [...live.all, ...live.rejected]);
    const names = new Set([...there.flatMap(({ name }) => name ?? []), ...this.suspended.keys()]);
    return [...names].flatMap((name) => {
      const isLoaded = active.some(({ dispatcher }) => dispatcher.loaded(name));
      const counts = isLoaded ? undefined : this.unloaded(name);
      return counts ? [{ name, spilled: counts.waiting?.count, letterStock: counts.letterStock }] : [];
    });
  }

  /**
   * Functions that are gone and of which something waits, or may wait, or dead letters are left, once it is known which ones exist:
   * since when, in epoch milliseconds.
   */
  private get suspended(): ReadonlyMap<string, number | undefined> {
    if (!this.isLoaded) return new Map();
    const all = this.active.flatMap(({ store }) => [...store.suspended()]);
    const names = new Set(this.ownership.names);
    return new Map(
      all.filter(([name]) => {
        const { letterStock, waiting } = (!names.has(name) && this.unloaded(name)) || {};
        return letterStock !== undefined && (letterStock.count > 0 || waiting?.count !== 0);
      }),
    );
  }

  /** Returns all metrics as text, with the states as they are now. */
  private metrics(): Promise<string> {
    const { metrics, sandbox, reads, watches } = this.components;
    return metrics.text({
      isActive: () => this.isActive,
      functions: () =>
        this.counts.map(({ function: name, ...counts }) => ({
          name,
          isPaused: this.paused(name) !== undefined,
          ...counts,
        })),
      standings: () =>
        this.isWaiting
          ? this.status().functions
          : [...withStill([], this.still), ...describeStandings(this.statusParts)],
      unloaded: () => this.allUnloaded,
      parked: () => sandbox.parked(),
      reads: () => reads.reports(),
      cache: () => reads.totals(),
      sources: () => watches.status().map((source) => ({ spec: source, state: source.state })),
      canaries: () => (this.hasCanary ? this.status().functions : []),
    });
  }

  private get readiness() {
    const { partitions } = this;
    const all = partitions.flatMap(({ live }) => live.all);
    return {
      liveFunctions: this.options.slots === undefined ? all : all.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      sandbox: (name: string) => this.worstInstance(name),
      sources: this.components.watches.status(),
      deployment: this.ownSource.trouble,
    };
  }

  private get statusParts(): StatusParts {
    const { reads, redactor } = this.components;
    return {
      ...this.readiness,
      deployment: this.source.trouble,
      role: this.isActive ? "active" : "standby",
      rejected: this.partitions.flatMap(({ live }) => live.rejected),
      executors: this.components.executors(),
      history: this.components.history?.trouble,
      dispatch: this.counts,
      unloaded: (name) => this.unloaded(name),
      suspended: this.suspended,
      checkpoint: this.active.map(({ dispatcher }) => dispatcher.trouble).find((trouble) => trouble !== undefined),
      reads: (name) => reads.of(name),
      redact: (name, text) => redactor.redact(name, text),
      paused: (name) => this.paused(name),
      forbidden: (name) => this.partitionsOf(name).flatMap(({ active }) => active?.grants?.fault(name) ?? [])[0],
    };
  }

  private paused(name: string): Pause | undefined {
    return this.partitionsOf(name).flatMap(({ active }) => active?.pauses.of(name) ?? [])[0];
  }

  /** Returns the state of a function's instances here: that of the first one that is not ready, if any. */
  private worstInstance(name: string): HostedState | undefined {
    const { sandbox } = this.components;
    const states = this.partitionsOf(name).flatMap(({ live }) => {
      return sandbox.status(live.get(name)?.instance ?? name) ?? [];
    });
    return states.find(({ state }) => state !== "ready") ?? states[0];
  }

  /**
   * Returns whatever runs a function here. `asked`: describes the request.
   * @throws WatchfireError WF_RUNTIME_NO_FUNCTION; WF_LEASE_STANDBY if other replicas have the whole function
   */
  private acting(name: string, asked: string): Acting[] {
    const isKnown = this.ownership.names.includes(name);
    const here = this.partitionsOf(name).flatMap(({ active, holds, live }) =>
      isKnown && active && holds ? [{ ...active, live: (of: string) => live.get(of) }] : [],
    );
    if (here.length === 0) throw this.ownership.absent(name, asked);
    return here;
  }

  private async serve(): Promise<void> {
    const { listen, data, clock, log, tokenReview, transport, namespace, account = runtimeAccount } = this.options;
    const { consoleAccess: access, audit, series } = this;
    const token = keepToken(data);
    const gate = new Gate({
      token,
      ...(tokenReview && { accounts: new AccountReviews({ transport, namespace, account, clock }) }),
      audit,
      deadLetters: () => this.ownership.deadLetters,
      functionElsewhere: (letter) => functionElsewhere(this.link, this.status().fleet, letter),
    });
    const partsOf =
      access &&
      series &&
      ((control: ConsoleParts["control"]): ConsoleParts => ({
        ...inspection,
        ...{ control, access, gate, series, log, link: this.link, tools: this.options.consoleTools },
        history: this.components.history,
        status: () => this.status(),
        manifests: () => this.functions,
        meanMsOf: (name) => this.components.metrics.meanMsOf(name),
        outcomesOf: (name) => this.components.metrics.outcomesOf(name),
        sourceText: (name, file) => this.sourceText(name, file),
        configuration: () => describeConfiguration(this.options, this.url),
        revisionsOf: (set, of = namespace) => revisionsOf(transport, { account, namespace: of, set }),
        audit,
        redactData: (name, data) => this.components.redactor.redactData(name, data),
        ...(this.options.writesFixtures && { fixtureFolder: (name) => this.fixtureFolder(name) }),
      }));
    const inspection: Inspection = {
      live: () => true,
      // A standby is ready to take over, and a rollout waits for it.
      ready: () => !this.stopping.signal.aborted && (this.ready || this.canTakeOver),
      obstacle: () => (this.stopping.signal.aborted ? "it drains" : this.unready),
      unsaved: () => this.active.flatMap(({ dispatcher, store }) => dispatcher.trouble ?? store.trouble ?? [])[0],
      status: () => (tokenReview ? { ...this.status(), tokenReview } : this.status()),
      metrics: () => this.metrics(),
      gate: gate.admit,
      deadLetters: () => this.ownership.deadLetters,
      explain: (question, isPart) => this.explain(question, isPart),
      functions: this.controlApi,
      support: async () =>
        supportReport({
          options: settingsOf(this.options),
          data,
          status: this.status(),
          metrics: await this.metrics(),
          warnings: this.options.functionLog?.warnings ?? [],
          manifests: this.functions,
          redactor: this.components.redactor,
          variables: readVariables(),
          secrets: [token],
          now: clock.now(),
        }),
      clock,
      // Its code is loaded when a browser asks for it.
      console: partsOf && (async (control) => (await import("../console/app.ts")).consoleApp(partsOf(control))),
      ...(partsOf && {
        fleet: async (control) => this.link && (await import("../console/app.ts")).fleetAnswers(partsOf(control)),
      }),
    };
    this.endpoints = await serveEndpoints(listen.host, listen.port, inspection, listen.spare);
    if (partsOf && this.options.slots !== undefined) {
      const { ownership, options } = this;
      this.link = await openReplicaLink({ inspection, partsOf, ownership, options, port: this.endpoints.port + 1 });
    }
    series?.begin();
  }

  /** True for a standby that knows the Lease's holder, and has executors. */
  private get canTakeOver(): boolean {
    return this.ownership.isStandby && !this.components.executors().trouble;
  }

  private async explain(question: ExplainQuestion, isPart = false): Promise<Explanation> {
    const here = this.acting(question.function, "the answer is");
    const { functions } = this.status();
    const elsewhere = isPart ? undefined : this.ownership.elsewhere(question.function);
    return explainFunction(here, functions, question, this.options, elsewhere);
  }

  /** Creates the sources of functions. */
  private sources(): FunctionSources {
    const { functions, account = runtimeAccount } = this.options;
    const { code, audit } = this;
    return functionSources({
      options: { ...this.options, account },
      folder: this.options.folder ?? (functions && code ? new FolderSource(functions, code) : undefined),
      components: this.components,
      audit,
      isOwn: (name) => this.isFirstHere(name),
      changed: () => void this.reload(),
    });
  }

  /** Whether a function's first shard is here, so that exactly one replica writes about the function. */
  private isFirstHere(name: string): boolean {
    const [first] = this.ownership.slotsOf(name);
    return first !== undefined && (this.ownership.partitions.get(first)?.holds ?? false);
  }

  /** Creates the log of changes. With Function objects, changes are Events on them, too. */
  private auditLog(): AuditLog {
    const { functionStatus, transport, namespace, account = runtimeAccount, clock, log } = this.options;
    const objects = functionStatus ? new FunctionObjects(transport, namespace, account) : undefined;
    return AuditLog.on(
      log,
      clock,
      objects && new EventsOfFunctions({ transport, namespace, objects, clock, log }),
      this.components.history,
    );
  }
}
