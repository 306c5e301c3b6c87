import { availableParallelism } from "node:os";
import { Access } from "../access/access.ts";
import { runtimeAccount } from "../access/account.ts";
import type { OnDryRunWrite } from "../access/dry-run.ts";
import type { LocalEnv } from "../access/env.ts";
import type { FunctionAccounts } from "../access/function-accounts.ts";
import { OwnObjects } from "../access/own-objects.ts";
import { Redactor } from "../access/redactor.ts";
import type { Clock, Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { SetLimits } from "../catalog/cluster-source.ts";
import type { FunctionCode } from "../catalog/function-code.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { accountLabel, selectorOf } from "../catalog/names.ts";
import type { TrustedKeys } from "../catalog/signature.ts";
import { PausedSets } from "../control/paused-sets.ts";
import type { Pauses } from "../control/pauses.ts";
import { Recorder } from "../control/record/recorder.ts";
import type { ConsoleTools } from "../dev/console-tools.ts";
import type { DeadLetterCommand } from "../engine/commit/commits.ts";
import type { BodyRoom } from "../engine/commit/deferred-rows.ts";
import type { Dispatcher } from "../engine/dispatcher.ts";
import type { Budget } from "../engine/work/budget.ts";
import { FairScheduler } from "../engine/work/fair-scheduler.ts";
import { type HistoryLimits, RunHistory } from "../history/run-history.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import { Informers } from "../informer/informers.ts";
import type { Checkpoint, StoreKind } from "../journal/checkpoint.ts";
import type { DeadLetters } from "../journal/dead-letters.ts";
import { Discovery } from "../kube/discovery.ts";
import type { ProxyEnvironment } from "../kube/proxy.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { Elector, type ElectorOptions, lostError } from "../lease/elector.ts";
import { leaseApi } from "../lease/lease-api.ts";
import type { FunctionManifest, Selection } from "../manifest/function.ts";
import type { NatsPlace } from "../migrate/open-journal.ts";
import { eligibleFor } from "../migrate/open-store.ts";
import { codeFrame } from "../observe/code-frame.ts";
import type { FunctionLog } from "../observe/function-log.ts";
import { accounted, guestOutput } from "../observe/guest-output.ts";
import type { Logger } from "../observe/log.ts";
import { LogLimit } from "../observe/log-limit.ts";
import { Metrics } from "../observe/metrics.ts";
import { sourceLog } from "../observe/source-log.ts";
import { SpanExporter } from "../observe/traces/exporter.ts";
import type { TraceSettings } from "../observe/traces/settings.ts";
import { Tracer } from "../observe/traces/tracer.ts";
import type { GrantWatch } from "../rbac/grant-watch.ts";
import { RevokedWatches } from "../rbac/revoked-watches.ts";
import { Reads } from "../reads/reads.ts";
import { childRights, executorProgram } from "../sandbox/executor-program.ts";
import { launchAhead } from "../sandbox/host/child-link.ts";
import type { Launch } from "../sandbox/host/link.ts";
import { Sandbox } from "../sandbox/host/sandbox.ts";
import { inTurns } from "../sandbox/host/start-turns.ts";
import { SupervisorClient } from "../sandbox/host/supervisor-client.ts";
import type { HostCallError } from "../sandbox/host-calls.ts";
import { type ExecutorRights, missingRights } from "../sandbox/rights.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import { WatchRoom } from "./watch-room.ts";

/**
 * Maximum number of executors. Handlers mostly wait for the cluster, so beyond four processes of 60 MB each a node's cores are
 * better left to others.
 */
export const executorLimit = 4;

/** Default limit of the reads of all functions together, in bytes. `watchfire start` has the same default. */
export const cacheLimit = 256 * 2 ** 20;

export interface RuntimeOptions {
  /** The functions folder. Default: only deployed functions run. */
  readonly functions?: string | undefined;
  /** The data folder. Created if it does not exist. */
  readonly data: string;
  readonly transport: KubeTransport;
  /** The runtime's namespace, in which `env` references are resolved. */
  readonly namespace: string;
  /** Accounts for the functions. Default: all functions act with the runtime's account. */
  readonly accounts?: FunctionAccounts;
  /** The runtime's ServiceAccount. Default `watchfire`. */
  readonly account?: string;
  /** Further objects of that namespace that no function may write, nor read if they are Secrets. */
  readonly reserved?: readonly string[] | undefined;
  /** Run the functions that `watchfire deploy` wrote into the runtime's namespace, in addition to the folder's. Default false. */
  readonly deployed?: boolean;
  /** Other namespaces whose deployed functions run too, each with accounts of its namespace. Needs `accounts`. Default: only the own namespace. */
  readonly setNamespaces?: readonly string[];
  /** Limits of the sets of each of those namespaces, together. Default: 20 functions with 2 GiB of `resources.memory`. */
  readonly setLimits?: Partial<Pick<SetLimits, "functions" | "memoryBytes">>;
  /** Run only code signed with one of these keys, both from the folder and deployed. Default: any code. */
  readonly trust?: TrustedKeys | undefined;
  /** Compete for the Lease named after `account`, and do nothing before it is held. Default: there is no other replica. */
  readonly election?: Candidate | undefined;
  /** The store of checkpoints: on a volume, or reachable by every replica. Default `sqlite`. */
  readonly store?: StoreKind;
  /** Share the functions with other replicas, spread over this many slots. Default: one replica runs all of them. */
  readonly slots?: number | undefined;
  /** Budget that the queues of several dispatchers share. Default: each has a quarter of the heap. */
  readonly memory?: Budget;
  /** Room for last bodies that several stores share. Default: a separate one for each store. */
  readonly bodyRoom?: BodyRoom;
  /** The NATS servers that hold the checkpoints, or held them before. */
  readonly nats?: NatsPlace | undefined;
  /** Maintain a Function object for each function in the runtime's namespace. Default false. */
  readonly functionStatus?: boolean;
  /** `spare`: number of ports after `port` that are tried if `port` is taken. Default 0. */
  readonly listen: { readonly host: string; readonly port: number; readonly spare?: number };
  /** Answer accounts of the cluster too, as far as they may get or update functions.watchfire.dev. Default false. */
  readonly tokenReview?: boolean;
  /** Serve the console at the address of the endpoints. Default false. */
  readonly console?: boolean;
  /** The options of the command that started it, for people who ask. Default: it was started by no command. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** The console writes fixtures into `events` of each function's folder. Default false: a browser downloads them. */
  readonly writesFixtures?: boolean;
  /** The further abilities of the console of `watchfire dev`. Default: it has no more. */
  readonly consoleTools?: ConsoleTools | undefined;
  /** Path of a unix socket for a `watchfire executor` in another container. Default: executors are child processes. */
  readonly executorSocket?: string;
  /** Code of the functions folder. Default: the existing build, otherwise built on demand. */
  readonly code?: FunctionCode;
  /** The functions folder and its code, if it is already being read. Default: read on demand. */
  readonly folder?: FunctionSource;
  /** The variables that name the proxies of handlers' requests: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. Default: no proxies. */
  readonly proxies?: ProxyEnvironment;
  /** Starts executors if there is no socket. Default: as child processes. */
  readonly launch?: Launch;
  /** Executors compile no machine code. A given `launch` must ensure that itself. Default false. */
  readonly jitless?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Values in place of Secrets that `env` refers to. Default: they are read from the cluster. */
  readonly localEnv?: LocalEnv;
  /** Show writes of functions in the log instead of sending them. Default false. */
  readonly dryRun?: boolean;
  /** The log that `watchfire logs` reads the last lines from. `log` must write through it. */
  readonly functionLog?: FunctionLog;
  /** Metrics that count already, such as lines that the log's writer drops. Default: new ones. */
  readonly metrics?: Metrics;
  /** A person waits for the start: rejected credentials end it. Default: they are retried, because they may be renewed. */
  readonly interactive?: boolean;
  /** Limit of the `reads` of all functions together, in bytes. Default 256 MiB. */
  readonly cacheLimit?: number;
  /** Keep runs and log lines: in the data folder if the store is there, otherwise in memory. Default: they are not kept. */
  readonly history?: HistoryLimits | undefined;
  /** Send traces of events to a collector. Default: there are no traces. */
  readonly traces?: TraceSettings | undefined;
  /** The log level of successful attempts. Default `debug`, because a busy runtime has thousands a second. */
  readonly successLevel?: "debug" | "info";
  /** The commands that are logged with a dead letter. Default: those for the default data folder. */
  readonly letterCommand?: DeadLetterCommand;
}

/** A replica that competes for the Lease. */
export interface Candidate extends Pick<ElectorOptions, "leaseMs"> {
  /** Replicas wait for a Lease of another identity. One with the same identity counts as dead. In a pod: `<pod>_<its uid>`. */
  readonly identity: string;
  /** Name of the pod or the machine, which identifies checkpoints on a volume. */
  readonly pod: string;
}

/** State of the executors that does not belong to one function. */
export interface Executors {
  /** Their rights, once they are known. */
  readonly rights: ExecutorRights | undefined;
  /** Why no executor can be started at present, if that is so. */
  readonly trouble: Pick<WatchfireError, "code" | "message"> | undefined;
  /** Memory limit of the executors' container, in bytes, if they have a separate one. */
  readonly memoryLimit?: number | undefined;
}

/** The components that a standby has as well, each constructed with its dependencies. */
export interface Components {
  readonly metrics: Metrics;
  readonly redactor: Redactor;
  /** Observes what handlers receive, for `watchfire record`. */
  readonly recorder: Recorder;
  /** The kinds that the API server serves. */
  readonly discovery: Discovery;
  /** The manifests that calls are checked against, updated together with the running code. */
  readonly manifests: Map<string, FunctionManifest>;
  /** Which instances in this process run each function. */
  readonly assignees: Assignees;
  readonly watchRoom: WatchRoom;
  /** Schedules the functions' time slices, and accounts for the event loop's time. */
  readonly scheduler: FairScheduler;
  readonly access: Access;
  /** Objects that belong to the runtime and not to a function. */
  readonly own: OwnObjects;
  /** Callbacks for each function call that the API server refuses, one for each store's functions. */
  readonly refusals: Set<(functionName: string) => void>;
  /** Called when the runtime aborts a function's canary. */
  readonly canaryAborted: (functionName: string, reason: string) => void;
  /** The runs and log lines of the last days; `undefined` without a history. */
  readonly history: RunHistory | undefined;
  /** Makes the spans of events; `undefined` without traces. */
  readonly tracer: Tracer | undefined;
  readonly spans: SpanExporter | undefined;
  readonly revokedWatches: RevokedWatches;
  readonly sandbox: Sandbox;
  /** Client of the supervisor, if executors run in another container. */
  readonly supervisor: SupervisorClient | undefined;
  readonly executors: () => Executors;
  readonly watches: Informers;
  /** The sets that their FunctionSets pause, by namespace. Empty without `functionStatus`. */
  readonly pausedSets: ReadonlyMap<string, PausedSets>;
  /** Objects that functions keep in memory with `reads`. */
  readonly reads: Reads;
  /** Present if there may be other replicas. */
  readonly elector: Elector | undefined;
}

/** The components including those that only one replica may have. A function is started with these. */
export interface ActiveComponents extends Components {
  readonly store: Checkpoint;
  readonly dispatcher: Dispatcher;
  readonly deadLetters: DeadLetters;
  readonly pauses: Pauses;
  /** The rights that the functions' accounts lack. `undefined` if functions have no accounts. */
  readonly grants: GrantWatch | undefined;
  /** Unsubscribes from the components that others may use as well. */
  readonly leave: () => Promise<void>;
}

/** The facts that components ask of the host, which is constructed from them. */
interface HostFacts {
  /** Returns the text of a function's file as it runs. */
  sourceText(functionName: string, file: string): string | undefined;
  /** The port of the endpoints, once they listen. */
  readonly port: number | undefined;
  canaryAborted(functionName: string, reason: string): void;
  /** Called when sets were paused or resumed. */
  setsChanged(): void;
}

/**
 * Creates the components of a standby.
 * @param host returns the host, once there is one
 */
export async function makeComponents(options: RuntimeOptions, host: () => HostFacts | undefined): Promise<Components> {
  const { transport, clock, random, log, metrics = new Metrics() } = options;
  const redactor = new Redactor();
  const recorder = new Recorder(clock, (name, data) => redactor.redactData(name, data));
  const manifests = new Map<string, FunctionManifest>();
  const discovery = new Discovery(transport, clock);
  const refusals: Components["refusals"] = new Set();
  const frameOf = (name: string, stack: string) => codeFrame(stack, (file) => host()?.sourceText(name, file));
  const history = options.history && historyOf(options, options.history, { metrics, redactor, frameOf });
  if (history && options.functionLog) options.functionLog.collector = history.lines;
  const spans = options.traces && new SpanExporter({ settings: options.traces, clock, log, ended: metrics.spansEnded });
  const tracer = spans && options.traces && tracerOf(options, options.traces, { spans, redactor, manifests });
  const elector = options.election && electorFor(options, options.election);
  const { namespace, account = runtimeAccount, election, reserved, setNamespaces } = options;
  const own = new OwnObjects({ namespace, setNamespaces, account, pod: election?.pod, reserved });
  const watches = new Informers({
    transport,
    discovery,
    clock,
    random,
    observer: { ...metrics.sources, stateChanged: sourceLog(log) },
  });
  const pausedSets = [namespace, ...(setNamespaces ?? [])].map((each) => {
    const changed = () => host()?.setsChanged();
    return [
      each,
      new PausedSets({ watches, namespace: each, labelSelector: selectorOf(account), clock, log, changed }),
    ] as const;
  });
  const reads = new Reads({
    watches,
    clock,
    specOf: (selection, place) => sourceOf(selection, place, own),
    limit: options.cacheLimit ?? cacheLimit,
    refused: (name, { message }) => log.error({ function: name, error: message }, "reads refused, its events wait"),
  });
  const scheduler = new FairScheduler(clock);
  const access = new Access({
    time: scheduler.time,
    reads,
    transport,
    discovery,
    own,
    functions: manifests,
    clock,
    random,
    log,
    observer: {
      ...metrics.access,
      ...(history && { listOf: (caller) => history.listOf(caller) }),
      ...(tracer && { spanOf: tracer.spanOf }),
    },
    accounts: options.accounts,
    refused: (name) => {
      for (const hear of refusals) hear(name);
    },
    warned: (name, text) => log.warn({ function: name, warning: redactor.redact(name, text) }, "the API server warns"),
    withheld: elector && withheldBy(elector),
    ...(options.dryRun && { unsent: showUnsent(log, redactor) }),
    ownPort: () => host()?.port,
    ...(options.proxies && { proxies: options.proxies }),
  });
  const { executorSocket, jitless = false } = options;
  const supervisor = executorSocket ? await SupervisorClient.listen(executorSocket, log, { jitless }) : undefined;
  const launch = supervisor?.launch ?? options.launch ?? launchAhead(1, executorProgram({ jitless }));
  const ownRights = supervisor ? undefined : childRights({ jitless });
  const missing = ownRights && !options.interactive ? missingRights(ownRights) : [];
  if (missing.length > 0) log.warn({ missing }, "executors have more rights than they need");
  const sandbox = new Sandbox({
    launch: inTurns(launch, () => supervisor?.cores ?? availableParallelism()),
    executors: Math.min(availableParallelism(), executorLimit),
    hostCalls: access,
    output: accounted(
      guestOutput(log, metrics.user, redactor, new LogLimit(clock), metrics.lineDropped, tracer?.traceOf),
      scheduler.time,
    ),
    observer: metrics.sandbox,
    clock,
    log,
  });
  sandbox.warm();
  return {
    metrics,
    redactor,
    recorder,
    discovery,
    manifests,
    assignees: new Assignees(),
    pausedSets: new Map(options.functionStatus ? pausedSets : []),
    watchRoom: new WatchRoom(),
    scheduler,
    access,
    own,
    refusals,
    canaryAborted: (name, reason) => host()?.canaryAborted(name, reason),
    history,
    tracer,
    spans,
    revokedWatches: new RevokedWatches({ transport, watches, clock }),
    sandbox,
    supervisor,
    executors: () => ({
      rights: supervisor?.rights ?? ownRights,
      trouble: supervisor?.trouble,
      memoryLimit: supervisor?.memoryLimit,
    }),
    watches,
    reads,
    elector,
  };
}

/** Creates the history, on the disk if the store is there as well. */
function historyOf(
  { data, store = "sqlite", clock, log }: RuntimeOptions,
  limits: HistoryLimits,
  {
    metrics,
    redactor,
    frameOf,
  }: Pick<Components, "metrics" | "redactor"> & Pick<ConstructorParameters<typeof RunHistory>[0], "frameOf">,
): RunHistory {
  return new RunHistory({
    ...{ limits, clock, log },
    folder: store === "sqlite" ? data : undefined,
    redact: (name, text) => redactor.redact(name, text),
    frameOf,
    dropped: metrics.notInHistory,
  });
}

/** Creates the tracer of the functions. The cluster is not known by name, so what distinguishes runtimes is what a user named. */
function tracerOf(
  { namespace, account = runtimeAccount, clock }: RuntimeOptions,
  { ratio, resource }: TraceSettings,
  { spans, redactor, manifests }: Pick<Components, "redactor" | "manifests"> & { readonly spans: SpanExporter },
): Tracer {
  return new Tracer({
    ...{ exporter: spans, ratio, clock },
    runtime: [resource["service.name"], resource["k8s.cluster.name"], namespace, account].join("\n"),
    redact: (name, text) => redactor.redact(name, text),
    manifestOf: (name) => manifests.get(name),
  });
}

/** Whether this replica may act, by the Lease of all functions or of a slot. */
export interface LeaseHold {
  readonly holds: boolean;
}

/** Logs a handler's write instead of sending it. */
const showUnsent =
  (log: Logger, redactor: Redactor): OnDryRunWrite =>
  ({ function: name, method, to, body }) => {
    const show = (text: string) => redactor.redact(name, text);
    const shown = body === undefined ? {} : { body: show(body) };
    log.info({ function: name, method, to: show(to), ...shown }, "dry run, not sent:");
  };

function electorFor(
  { transport, namespace, account = runtimeAccount, slots, nats, clock, random, log }: RuntimeOptions,
  { identity, pod, leaseMs }: Candidate,
): Elector {
  const lasting = leaseMs === undefined ? {} : { leaseMs };
  const label = accountLabel(account);
  if (slots !== undefined) {
    const api = fleetLeases(transport, { namespace, account, label }).member(identity);
    return new Elector({ api, identity, clock, random, log, makesAgain: true, ...lasting });
  }
  const api = leaseApi(transport, namespace, account);
  return new Elector({ api, identity, clock, random, log, eligible: eligibleFor(pod, nats), ...lasting });
}

/** Closes all components. */
export async function closeComponents(components: Components): Promise<void> {
  await components.revokedWatches.close();
  await components.watches.close();
  await components.sandbox.close(0);
  components.supervisor?.close();
  await components.access.close();
  await components.spans?.close();
  await components.history?.close();
}

/**
 * Returns the informer that a trigger or read needs in a namespace, "" for all. For Secrets it leaves out the runtime's own,
 * which hold the last bodies of other functions' objects.
 */
export function sourceOf(
  { apiVersion, kind, labelSelector, fieldSelector: selected, object }: Selection,
  namespace: string,
  own: Pick<OwnObjects, "hiding">,
): SourceSpec {
  const place = namespace === "" ? {} : { namespace };
  const isSecret = apiVersion === "v1" && kind === "Secret";
  const hiding = isSecret && own.hiding({ group: "", resource: "secrets", ...place });
  const fieldSelector = [hiding, selected].filter(Boolean).join(",");
  const form = object === "Metadata" ? ({ representation: "metadata" } as const) : {};
  return { apiVersion, kind, labelSelector, fieldSelector, ...place, ...form };
}

/** Refuses guests' calls unless the Lease is held, because another replica then runs the handler. */
const withheldBy = (hold: LeaseHold) => (): HostCallError | undefined => {
  if (hold.holds) return undefined;
  return { type: "TimeoutError", message: lostError("the call was not made").message, status: 0, reason: "LeaseLost" };
};

/** Tracks which instances in this process run a function. Several slots may each have a shard of it. */
export class Assignees {
  private readonly byName = new Map<string, Set<object>>();

  enter(name: string, assignee: object): void {
    const assignees = this.byName.get(name) ?? new Set();
    this.byName.set(name, assignees.add(assignee));
  }

  /** Returns true if no instance is left, so that the process's state of the function can be removed. */
  leave(name: string, assignee: object): boolean {
    const assignees = this.byName.get(name);
    assignees?.delete(assignee);
    if (assignees && assignees.size > 0) return false;
    this.byName.delete(name);
    return true;
  }
}
