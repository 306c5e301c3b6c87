import { pause } from "../base/clock.ts";
import { asWatchfireError, WatchfireError } from "../base/errors.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import type { Publication, StatusPublisher } from "../control/function-status/status-publisher.ts";
import { claimCluster } from "../journal/cluster.ts";
import type { Candidacy, Elector } from "../lease/elector.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { openStore } from "../migrate/open-store.ts";
import type { ControlApi } from "../observe/control-api.ts";
import { type Endpoints, serveEndpoints } from "../observe/endpoints.ts";
import type { ExplainQuestion } from "../observe/explanation.ts";
import { keepToken } from "../observe/token-file.ts";
import {
  type ActiveComponents,
  activate,
  type Components,
  closeComponents,
  makeComponents,
  type RuntimeOptions,
  showStates,
} from "./components.ts";
import { functionDesk } from "./control-api.ts";
import { DataDirLock } from "./data-dir-lock.ts";
import { explainFunction } from "./explain-function.ts";
import { keptStatus } from "./kept-status.ts";
import { LiveFunctions } from "./live-functions.ts";
import { type OfferedFunctions, offeredFunctions } from "./offered-functions.ts";
import { isSettled, unsettledBy } from "./readiness.ts";
import { recogniseCluster } from "./recognise-cluster.ts";
import { describeStandby, describeStandings, describeStatus, type Status, type StatusParts } from "./status.ts";

/** How long a drain waits for handlers; a pod's default grace is 30 s, and the store must be closed within it. */
const drainMs = 25_000;

/** How often `untilReady` looks: at first often, since a start takes moments; then ever less, in case it never is. */
const readyPollMs = { from: 5, to: 1_000 };

/** Everything running: one functions folder on one cluster. Where there may be others it is a standby until it holds the Lease. */
export class Runtime {
  /** Resolves with the reason why it cannot go on: the Lease or the store went to another, or no store can be opened. */
  readonly lost: Promise<WatchfireError>;
  /** What is done with one function, as its commands have it done. */
  readonly desk: ControlApi;
  private readonly options: RuntimeOptions;
  private readonly components: Components;
  private readonly residence: DataDirLock;
  private readonly losing = Promise.withResolvers<WatchfireError>();
  /** Why it cannot begin yet, though it holds the Lease, or needs none. */
  private delay: string | undefined;
  private readonly waiting = (why: string | undefined): void => {
    this.delay = why;
  };
  /** Undefined while it is a standby. */
  private active: ActiveComponents | undefined;
  private campaigning: Promise<void> = Promise.resolve();
  private endpoints: Endpoints | undefined;
  private readonly live: LiveFunctions;
  private readonly offered: OfferedFunctions;
  private readonly source: FunctionSource;
  /** Aborts when nothing more is to be brought: reading may wait for the cluster. */
  private readonly stopping = new AbortController();
  private readonly publisher: StatusPublisher | undefined;
  private frozen = false;
  private caughtUp = false;
  private reloading: Promise<void> = Promise.resolve();

  private constructor(options: RuntimeOptions, components: Components) {
    this.options = options;
    this.components = components;
    this.residence = new DataDirLock(options.data);
    this.lost = this.losing.promise;
    components.metrics.leader(() => this.isActive);
    showStates(
      components,
      () => (this.active ? [this.active] : []),
      () => (this.active ? describeStandings(this.activeParts(this.active)) : this.status().functions),
    );
    void components.elector?.lost.then(this.losing.resolve);
    this.offered = offeredFunctions(options, components, () => void this.reload());
    this.source = this.offered.source;
    this.live = new LiveFunctions({ ...options, source: this.source, active: () => this.active });
    const { functionLog, transport, clock, log } = options;
    this.desk = functionDesk({
      known: () => this.status().functions.map(({ name }) => name),
      acting: () => [{ ...this.acting("the function is"), live: (name: string) => this.live.get(name) }],
      recorder: components.recorder,
      redactor: components.redactor,
      functionLog,
      transport,
      clock,
      log,
    });
    this.publisher = keptStatus(options, components.elector, () => this.publication());
  }

  /**
   * Opens the store, loads every function that can run and subscribes it. A function that cannot run is disabled alone;
   * a cluster that does not answer is waited for, with the endpoints up. Where there is an election it begins as a
   * standby, and does all that once it holds the Lease.
   * @throws WatchfireError when the data folder is another runtime's or another cluster's, or the address is taken
   */
  static async start(options: RuntimeOptions, signal: AbortSignal): Promise<Runtime> {
    // A data folder that another uses is told of before anything else is done.
    const alone = { ...options, cluster: undefined, onLost: () => {} };
    const store = options.election ? undefined : await openStore(alone, undefined, signal);
    const runtime = new Runtime(options, await makeComponents(options));
    try {
      signal.throwIfAborted();
      if (store) runtime.active = await activate(runtime.components, store, options, runtime.losing.resolve);
      await runtime.begin(signal);
      return runtime;
    } catch (error) {
      await runtime.endpoints?.close();
      runtime.residence.end();
      await closeComponents({ store, ...runtime.components, ...runtime.active }, false);
      throw error;
    }
  }

