import { availableParallelism } from "node:os";
import { Access } from "./access/access.ts";
import { Redactor } from "./access/redactor.ts";
import { DeadLetters } from "./checkpoint/dead-letters.ts";
import { SqliteStore } from "./checkpoint/sqlite.ts";
import type { CheckpointStore } from "./checkpoint/store.ts";
import { type Clock, pause, type Random } from "./clock.ts";
import { Deployment, type DeploymentParts } from "./deployment.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { WatchfireError } from "./errors.ts";
import { checkExpression } from "./filter/check-expression.ts";
import { clusterUid } from "./kube/cluster-facts.ts";
import { Discovery } from "./kube/discovery.ts";
import type { KubeTransport } from "./kube/transport.ts";
import type { FunctionManifest } from "./manifest/function.ts";
import { loadFunctions, type RejectedFunction } from "./manifest/load.ts";
import { type Endpoints, serveEndpoints } from "./observe/endpoints.ts";
import { guestOutput } from "./observe/guest-output.ts";
import type { Logger } from "./observe/log.ts";
import { Metrics } from "./observe/metrics.ts";
import { loggedRunner } from "./observe/run-log.ts";
import { sourceLog } from "./observe/source-log.ts";
import { Sandbox } from "./sandbox/sandbox.host.ts";
import { describeStatus, isSettled, type Status } from "./status.ts";
import { Watches } from "./watch/watches.ts";

/** Waiting for a cluster that does not answer at the start: as often as a source would try at its slowest. */
const clusterRetryMs = 5_000;

/** How long a drain waits for handlers; a pod's default grace is 30 s, and the store must be closed within it. */
const drainMs = 25_000;

/** Handlers mostly wait for the cluster: beyond four processes of 60 MB each a node's cores are better left to others. */
const executorLimit = 4;

export interface RuntimeOptions {
  /** The functions folder. */
  readonly functions: string;
  /** The data folder; made if it is not there. */
  readonly data: string;
  readonly transport: KubeTransport;
  /** The runtime's own namespace: where `env` references are read. */
  readonly namespace: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** The log level of attempts that succeed. Default `debug`: a busy runtime has thousands a second. */
  readonly successLevel?: "debug" | "info";
}

/** Everything wired together, for one functions folder on one cluster. */
export class Runtime {
  /** Where the endpoints are. */
  readonly url: string;
  private readonly options: RuntimeOptions;
  private readonly parts: Parts;
  private readonly endpoints: Endpoints;
  private readonly deployments = new Map<string, Deployment>();
  private rejected: readonly RejectedFunction[] = [];
  private loaded = false;
  private caughtUp = false;
  private reloading: Promise<void> = Promise.resolve();

  private constructor(options: RuntimeOptions, parts: Parts, endpoints: Endpoints) {
    this.options = options;
    this.parts = parts;
    this.endpoints = endpoints;
    this.url = endpoints.url;
    const { metrics, dispatcher, watches, store } = parts;
    metrics.watch({
      functions: () => dispatcher.status().map(({ function: name, ...counts }) => ({ name, ...counts })),
      sources: () => watches.status().map((source) => ({ spec: source, state: source.state })),
      deadLetters: async () => countBy(await store.deadLetters(), (letter) => letter.function),
    });
  }

  /**
   * Opens the store, loads every function that can run and subscribes it. A function that cannot run is disabled alone;
   * a cluster that does not answer is waited for.
   * @throws WatchfireError when the data folder is another runtime's or another cluster's, or the address is taken
   */
  static async start(options: RuntimeOptions, signal: AbortSignal): Promise<Runtime> {
    let runtime: Runtime | undefined;
    const store = new SqliteStore({ folder: options.data });
    const metrics = new Metrics();
    const redactor = new Redactor();
    const manifests = new Map<string, FunctionManifest>();
    const { transport, clock, random, log, listen } = options;
    const discovery = new Discovery(transport, clock);
    const access = new Access({
      transport,
      discovery,
      functions: manifests,
      clock,
      random,
      log,
      observer: metrics.access,
    });
    const sandbox = new Sandbox({
      executors: Math.min(availableParallelism(), executorLimit),
      hostCalls: access,
      output: guestOutput(log, metrics.user, redactor),
      clock,
      log,
    });
    sandbox.warm();
    const observer = { ...metrics.sources, stateChanged: sourceLog(log) };
    const watches = new Watches({ transport, discovery, clock, random, observer });
    let endpoints: Endpoints | undefined;
    try {
      const dispatcher = await Dispatcher.open({
        store,
        runner: loggedRunner(sandbox, log, redactor, options.successLevel ?? "debug"),
        clock,
        random,
        log,
        observer: metrics.dispatch,
      });
      const letters = new DeadLetters(store, dispatcher);
      endpoints = await serveEndpoints(listen.host, listen.port, {
        live: () => true,
        ready: () => runtime?.ready ?? false,
        status: () => runtime?.status() ?? { functions: [], sources: [] },
        metrics: () => metrics.text(),
        deadLetters: letters,
      });
      await recogniseCluster(store, options, signal);
      const parts: Parts = {
        store,
        metrics,
        redactor,
        manifests,
        access,
        sandbox,
        watches,
        dispatcher,
        discovery,
        transport,
        clock,
        log,
        namespace: options.namespace,
      };
      runtime = new Runtime(options, parts, endpoints);
      await runtime.reload();
      return runtime;
    } catch (error) {
      await Promise.all([endpoints?.close(), sandbox.close(0), watches.close(), access.close()]);
      await store.close(false);
      throw error;
    }
  }

