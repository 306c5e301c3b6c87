import type { FleetReport } from "../control/fleet-report.ts";
import { countsOf, type FunctionReport, recordedCountsOf } from "../control/function-status/function-report.ts";
import { reasonOfCode, reasonOfState, type StatusReason } from "../control/function-status/reason.ts";
import type { Pause } from "../control/pauses.ts";
import type { UnloadedCounts } from "../engine/dispatcher.ts";
import type { FunctionStatus, KeyCounts } from "../engine/function-dispatch.ts";
import type { SourceStatus } from "../informer/fanout/observer.ts";
import { retirementMs } from "../journal/checkpoint.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import type { RejectedFunction } from "../manifest/load.ts";
import { scheduleKind } from "../manifest/schedule.ts";
import type { FunctionReads } from "../reads/function-reads.ts";
import { memoryBeyond } from "../sandbox/container-size.ts";
import type { CanaryState } from "../sandbox/host/canary-route.ts";
import type { HostedState } from "../sandbox/host/hosted-function.ts";
import type { ExecutorRights } from "../sandbox/rights.ts";
import type { Executors } from "./components.ts";
import type { LiveFunction, Trouble } from "./live-function.ts";
import { explainedStates, type ReadinessParts, sourcesByKey } from "./readiness.ts";

/** The answer of `/status`. */
export interface Status {
  readonly role: "active" | "standby";
  /**
   * On a standby: the holder of the Lease ("" if there is no holder), and why this replica does not take it, or cannot start with
   * it. On the active replica: why it cannot annotate the Lease, if that is so.
   */
  readonly lease?: { readonly holder: string; readonly obstacle?: string | undefined };
  /** Present on a replica of a fleet. */
  readonly fleet?: FleetReport;
  /** Why checkpoints cannot be saved at present. No handler starts meanwhile. */
  readonly checkpoint?: { readonly reason: string; readonly message: string };
  /** The fault, with its code, because of which deployed functions are not the running ones. */
  readonly deployment?: { readonly reason: string; readonly message: string };
  /** Why the history of runs is off, unless it is meant to be. */
  readonly history?: { readonly reason: string; readonly message: string };
  /** The executors' rights, once one could be started, and why no executor can be started, if that is so. */
  readonly sandbox: { readonly rights?: ExecutorRights; readonly reason?: string; readonly message?: string };
  readonly functions: readonly FunctionReport[];
  readonly sources: readonly (SourceReport | StandbySource)[];
}

/** One informer. */
interface SourceReport extends SourceStatus {
  /** Why it is not read. Absent if it is. */
  readonly reason?: StatusReason;
}

/** An informer that a standby would start. */
interface StandbySource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly state: "standby";
}

export interface StatusParts extends ReadinessParts {
  readonly liveFunctions: readonly LiveFunction[];
  readonly role: Status["role"];
  /** Why the last write to the checkpoint failed. */
  readonly checkpoint: Trouble | undefined;
  /** Why the history of runs is off. */
  readonly history?: Trouble | undefined;
  readonly executors: Executors;
  readonly rejected: readonly RejectedFunction[];
  readonly dispatch: readonly FunctionStatus[];
  /** Returns what is on record of a function that is not loaded here. */
  readonly unloaded: (functionName: string) => UnloadedCounts | undefined;
  /** Functions that are gone and of which something is on record; since when, in epoch milliseconds. */
  readonly suspended: ReadonlyMap<string, number | undefined>;
  /** Returns a function's objects in memory. Default: no objects. */
  readonly reads?: (functionName: string) => FunctionReads | undefined;
  readonly redact: (functionName: string, text: string) => string;
  /** Returns why a function starts no attempt, if it is paused. */
  readonly paused: (functionName: string) => Pause | undefined;
  /** Returns what a running function's account lacks at the API server. */
  readonly forbidden: (functionName: string) => Trouble | undefined;
}

/** Informer states, from healthy to the one that most needs attention. */
const severity = ["watching", "listing", "discovering", "backoff", "missing", "forbidden", "degraded"];

/** An informer without a connection for this long is reported for its functions, in milliseconds. */
const awayLimitMs = 60_000;