  /** Where the endpoints are. */
  get url(): string {
    return this.endpoints?.url ?? "";
  }

  /** Reads the functions again: starts what came, takes up what changed, stops what went. Never rejects. */
  reload(): Promise<void> {
    this.reloading = this.reloading
      .then(() => this.readFunctions())
      .catch((error: unknown) => {
        if (!this.frozen) this.options.log.error({ error: String(error) }, "reload failed");
      });
    return this.reloading;
  }

  /** Whether it may dispatch: nobody else can be there, or it holds the Lease. */
  get isActive(): boolean {
    return this.active !== undefined && (this.components.elector?.holds ?? true);
  }

  /**
   * True once every function that can run has caught up with its first list; it stays so while executors can be started.
   * Never of a standby.
   */
  get ready(): boolean {
    if (!this.caughtUp && this.live.loaded) this.caughtUp = isSettled(this.statusParts);
    return this.caughtUp && this.obstacle === undefined;
  }

  /** Why it can run nothing at present. */
  private get obstacle(): WatchfireError | undefined {
    return this.components.executors.trouble() ?? this.active?.store.trouble;
  }

  /** Why it is not ready, in words. */
  private get unready(): string | undefined {
    const why = this.obstacle?.message ?? this.delay;
    if (why !== undefined || this.caughtUp) return why;
    if (!this.active)
      return this.standing?.obstacle ?? "the Lease has not been seen yet, or its positions are being opened";
    return this.live.loaded ? unsettledBy(this.statusParts) : "the functions are being read";
  }

  /** A standby that knows who holds the Lease, and has executors. */
  private get canTakeOver(): boolean {
    const { elector, executors } = this.components;
    return !this.active && elector?.candidacy !== undefined && !executors.trouble();
  }

  /** Resolves when it is ready. */
  async untilReady(signal: AbortSignal): Promise<void> {
    for (let delayMs = readyPollMs.from; !this.ready; delayMs = Math.min(delayMs * 1.05, readyPollMs.to)) {
      await pause(this.options.clock, delayMs, signal);
    }
  }

  status(): Status {
    const { active, live } = this;
    if (!active)
      return describeStandby(live.offered, live.rejected, this.standing, this.source.trouble, this.executorParts);
    const { standing: lease } = this;
    const status = describeStatus(this.activeParts(active));
    return { ...status, ...(lease && { lease }) };
  }

  /** The manifests of the functions that were accepted. */
  get functions(): readonly FunctionManifest[] {
    return this.live.all.map(({ manifest }) => manifest);
  }

  /** The text of a function's file as it went into the code that runs, by the name that stacks have. */
  sourceText(functionName: string, file: string): string | undefined {
    return this.live.get(functionName)?.sourceText(file);
  }

  /** Stops taking events, lets handlers finish for at most 25 s, saves, closes everything, and lets go of the Lease. */
  async drain(): Promise<void> {
    const { log } = this.options;
    log.info({}, "draining");
    this.freeze();
    await this.campaigning;
    await this.publisher?.close();
    const clean = await this.active?.dispatcher.drain(drainMs);
    await this.endpoints?.close();
    this.residence.end();
    await this.close(clean ?? false);
    log.info({ clean }, "drained");
  }

  /** Stops at once, as a killed process does: what runs is interrupted, nothing more is saved, and all of it comes again. */
  async halt(): Promise<void> {
    this.freeze();
    this.active?.dispatcher.halt();
    await this.campaigning;
    this.active?.dispatcher.halt();
    await this.publisher?.close();
    await this.endpoints?.close();
    this.residence.end();
    await this.close(false);
  }

  /** A store that says why it cannot be closed well keeps nobody from the Lease. */
  private async close(clean: boolean): Promise<void> {
    try {
      await closeComponents(this.active ?? this.components, clean);
    } finally {
      await this.components.elector?.release();
    }
  }

  /** What a standby says of the Lease, and one that is about to be the active one of its positions. */
  private get standing(): Candidacy | undefined {
    const { elector } = this.components;
    if (this.delay === undefined || !elector?.holds) return elector?.standing;
    return { holder: this.options.election?.identity ?? "", obstacle: elector.unwritten?.message ?? this.delay };
  }

  private get executorParts() {
    const { executors } = this.components;
    return { rights: executors.rights(), trouble: executors.trouble(), memoryLimit: executors.memoryLimit() };
  }

