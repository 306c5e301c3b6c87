import { availableParallelism } from "node:os";
import { Access } from "../access/access.ts";
import { runtimeAccount } from "../access/account.ts";
import type { FunctionAccounts } from "../access/function-accounts.ts";
import { OwnObjects } from "../access/own-objects.ts";
import { Redactor } from "../access/redactor.ts";
import type { TellUnsent } from "../access/rehearsal.ts";
import type { Clock, Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { FunctionCode } from "../catalog/function-code.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { accountLabel } from "../catalog/names.ts";
import type { TrustedKeys } from "../catalog/signature.ts";
import type { Pauses } from "../control/pauses.ts";
import { Recorder } from "../control/record/recorder.ts";
import type { DeadLetterCommand } from "../engine/commit/dead-letter-command.ts";
import type { BodyRoom } from "../engine/commit/deferred-rows.ts";
import type { Dispatcher } from "../engine/dispatcher.ts";
import type { Budget } from "../engine/work/budget.ts";
import { FairScheduler } from "../engine/work/fair-scheduler.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import { Informers } from "../informer/informers.ts";
import type { Checkpoint, StoreKind } from "../journal/checkpoint.ts";
import type { DeadLetters } from "../journal/dead-letters.ts";
import { Discovery } from "../kube/discovery.ts";
import type { ProxyEnvironment } from "../kube/proxy.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { Elector, lostError } from "../lease/elector.ts";
import { leaseApi } from "../lease/lease-api.ts";
import type { FunctionManifest, Selection } from "../manifest/function.ts";
import type { NatsPlace } from "../migrate/open-journal.ts";
import { eligibleFor } from "../migrate/open-store.ts";
import type { FunctionLog } from "../observe/function-log.ts";
import { accounted, guestOutput } from "../observe/guest-output.ts";
import type { Logger } from "../observe/log.ts";
import { LogLimit } from "../observe/log-limit.ts";
import type { LogWriter } from "../observe/log-writer.ts";
import { Metrics } from "../observe/metrics.ts";
import { sourceLog } from "../observe/source-log.ts";
import type { GrantWatch } from "../rbac/grant-watch.ts";
import { RevokedWatches } from "../rbac/revoked-watches.ts";
import { Reads } from "../reads/reads.ts";
import { childRights, executorProgram } from "../sandbox/executor-program.ts";
import { launchAhead } from "../sandbox/host/child-link.ts";
import type { Launch } from "../sandbox/host/link.ts";
import { Sandbox } from "../sandbox/host/sandbox.ts";
import { SupervisorClient } from "../sandbox/host/supervisor-client.ts";
import type { HostCallError } from "../sandbox/host-calls.ts";
import { type ExecutorRights, missingRights } from "../sandbox/rights.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import { WatchRoom } from "./watch-room.ts";

/** Handlers mostly wait for the cluster: beyond four processes of 60 MB each a node's cores are better left to others. */
const executorLimit = 4;

/** Bytes that the reads of all functions may take where nobody says how many, as `watchfire start` has it. */
const cacheLimit = 256 * 2 ** 20;

export interface RuntimeOptions {
  /** The functions folder; without one, only deployed functions run. */
  readonly functions?: string | undefined;
  /** The data folder; made if it is not there. */
  readonly data: string;
  readonly transport: KubeTransport;
  /** The runtime's own namespace: where `env` references are read. */
  readonly namespace: string;
  /** Functions act as accounts of their own. Default: all of them as the runtime's. */
  readonly accounts?: FunctionAccounts;
  /** The runtime's ServiceAccount. Default `watchfire`. */
  readonly account?: string;
  /** More objects of that namespace that no function may write, or read where they are Secrets. */
  readonly reserved?: readonly string[] | undefined;
  /** Take up, beside the folder's, what `watchfire deploy` wrote into the runtime's namespace. Default false. */
  readonly deployed?: boolean;
  /** Take up only what one of these keys signed, of the folder and of what was deployed. Default: whatever is there. */
  readonly trust?: TrustedKeys | undefined;
  /** Run for the Lease that `account` names, and do nothing before it is held. Default: nobody else is there. */
  readonly election?: Candidate | undefined;
  /** Where positions are kept: on a volume, or where every replica reaches them. Default `sqlite`. */
  readonly store?: StoreKind;
  /** Several replicas share the functions, spread over so many slots. Default: one replica has all of them. */
  readonly slots?: number | undefined;
  /** What the queues of several dispatchers share. Default: each has a quarter of the heap. */
  readonly memory?: Budget;
  /** Room for last bodies that they share. Default: of its own. */
  readonly bodyRoom?: BodyRoom;
  /** Which NATS keeps them, or kept them before. */
  readonly nats?: NatsPlace | undefined;
  /** Keep a Function object of each function in the runtime's namespace. Default false. */
  readonly functionStatus?: boolean;
  /** `spare`: how many ports after `port` may serve in its place where it is taken. Default 0. */
  readonly listen: { readonly host: string; readonly port: number; readonly spare?: number };
  /** Serve the console at the address of the endpoints. Default false. */
  readonly console?: boolean;
  /** A unix socket for a `watchfire executor` in a container of its own. Default: executors are children of this process. */
  readonly executorSocket?: string;
  /** Of the functions folder. Default: as it was built, or built when it is needed. */
  readonly code?: FunctionCode;
  /** The functions folder, where it is being read already, and its code with it. Default: read when it is needed. */
  readonly folder?: FunctionSource;
  /** The variables that name the proxies of handlers' requests: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. Default: none. */
  readonly proxies?: ProxyEnvironment;
  /** How executors are started where no socket is given. Default: as children of this process. */
  readonly launch?: Launch;
  /** Executors compile no machine code. `launch`, where it is given, has seen to that. Default false. */
  readonly jitless?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** What functions write is shown in the log, and not sent. Default false. */
  readonly dryRun?: boolean;
  /** What `log` goes through, where `watchfire logs` is to find the last lines. */
  readonly functionLog?: FunctionLog;
  /** Where `log` goes, if it may drop lines: they are counted. */
  readonly logWriter?: Pick<LogWriter, "heardBy">;
  /** Somebody sits before it: credentials that are refused at the start end it. Default: they may be renewed, and are tried again. */
  readonly interactive?: boolean;
  /** Bytes that the `reads` of all functions may take. Default 256 MiB. */
  readonly cacheLimit?: number;
  /** The log level of attempts that succeed. Default `debug`: a busy runtime has thousands a second. */
  readonly successLevel?: "debug" | "info";
  /** The commands that the log gives with a dead letter. Default: those for the default data folder. */
  readonly letterCommand?: DeadLetterCommand;
}

/** Who runs for the Lease. */
export interface Candidate {
  /** Another than this is waited for; whoever has the same is taken for dead. `<pod>_<its uid>` in a pod. */
  readonly identity: string;
  /** The pod's name, or the machine's: where positions on a volume are. */
  readonly pod: string;
}

/** The executors, as far as they are no function's. */
export interface Executors {
  /** What they may do, once that is known. */
  readonly rights: ExecutorRights | undefined;
  /** Why none can be started, while that is so. */
  readonly trouble: Pick<WatchfireError, "code" | "message"> | undefined;
  /** The memory limit of their own container, in bytes, where they have one. */
  readonly memoryLimit?: number | undefined;
}

/** The components that a standby has, too, each made and handed what it needs. */
export interface Components {
  readonly metrics: Metrics;
  readonly redactor: Redactor;
  /** What hears what handlers are given, for whoever records it. */
  readonly recorder: Recorder;
  /** What the API server serves. */
  readonly discovery: Discovery;
  /** The manifests that calls are checked against; kept in step with the code that runs. */
  readonly manifests: Map<string, FunctionManifest>;
  /** Who runs which function. */
  readonly tenants: Assignees;
  readonly watchRoom: WatchRoom;
  /** The turns of all functions, and the accounts of the parent's time. */
  readonly rota: FairScheduler;
  readonly access: Access;
  /** What is the runtime's own, and no function's. */
  readonly own: OwnObjects;
  /** Told when the API server refuses a function's call: one for each store's functions. */
  readonly refusals: Set<(functionName: string) => void>;
  /** Where the endpoints listen, once they do. */
  readonly endpoints: { port?: number };
  readonly revokedWatches: RevokedWatches;
  readonly sandbox: Sandbox;
  /** Where executors run in a container of their own. */
  readonly wardenDoor: SupervisorClient | undefined;
  readonly executors: () => Executors;
  readonly watches: Informers;
  /** What functions keep in memory. */
  readonly reads: Reads;
  /** Where other replicas may run. */
  readonly elector: Elector | undefined;
}

/** With those that only one replica may have; what a function's deployment works with. */
export interface ActiveComponents extends Components {
  readonly store: Checkpoint;
  readonly dispatcher: Dispatcher;
  readonly deadLetters: DeadLetters;
  readonly pauses: Pauses;
  /** Where functions have accounts of their own: what these lack. */
  readonly grants: GrantWatch | undefined;
  /** Hears no more of what goes on in the components that others may have as well. */
  readonly leave: () => Promise<void>;
}

/** Makes what a standby has. */
export async function makeComponents(options: RuntimeOptions): Promise<Components> {
  const { transport, clock, random, log } = options;
  const metrics = new Metrics();
  if (options.logWriter) options.logWriter.heardBy = metrics.lineDropped;
  const redactor = new Redactor();
  const recorder = new Recorder(clock, (name, data) => redactor.redactData(name, data));
  const manifests = new Map<string, FunctionManifest>();
  const discovery = new Discovery(transport, clock);
  const refusals: Components["refusals"] = new Set();
  const endpoints: Components["endpoints"] = {};
  const elector = options.election && electorFor(options, options.election);
  const { namespace, account = runtimeAccount, election, reserved } = options;
  const own = new OwnObjects({ namespace, account, pod: election?.pod, reserved });
  const watches = new Informers({
    transport,
    discovery,
    clock,
    random,
    observer: { ...metrics.sources, stateChanged: sourceLog(log) },
  });
  const reads = new Reads({
    watches,
    clock,
    specOf: (selection, place) => sourceOf(selection, place, own),
    limit: options.cacheLimit ?? cacheLimit,
    refused: (name, { message }) => log.error({ function: name, error: message }, "reads refused, its events wait"),
  });
  const rota = new FairScheduler(clock);
  const access = new Access({
    time: rota.time,
    reads,
    transport,
    discovery,
    own,
    functions: manifests,
    clock,
    random,
    log,
    observer: metrics.access,
    accounts: options.accounts,
    refused: (name) => {
      for (const hear of refusals) hear(name);
    },
    withheld: elector && withheldBy(elector),
    ...(options.dryRun && { unsent: showUnsent(log, redactor) }),
    ownPort: () => endpoints.port,
    ...(options.proxies && { proxies: options.proxies }),
  });
  const { executorSocket, jitless = false } = options;
  const wardenDoor = executorSocket ? await SupervisorClient.listen(executorSocket, log, { jitless }) : undefined;
  const launch = wardenDoor?.launch ?? options.launch ?? launchAhead(1, executorProgram({ jitless }));
  const ownRights = wardenDoor ? undefined : childRights({ jitless });
  const missing = ownRights && !options.interactive ? missingRights(ownRights) : [];
  if (missing.length > 0) log.warn({ missing }, "executors have more rights than they need");
  const sandbox = new Sandbox({
    launch,
    executors: Math.min(availableParallelism(), executorLimit),
    hostCalls: access,
    output: accounted(guestOutput(log, metrics.user, redactor, new LogLimit(clock), metrics.lineDropped), rota.time),
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
    tenants: new Assignees(),
    watchRoom: new WatchRoom(),
    rota,
    access,
    own,
    refusals,
    endpoints,
    revokedWatches: new RevokedWatches({ transport, watches, clock }),
    sandbox,
    wardenDoor,
    executors: () => ({
      rights: wardenDoor?.rights ?? ownRights,
      trouble: wardenDoor?.trouble,
      memoryLimit: wardenDoor?.memoryLimit,
    }),
    watches,
    reads,
    elector,
  };
}

/** What says whether this replica may act: the Lease of all functions, or of a slot. */
export interface LeaseHold {
  readonly holds: boolean;
}

/** A handler's write, as the log shows it in place of sending it. */
const showUnsent =
  (log: Logger, redactor: Redactor): TellUnsent =>
  ({ function: name, method, to, body }) => {
    const show = (text: string) => redactor.redact(name, text);
    const shown = body === undefined ? {} : { body: show(body) };
    log.info({ function: name, method, to: show(to), ...shown }, "dry run, not sent:");
  };

function electorFor(
  { transport, namespace, account = runtimeAccount, slots, nats, clock, random, log }: RuntimeOptions,
  { identity, pod }: Candidate,
): Elector {
  const label = accountLabel(account);
  if (slots !== undefined) {
    const api = fleetLeases(transport, { namespace, account, label }).member(identity);
    return new Elector({ api, identity, clock, random, log, makesAgain: true });
  }
  const api = leaseApi(transport, namespace, account);
  return new Elector({ api, identity, clock, random, log, eligible: eligibleFor(pod, nats) });
}

/** Closes every room. */
export async function closeComponents(components: Components): Promise<void> {
  await components.revokedWatches.close();
  await components.watches.close();
  await components.sandbox.close(0);
  components.wardenDoor?.close();
  await components.access.close();
}

/**
 * What a trigger or a read takes of a namespace, "" of all. Of Secrets: without the runtime's own, which hold the last bodies
 * of other functions' objects.
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

/** Makes guests' calls only while the Lease is held: what a handler asks for after that, another replica's handler does. */
const withheldBy = (hold: LeaseHold) => (): HostCallError | undefined => {
  if (hold.holds) return undefined;
  return { type: "TimeoutError", message: lostError("the call was not made").message, status: 0, reason: "LeaseLost" };
};

/** Who in this process runs a function: several slots may each have a shard of it. */
export class Assignees {
  private readonly byName = new Map<string, Set<object>>();

  enter(name: string, tenant: object): void {
    const tenants = this.byName.get(name) ?? new Set();
    this.byName.set(name, tenants.add(tenant));
  }

  /** Returns whether nobody is left: what the process has of the function may go. */
  leave(name: string, tenant: object): boolean {
    const tenants = this.byName.get(name);
    tenants?.delete(tenant);
    if (tenants && tenants.size > 0) return false;
    this.byName.delete(name);
    return true;
  }
}