/** Combines the reports of all components into the status. */
export function describeStatus(parts: StatusParts): Status {
  const running = standingsOf(parts).map((standing) => describeFunction(standing, parts));
  const refused = refusedOf(parts).map((each) => ({ ...describeRefused(each), ...recordedCounts(each.name, parts) }));
  const suspended = [...parts.suspended].map(([name, since]) => describeSuspended(name, since, parts));
  const { role, checkpoint, deployment, history } = parts;
  return {
    role,
    ...(checkpoint && { checkpoint: describeTrouble(checkpoint) }),
    ...(deployment && { deployment: describeTrouble(deployment) }),
    ...(history && { history: describeTrouble(history) }),
    sandbox: describeExecutors(parts.executors),
    functions: [...running, ...refused, ...suspended],
    sources: parts.sources.map((source) => {
      const reason = reasonOfState(source.state);
      return reason ? { ...source, reason } : source;
    }),
  };
}

const describeExecutors = ({ rights, trouble }: Executors): Status["sandbox"] => ({
  ...(rights && { rights }),
  ...(trouble && describeTrouble(trouble)),
});

const describeTrouble = ({ code, message }: Trouble) => ({ reason: code, message });

/** Describes a standby: the functions that it would run, and the holder it waits for. */
export function describeStandby(
  manifests: readonly FunctionManifest[],
  rejected: readonly RejectedFunction[],
  lease: Status["lease"],
  deployment: Trouble | undefined,
  executors: Executors,
): Status {
  const message = lease?.obstacle ?? (lease?.holder ? `${lease.holder} is the active one` : "it runs for the Lease");
  const sources = manifests.flatMap(({ triggers }) => triggers).flatMap(standbySources);
  return {
    role: "standby",
    ...(lease && { lease }),
    ...(deployment && { deployment: describeTrouble(deployment) }),
    sandbox: describeExecutors(executors),
    functions: [
      ...manifests.map(({ name, triggers, schedules }) => ({
        name,
        ready: false,
        reason: "Standby" as const,
        message,
        triggers: [
          ...triggers.map(({ name, apiVersion, kind }) => ({ name, apiVersion, kind, state: "standby" })),
          ...schedules.map(({ name }) => ({ name, ...scheduleKind, state: "standby" })),
        ],
      })),
      ...rejected.map(describeRefused),
    ],
    sources: [...new Map(sources.map((source) => [JSON.stringify(source), source])).values()],
  };
}

function standbySources({ apiVersion, kind, namespaces }: Trigger): StandbySource[] {
  const source = { apiVersion, kind, state: "standby" } as const;
  return namespaces.type === "names" ? namespaces.names.map((namespace) => ({ ...source, namespace })) : [source];
}

export function describeRefused({ name, file, faults }: RejectedFunction): FunctionReport {
  const code = faults[0]?.code ?? "WF_RUNTIME_INTERNAL";
  return {
    name: name ?? file,
    ready: false,
    reason: reasonOfCode(code),
    code,
    message: faults.map((fault) => fault.message).join("\n"),
    triggers: [],
  };
}

/** Describes a function that is gone, or of which only dead letters are left. */
function describeSuspended(name: string, since: number | undefined, parts: StatusParts): FunctionReport {
  const until = since === undefined ? undefined : new Date(since + retirementMs).toISOString();
  const message =
    until === undefined
      ? "it was removed; its dead letters are kept until they are dropped"
      : `it was removed; its events on disk are kept until ${until}, and are delivered if the function is put back by then${parts.paused(name) ? " and resumed, since it is paused" : ""}`;
  return { name, ready: false, reason: "Suspended", message, ...recordedCounts(name, parts), triggers: [] };
}

/** The counts of a function that is not loaded, as far as they are known. Nothing of it is in memory. */
function recordedCounts(name: string | undefined, { unloaded }: Pick<StatusParts, "unloaded">) {
  const found = name === undefined ? undefined : unloaded(name);
  if (!found) return {};
  return recordedCountsOf(found.letterStock, found.waiting);
}

/** The readiness of each function and its reason, without the counts, which are expensive. */
export function describeStandings(parts: StatusParts): Pick<FunctionReport, "name" | "ready" | "reason">[] {
  const running = standingsOf(parts).map(({ liveFunction: { name }, trouble, said }) => {
    return { name, ready: trouble === undefined, ...(said && { reason: said.reason }) };
  });
  return [...running, ...refusedOf(parts).map(describeRefused)];
}