  /** Reads the functions folder again: starts what came, takes up what changed, stops what went. */
  reload(): Promise<void> {
    this.reloading = this.reloading.then(
      () => this.readFolder(),
      () => this.readFolder(),
    );
    return this.reloading;
  }

  /** True once every function that can run has caught up with its first list; it stays so. */
  get ready(): boolean {
    if (!this.caughtUp && this.loaded) this.caughtUp = isSettled(this.status());
    return this.caughtUp;
  }

  /** Resolves when it is ready. */
  async untilReady(signal: AbortSignal): Promise<void> {
    while (!this.ready) await pause(this.options.clock, 5, signal);
  }

  status(): Status {
    return describeStatus({
      deployments: [...this.deployments.values()],
      rejected: this.rejected,
      dispatch: this.parts.dispatcher.status(),
      sandbox: (name) => this.parts.sandbox.status(name),
      sources: this.parts.watches.status(),
      redact: (name, text) => this.parts.redactor.redact(name, text),
    });
  }

  /** The manifests of the functions that were accepted, by name. */
  get functions(): readonly FunctionManifest[] {
    return [...this.deployments.values()].map(({ manifest }) => manifest);
  }

  /** Stops taking events, lets handlers finish for at most 25 s, saves, and closes everything. */
  async drain(): Promise<void> {
    const { dispatcher, sandbox, watches, access, store, log } = this.parts;
    log.info({}, "draining");
    const clean = await dispatcher.drain(drainMs);
    await watches.close();
    await sandbox.close(0);
    await Promise.all([access.close(), this.endpoints.close()]);
    await store.close(clean);
    log.info({ clean }, "drained");
  }

  private async readFolder(): Promise<void> {
    const { log, dispatcher } = this.parts;
    const { functions, rejected, faults } = await loadFunctions(this.options.functions, { checkExpression });
    for (const fault of faults) log.error({ error: fault.message }, "manifest refused");
    this.rejected = rejected;
    // A manifest with a fault in it is no removal: what runs of it goes on, and its positions stay.
    const refused = new Set(rejected.map(({ name }) => name));
    const wanted = new Set(functions.map(({ name }) => name));
    const gone = [...this.deployments.keys()].filter((name) => !wanted.has(name) && !refused.has(name));
    await Promise.all(gone.map((name) => this.remove(name)));
    await Promise.all(functions.map((manifest) => this.bring(manifest)));
    if (!this.loaded && !refused.has(undefined)) {
      await dispatcher.retireOthers([...wanted, ...[...refused].filter((name) => name !== undefined)]);
    }
    this.loaded = true;
  }

  private async bring(manifest: FunctionManifest): Promise<void> {
    const existing = this.deployments.get(manifest.name);
    if (existing) return existing.update(manifest);
    const deployment = new Deployment(manifest, this.parts);
    this.deployments.set(manifest.name, deployment);
    const started = deployment.start();
    // A function that waits for a Secret must not keep the others from being ready.
    if (manifest.env.length === 0) await started;
  }

  private async remove(name: string): Promise<void> {
    await this.deployments.get(name)?.stop({ retire: true });
    this.deployments.delete(name);
  }
}

interface Parts extends DeploymentParts {
  readonly store: CheckpointStore;
  readonly metrics: Metrics;
  readonly access: Access;
  readonly discovery: Discovery;
}

/**
 * Positions are worth something on their own cluster alone: resourceVersions of another mean nothing.
 * @throws WatchfireError WF_RUNTIME_OTHER_CLUSTER
 */
async function recogniseCluster(store: CheckpointStore, options: RuntimeOptions, signal: AbortSignal): Promise<void> {
  const { transport, clock, log, data } = options;
  for (;;) {
    try {
      const uid = await clusterUid(transport);
      const known = await store.cluster();
      if (uid !== undefined && known === undefined) await store.setCluster(uid);
      if (uid === undefined || known === undefined || uid === known) return;
      throw new WatchfireError("WF_RUNTIME_OTHER_CLUSTER", {
        what: `the positions in ${data} belong to the cluster ${known}, and this is ${uid}`,
      });
    } catch (error) {
      if (error instanceof WatchfireError) throw error;
      log.warn({ cluster: transport.description, error: String(error) }, "cluster does not answer yet");
      await pause(clock, clusterRetryMs, signal);
    }
  }
}

function countBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}