  private get statusParts() {
    const { sandbox, watches, reads, redactor } = this.components;
    return {
      liveFunctions: this.live.all,
      rejected: this.live.rejected,
      sandbox: (name: string) => sandbox.status(name),
      executors: this.executorParts,
      sources: watches.status(),
      deployment: this.source.trouble,
      reads: (name: string) => reads.of(name),
      redact: (name: string, text: string) => redactor.redact(name, text),
      paused: (name: string) => this.active?.pauses.of(name),
      forbidden: (name: string) => this.active?.grants?.fault(name),
    };
  }

  private activeParts({ dispatcher }: ActiveComponents): StatusParts {
    const role = this.isActive ? "active" : "standby";
    return { ...this.statusParts, role, dispatch: dispatcher.status(), checkpoint: dispatcher.trouble };
  }

  /** @throws WatchfireError WF_LEASE_STANDBY where another replica has what is asked for */
  private acting(asked: string): ActiveComponents {
    if (this.active && this.isActive) return this.active;
    const holder = this.components.elector?.candidacy?.holder;
    throw new WatchfireError("WF_LEASE_STANDBY", { what: `${asked} with ${holder || "the active one"}` });
  }

  private async begin(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { listen } = this.options;
    const inspection = {
      live: () => true,
      // A standby is ready to take over; a rollout waits for it.
      ready: () => (this.ready || this.canTakeOver) && !this.frozen,
      obstacle: () => (this.frozen ? "it drains" : this.unready),
      unsaved: () => this.active?.dispatcher.trouble ?? this.active?.store.trouble,
      status: () => this.status(),
      metrics: () => this.components.metrics.text(),
      token: keepToken(this.options.data),
      deadLetters: () => this.acting("the dead letters are").deadLetters,
      explain: async (question: ExplainQuestion) => {
        const active = this.acting("the answer is");
        const { functions } = this.status();
        return explainFunction(active, this.live.get(question.function), functions, question, this.options);
      },
      functions: this.desk,
      clock: this.options.clock,
    };
    this.endpoints = await serveEndpoints(listen.host, listen.port, inspection, listen.spare);
    this.components.endpoints.port = this.endpoints.port;
    const { elector } = this.components;
    if (!elector) {
      this.residence.takeOver(this.url);
      return this.takeUp(await recogniseCluster(this.options, signal, this.waiting), signal);
    }
    this.residence.announce(this.url);
    this.reloading = this.readFunctions(AbortSignal.any([signal, this.stopping.signal])).catch(() => undefined);
    this.campaigning = this.campaign(elector, AbortSignal.any([signal, this.stopping.signal]));
  }

  /** Waits for the Lease, and begins. A failure is the runtime's end. Never rejects. */
  private async campaign(elector: Elector, signal: AbortSignal): Promise<void> {
    const { waiting } = this;
    try {
      await elector.campaign(signal);
      // Before any store is opened: whoever opens one on NATS ends the one before, whichever cluster's it is.
      const cluster = await recogniseCluster(this.options, signal, waiting);
      const store = await openStore(
        { ...this.options, ...this.options.election, cluster, waiting, onLost: this.losing.resolve },
        elector,
        signal,
      );
      await this.reloading;
      this.active = await activate(this.components, store, this.options, this.losing.resolve);
      this.residence.takeOver(this.url);
      this.options.log.info({ fence: elector.fence?.number }, "active");
      await this.takeUp(cluster, signal);
    } catch (error) {
      if (!signal.aborted) this.losing.resolve(asWatchfireError(error));
    }
  }

  /** With the store open: makes sure that it is this cluster's, and brings every function. */
  private async takeUp(cluster: string | undefined, signal: AbortSignal): Promise<void> {
    if (cluster !== undefined && this.active) await claimCluster(this.active.store, cluster);
    // A change that was heard of before is read first: an older reading never comes after a newer one.
    const first = this.reloading.then(() => this.readFunctions(AbortSignal.any([signal, this.stopping.signal])));
    this.reloading = first.catch(() => undefined);
    await first;
  }

  private freeze(): void {
    this.frozen = true;
    this.stopping.abort();
    this.live.freeze();
    this.offered.code?.close();
  }

  private publication(): Publication {
    const origins = new Map([
      ...this.live.rejected.map(({ name, origin }) => [name, origin] as const),
      ...this.live.all.map(({ name, origin }) => [name, origin] as const),
    ]);
    const functions = this.status().functions.flatMap((report) => {
      const origin = origins.get(report.name);
      return origin ? { report, origin } : [];
    });
    return { functions, isGone: () => this.live.complete };
  }

  private async readFunctions(signal = this.stopping.signal): Promise<void> {
    await this.live.read(signal);
    if (this.live.loaded) this.publisher?.start();
  }
}