/** Returns the rejected functions of which no other version runs. */
function refusedOf({ rejected, liveFunctions }: StatusParts): readonly RejectedFunction[] {
  const names = new Set(liveFunctions.map(({ name }) => name));
  return rejected.filter(({ name }) => name === undefined || !names.has(name));
}

/** The state of a started function. */
type FunctionState = ReturnType<typeof standingOf>;

function standingsOf(parts: StatusParts): FunctionState[] {
  const sources = sourcesByKey(parts.sources);
  const counts = new Map(parts.dispatch.map((each) => [each.function, each]));
  return parts.liveFunctions.map((each) => standingOf(each, parts, sources, counts.get(each.name)));
}

function standingOf(
  liveFunction: LiveFunction,
  parts: StatusParts,
  sources: ReadonlyMap<string, SourceStatus>,
  counts: FunctionStatus | undefined,
) {
  const { sandbox, forbidden, paused, checkpoint, executors } = parts;
  const { name, state, manifest, refusal } = liveFunction;
  const sourcesOf = (trigger: string) => liveFunction.sources(trigger).flatMap((key) => sources.get(key) ?? []);
  const triggers = manifest.triggers.map((trigger) => {
    const own = sourcesOf(trigger.name);
    const worst = worstOf(own);
    return {
      name: trigger.name,
      apiVersion: trigger.apiVersion,
      kind: trigger.kind,
      state: worst?.state ?? "idle",
      ...(worst?.message === undefined ? {} : { message: worst.message }),
      ...conditionErrorsOf(counts, trigger.name),
    };
  });
  const kept = parts.reads?.(name);
  const reads = describeReads(kept, sources, worstOf);
  const lacking = forbidden(name);
  const pause = paused(name);
  const mayRun = state.type === "starting" || state.type === "running";
  const trouble =
    (mayRun ? saidOf(executors.trouble) : undefined) ??
    stopOf(lacking ? { type: "waiting", fault: lacking } : state, sandbox(name), triggers) ??
    saidOf(checkpoint) ??
    (pause && pausedBy(name, pause)) ??
    readsTrouble(kept, reads) ??
    (counts?.keys?.full ? tooManyKeys(counts.keys) : undefined) ??
    (counts?.full ? backlogged : undefined) ??
    awayOf(manifest.triggers.flatMap(({ name }) => sourcesOf(name))) ??
    (liveFunction.behind.length > 0 ? (backingOff(triggers) ?? catchingUp) : undefined);
  const canary = liveFunction.canary.state;
  const said =
    trouble ??
    refusalOf(refusal) ??
    abortOf(canary) ??
    backingOff(triggers) ??
    beyondContainer(manifest, executors) ??
    overShare(counts) ??
    readsNote(reads);
  return { liveFunction, counts, triggers, reads, pause, canary, trouble, said };
}

function describeFunction(standing: FunctionState, parts: StatusParts): FunctionReport {
  const { liveFunction, counts, triggers, reads, pause, canary, trouble, said } = standing;
  const { name, manifest, origin } = liveFunction;
  const { lastEvent } = counts ?? {};
  return {
    name,
    ...(manifest.trustGroup !== undefined && { trustGroup: manifest.trustGroup }),
    ...(origin.type === "config-map" && { set: origin.set }),
    ready: trouble === undefined,
    ...(said && { ...said, message: parts.redact(name, said.message) }),
    ...(pause && { paused: pause.by }),
    ...(counts
      ? countsOf({ ...counts, deadLettersWithoutBody: counts.letterStock.withoutBody })
      : recordedCounts(name, parts)),
    ...(counts?.keys && { keys: { count: counts.keys.count, withoutObject: counts.keys.withoutObject } }),
    ...(lastEvent === undefined ? {} : { lastEvent: new Date(lastEvent).toISOString() }),
    ...filteredOf(counts),
    triggers: [...triggers, ...manifest.schedules.map(({ name: trigger }) => describeSchedule(trigger, counts))],
    ...(canary && { canary: describeCanary(canary, (text) => parts.redact(name, text)) }),
    ...(reads.length > 0 && { reads }),
  };
}

function describeCanary(
  { id, share, since, aborted, current, canary }: CanaryState,
  redact: (text: string) => string,
): FunctionReport["canary"] {
  const state = aborted === undefined ? ("running" as const) : ("aborted" as const);
  const reason = aborted === undefined ? {} : { reason: redact(aborted) };
  return { id, share, state, ...reason, since: new Date(since).toISOString(), current, canary };
}

function describeSchedule(name: string, counts: FunctionStatus | undefined): FunctionReport["triggers"][number] {
  const next = counts?.schedules.find(({ trigger }) => trigger === name)?.next;
  const when = next === undefined ? {} : { next: new Date(next).toISOString() };
  return { name, ...scheduleKind, state: "scheduled", ...when };
}

const worstOf = (sources: readonly SourceStatus[]): SourceStatus | undefined =>
  sources.length < 2
    ? sources[0]
    : sources.toSorted((a, b) => severity.indexOf(b.state) - severity.indexOf(a.state))[0];

function filteredOf(counts: FunctionStatus | undefined): Pick<FunctionReport, "filtered"> {
  if (!counts || counts.filtered.length === 0) return {};
  return { filtered: counts.filtered.map((each) => ({ ...each, last: new Date(each.last).toISOString() })) };
}

function conditionErrorsOf(counts: FunctionStatus | undefined, trigger: string) {
  const own = (counts?.conditionErrors ?? []).filter((trouble) => trouble.trigger === trigger);
  if (own.length === 0) return {};
  return { conditionErrors: own.map(({ condition, count, message }) => ({ condition, count, message })) };
}

type StateMessage = Required<Pick<FunctionReport, "reason" | "message">> & Pick<FunctionReport, "code">;

const backlogged: StateMessage = {
  reason: "Backlogged",
  message:
    "its share of the disk is full: it accepts no more events until its handler has caught up, and then continues where it stopped",
};

/** Overruns below this many seconds are not reported; a list takes as long. */
const overShareSeconds = 1;

function overShare(counts: FunctionStatus | undefined): StateMessage | undefined {
  const { overShareSeconds: seconds = 0, parentSeconds } = counts ?? {};
  if (seconds < overShareSeconds) return undefined;
  const spent = [...(parentSeconds ?? [])].map(([work, of]) => `${work} ${of.toFixed(1)} s`).join(", ");
  const message = `it has used more than its share of the event loop for ${seconds.toFixed(0)} s (so far ${spent}): its events and calls wait for its turns; other functions do not wait for it`;
  return { reason: "Throttled", message };
}

/**
 * Warns if a function's memory limit exceeds its container's. It runs while its handlers use less; one that uses its limit would
 * end the container.
 */
function beyondContainer({ resources }: FunctionManifest, { memoryLimit }: Executors): StateMessage | undefined {
  return memoryLimit === undefined ? undefined : saidOf(memoryBeyond(resources.memoryBytes, memoryLimit));
}

const tooManyKeys = ({ count, withoutObject }: KeyCounts): StateMessage => ({
  reason: "KeysFull",
  message: `${count} keys wait to run, now or later, ${withoutObject} of them without an object: changes wait, in order, until there are fewer`,
});

function pausedBy(name: string, pause: Pause): StateMessage {
  const who =
    pause.by === "manifest"
      ? "its manifest says `paused: true`"
      : pause.by === "set"
        ? `the FunctionSet ${pause.set} says \`paused: true\``
        : `paused by a command at ${new Date(pause.since).toISOString()}, until \`watchfire resume ${name}\``;
  return { reason: "Paused", message: `${who}; changes wait meanwhile, in order` };
}

const saidOf = (trouble: Trouble | undefined): StateMessage | undefined =>
  trouble && { reason: reasonOfCode(trouble.code), code: trouble.code, message: trouble.message };

const catchingUp: StateMessage = { reason: "CatchingUp", message: "its first lists are being read" };

/** Returns why the function receives no events, or not all. */
function stopOf(
  state: LiveFunction["state"],
  sandbox: HostedState | undefined,
  triggers: FunctionReport["triggers"],
): StateMessage | undefined {
  if (state.type === "starting") return { reason: "Starting", message: "it is being built and loaded" };
  if (state.type !== "running") {
    const { code, message } = state.fault;
    return { reason: reasonOfCode(code), code, message };
  }
  if (sandbox?.state === "failed") return { reason: "LoadFailed", message: sandbox.detail };
  if (sandbox?.state === "parked") return { reason: "Parked", message: sandbox.detail };
  if (sandbox?.state === "loading" && sandbox.detail !== "") return { reason: "Starting", message: sandbox.detail };
  if (sandbox?.state === "quarantined") return { reason: "Quarantined", message: sandbox.detail };
  return triggerTrouble(triggers.find(({ state }) => explainedStates.has(state)));
}

/** Reports that the newest files do not run. */
function refusalOf(refusal: LiveFunction["refusal"]): StateMessage | undefined {
  if (!refusal) return undefined;
  const { code, message } = refusal;
  // Only the sharding is refused. The code and the rest of the manifest run.
  const how =
    code === "WF_LEASE_SHARDS" ? "it runs without this part" : "the change is refused, the old version runs on";
  return { reason: "ChangeRefused", code, message: `${how}: ${message}` };
}

/** Reports that the canary gets no keys any more, which only a command changes. */
function abortOf(canary: CanaryState | undefined): StateMessage | undefined {
  if (canary?.aborted === undefined) return undefined;
  const message = `its canary is aborted, and its current code gets all keys: ${canary.aborted}`;
  return { reason: "CanaryAborted", message };
}

/** Reports an informer that was connected and has lost its connection for longer than a moment. */
function awayOf(sources: readonly SourceStatus[]): StateMessage | undefined {
  const away = sources.find(({ awayMs = 0 }) => awayMs >= awayLimitMs);
  if (!away) return undefined;
  return { reason: "Unreachable", message: away.lastError?.message ?? `not connected for ${away.awayMs} ms` };
}

/** Reports that the API server is away. For a function that has caught up this is temporary. */
const backingOff = (triggers: FunctionReport["triggers"]): StateMessage | undefined =>
  triggerTrouble(triggers.find(({ state }) => state === "backoff"));

function triggerTrouble(trigger: FunctionReport["triggers"][number] | undefined): StateMessage | undefined {
  const reason = trigger && reasonOfState(trigger.state);
  if (!reason) return undefined;
  return { reason, message: trigger.message ?? `the trigger ${trigger.name} is in state ${trigger.state}` };
}

type Reported = NonNullable<FunctionReport["reads"]>;

/** Reports the objects that a function keeps in memory, with the worst state of each read's informers. */
function describeReads(
  reads: FunctionReads | undefined,
  sources: ReadonlyMap<string, SourceStatus>,
  worst: (of: readonly SourceStatus[]) => SourceStatus | undefined,
): Reported {
  return (reads?.report() ?? []).map(({ sources: keys, ...report }) => {
    const source = worst(keys.flatMap((key) => sources.get(key) ?? []));
    return {
      ...report,
      state: source?.state ?? "idle",
      ...(source?.message !== undefined && { message: source.message }),
    };
  });
}

/** Returns why the function receives no events because of its reads: they exceed a limit, or a first list is missing. */
function readsTrouble(reads: FunctionReads | undefined, reported: Reported) {
  if (reads?.fault) {
    const { code, message } = reads.fault;
    return { reason: reasonOfCode(code), code, message };
  }
  const stuck = reported.find(({ ready, state }) => !ready && explainedStates.has(state));
  return stuck && saidOfRead(stuck);
}

/** Returns a note about a running function's reads. */
const readsNote = (reported: Reported) => {
  const noted = reported.find(({ state }) => explainedStates.has(state));
  return noted && saidOfRead(noted);
};

function saidOfRead({ apiVersion, kind, state, message }: Reported[number]): { reason: StatusReason; message: string } {
  const why = message ?? `its source is in state ${state}`;
  const shown = state === "missing" ? "is empty" : "is not kept up";
  return {
    reason: reasonOfState(state) ?? "InternalError",
    message: `the read of ${apiVersion} ${kind} ${shown}: ${why}`,
  };
}
