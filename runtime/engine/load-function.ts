import { type KeyHeader, runSequence, type SpillHeader } from "../journal/batch.ts";
import { type Checkpoint, type StoredView, spillByTurns } from "../journal/checkpoint.ts";
import { OfflineReplayer } from "../journal/dead-letters.ts";
import type { Trigger } from "../manifest/function.ts";
import { scheduleKind } from "../manifest/schedule.ts";
import { hasNoObjects, resourceOf, scheduleResource } from "../manifest/trigger-record.ts";
import type { WrittenBodies } from "./account/loop-time.ts";
import { BatchingRunner } from "./batch/batching-runner.ts";
import { ConditionErrors } from "./condition-errors.ts";
import { epochOf, uidOf } from "./delivery/delivery.ts";
import { Filter } from "./filter/filter.ts";
import { KeyOf } from "./filter/key-rule.ts";
import { FunctionDispatch } from "./function-dispatch.ts";
import { History } from "./history/history.ts";
import { concernOf } from "./intake/passing.ts";
import { TriggerScope } from "./intake/trigger-scope.ts";
import { OwnState } from "./own-state/own-state.ts";
import { PossibleRedeliveries } from "./redelivery/possible-redeliveries.ts";
import type { StartedBefore } from "./redelivery/started-before.ts";
import type { Retirement } from "./retirement.ts";
import { ScheduledTrigger } from "./schedule/scheduled-trigger.ts";
import { KnownObjects } from "./state/known-objects.ts";
import { type KeptBody, RecordForm } from "./state/record-form.ts";
import type { Subscribers } from "./state/subscribers.ts";
import { editsOnRecord, openViews } from "./trigger-views.ts";
import { Attempts } from "./work/attempt.ts";
import type { Budget } from "./work/budget.ts";
import { EventMaker, type LoadedEvent } from "./work/event.ts";
import { EventQueue } from "./work/event-queue.ts";
import type { FairScheduler, FairShare } from "./work/fair-scheduler.ts";
import { type ReconcilingParts, reconcilingOf } from "./work/reconciling.ts";
import { resyncTrigger } from "./work/resync.ts";
import { type MemoryLimit, Spill } from "./work/spill.ts";
import { convertKeysToEvents } from "./work/waiting-keys.ts";

interface LoadParts extends ReconcilingParts {
  readonly usesOldObject: boolean;
  readonly startedBefore: StartedBefore;
  readonly written: WrittenBodies;
  readonly store: Checkpoint;
  readonly memoryLimit: MemoryLimit;
  /** The limits on waiting events in memory and on disk, shared by all functions. */
  readonly budgets: { readonly memory: Budget; readonly disk: Budget };
  /** The index of known objects, shared by all functions. */
  readonly subscribers: Subscribers<KnownObjects>;
  /** Shared by all functions. */
  readonly scheduler: FairScheduler;
  readonly retirement: Retirement;
}

/** The share of a function's memory that a list may use while it waits for its end. */
const listShare = 0.5;

/** The parts of a function that earlier ones call at work, and those that are closed if a later one cannot be built. */
interface FunctionGraph {
  /** The known objects of each trigger and schedule, by view. */
  readonly known: Map<number, KnownObjects>;
  /** By trigger. */
  readonly scopes: Map<string, TriggerScope>;
  queue?: EventQueue;
}

/**
 * Builds a function's dispatch from its manifest and its stored state, from the bottom up, and starts it. If that fails,
 * everything built so far is closed.
 */
export async function loadFunction(parts: LoadParts): Promise<FunctionDispatch> {
  const graph: FunctionGraph = { known: new Map(), scopes: new Map() };
  const share = parts.scheduler.addFunction(parts.manifest.name, () => graph.queue?.pump());
  try {
    return await build(parts, graph, share);
  } catch (error) {
    for (const objects of graph.known.values()) objects.close();
    share.time.close();
    throw error;
  }
}

async function build(parts: LoadParts, graph: FunctionGraph, share: FairShare): Promise<FunctionDispatch> {
  const { known: byId, scopes } = graph;
  const { manifest, usesOldObject, store, commits, clock, random, observer, log } = parts;
  await store.limitDeadLetters(manifest.name, manifest.delivery.deadLetters);
  const isReconciler = manifest.delivery.mode === "Reconcile";
  const byTrigger = new Map<string, KnownObjects>();
  const rules = new Map<number, KeyOf>();
  /** The views whose conditions read the previous object. */
  const comparing = new Set<number>();
  const conditionErrors = new ConditionErrors({ functionName: manifest.name, clock, observer, log });
  const history = new History(manifest.name, log);
  const edits = await editsOnRecord(store, manifest);
  const opened = await openViews(store, manifest);
  if (edits.length > 0) log.info({ function: manifest.name, edits }, "manifest edited");
  for (const trigger of manifest.triggers) {
    const resource = resourceOf(trigger);
    const { id, identity, cursors } = required(opened, trigger.name);
    const filter = new Filter(trigger, (error) => conditionErrors.add(trigger.name, error), undefined, share.time);
    const kept = isReconciler ? keptForKeys(trigger) : keptBody(trigger, usesOldObject, filter.needsOldBody);
    const compares = isReconciler || usesOldObject || filter.needsOldBody;
    const form = new RecordForm(trigger, kept);
    const of = { id, functionName: manifest.name, trigger, resource, identity, form };
    const keyOf = isReconciler && trigger.key ? new KeyOf(trigger.key, share.time) : undefined;
    if (keyOf) rules.set(id, keyOf);
    if (filter.needsOldBody) comparing.add(id);
    const objects = new KnownObjects({
      ...of,
      filter,
      compares,
      commits,
      history,
      keyOf,
      subscribers: parts.subscribers,
    });
    byId.set(id, objects);
    await store.known(id, (key, known) => objects.restore(key, known));
    // Waiting events and begun attempts belong to the epochs of the positions.
    for (const { namespace, epoch } of cursors) objects.enter(namespace, epoch);
    byTrigger.set(trigger.name, objects);
  }
  const opening = await openSchedules(parts, opened, history);
  for (const { objects } of opening) byId.set(objects.id, objects);
  // Opened even if the manifest has no resync: an edit may add one while the function runs.
  const resync = isReconciler ? await store.openView(manifest.name, resyncTrigger, scheduleResource) : undefined;
  await retireUnused(parts, new Set([...byId.keys(), ...(resync ? [resync.id] : [])]));
  const lostWrites = store.previousEnd === "power-loss";
  const primary = isReconciler ? [...byTrigger.values()].find(({ trigger }) => !trigger.key) : undefined;
  const { last, waiting, keys, replays } = await expectSpilled(store, manifest.name, byId);
  const [ours, others] = partition(keys, ({ view }) => view === primary?.id);
  const possibleRedeliveries = new PossibleRedeliveries(parts.startedBefore);
  const maker = new EventMaker(clock, possibleRedeliveries, last);
  for (const event of parts.startedBefore) {
    if (parts.startedBefore.isReplay(event) || runSequence(event.id) !== undefined) continue;
    byId.get(event.view)?.addStartedAttempt({ ...event, uid: uidOf(event.id), epoch: epochOf(event.id) });
  }
  const converted = await convertKeysToEvents(others, {
    functionName: manifest.name,
    commits,
    startedBefore: parts.startedBefore,
    primary,
    known: byId,
    replays,
    nextSequence: () => maker.nextSequence(),
    log,
    time: share.time,
  });
  const spill = new Spill({
    functionName: manifest.name,
    store,
    commits,
    known: byId,
    waiting: { events: waiting.events + converted.events.length, bytes: waiting.bytes + converted.bytes },
    limit: parts.memoryLimit,
    budgets: parts.budgets,
    time: share.time,
  });
  const names = new Map([...byId.values()].map(({ identity, trigger }) => [identity, trigger.name]));
  const state = new OwnState(manifest.name, store.ownState(manifest.name));
  const reconciling =
    primary &&
    resync &&
    (await reconcilingOf(parts, {
      primary,
      comparesChanges: comparing.has(primary.id),
      rules,
      names,
      keys: ours,
      replays: [...replays, ...converted.events],
      resync,
      maker,
      spill,
      time: share.time,
      state,
      source: {
        isSettledIn: (namespace) => scopes.get(primary.trigger.name)?.isSettled(namespace) ?? false,
        isInLane: (key) => graph.queue?.holds(primary, key) ?? false,
        pump: () => graph.queue?.pump(),
      },
    }));
  const restore = (event: LoadedEvent) => maker.restore(event, required(byId, event.view));
  const sink = reconciling?.wakes;
  const { batch, concurrency } = manifest.delivery;
  const runner = batch ? new BatchingRunner({ runner: parts.runner, clock, batch, concurrency }) : parts.runner;
  const attempts = new Attempts(
    { manifest, usesOldObject },
    { sink, spill, commits, runner, time: share.time, clock, random, observer, log, look: parts.look, state },
  );
  const queue = new EventQueue({
    attempts,
    spill,
    memoryLimit: parts.memoryLimit,
    share,
    restore,
    commits,
    clock,
    observer,
    log,
  });
  graph.queue = queue;
  const schedules = opening.map(
    (each) =>
      new ScheduledTrigger({
        ...each,
        lostWrites,
        nextSequence: () => maker.nextSequence(),
        commits,
        clock,
        log,
        time: share.time,
        queue,
      }),
  );
  queue.start();
  for (const schedule of schedules) schedule.begin();
  parts.written.add(byTrigger.values(), share.time);
  for (const [trigger, objects] of byTrigger) {
    const scope = new TriggerScope({
      objects,
      concerns: concernOf(objects, parts.shard, share.time),
      shard: parts.shard,
      cursors: required(opened, trigger).cursors,
      queue,
      maker,
      commits,
      time: share.time,
      clock,
      observer,
      listLimit: parts.memoryLimit.bytes * listShare,
      lostWrites,
    });
    scopes.set(trigger, scope);
  }
  reconciling?.keys.start();
  reconciling?.resync.start();
  return new FunctionDispatch({
    name: manifest.name,
    scopes,
    time: share.time,
    queue,
    reconciling,
    maker,
    shard: parts.shard,
    schedules,
    conditionErrors,
    history,
    commits,
    written: parts.written,
    clock,
    observer,
    lostWrites,
    letterStock: () => store.deadLetterStock(manifest.name),
    limitLetters: (limit) => store.limitDeadLetters(manifest.name, limit),
    drop: (letter) => new OfflineReplayer(store, (batch) => commits.past(batch)).drop(letter),
  });
}

/** Opens the schedules. A schedule's view holds its runs as a trigger's view holds changes: waiting ones and begun ones. */
async function openSchedules(
  { manifest, store, commits, shard }: LoadParts,
  opened: ReadonlyMap<string, StoredView>,
  history: History,
) {
  const found = [];
  // In mode Reconcile each shard wakes its own keys at that time.
  const isHere = !shard || shard.isFirst || manifest.delivery.mode === "Reconcile";
  for (const schedule of isHere ? manifest.schedules : []) {
    const trigger: Trigger = { ...everything, ...scheduleKind, name: schedule.name };
    const { id, identity, cursors } = required(opened, schedule.name);
    const form = new RecordForm(trigger, "None");
    const of = { id, functionName: manifest.name, trigger, resource: scheduleResource, identity, form };
    const objects = new KnownObjects({ ...of, filter: new Filter(trigger), compares: false, commits, history });
    await store.known(id, (key, known) => objects.restore(key, known));
    found.push({ schedule, objects, cursor: cursors[0] });
  }
  return found;
}

/** The fields of a trigger that filters nothing. */
const everything: Omit<Trigger, "name" | "apiVersion" | "kind"> = {
  namespaces: { type: "all" },
  labelSelector: "",
  fieldSelector: "",
  events: ["Scheduled"],
  initialEvents: "Skip",
  changedFields: [],
  matchConditions: [],
  object: "Full",
  lastBody: "Metadata",
};

/** Notifies the known objects of their events on disk. Returns the number of these, and the last sequence of all. */
async function expectSpilled(store: Checkpoint, name: string, known: ReadonlyMap<number, KnownObjects>) {
  let last = 0;
  const waiting = { events: 0, bytes: 0 };
  const keys: KeyHeader[] = [];
  const replays: SpillHeader[] = [];
  for await (const header of spillByTurns(store, name)) {
    last = header.sequence;
    const objects = known.get(header.view);
    if (!objects) continue;
    if (header.kind === "key") {
      keys.push(header);
      continue;
    }
    waiting.events++;
    waiting.bytes += header.size;
    const key = `${header.namespace}/${header.name}`;
    if (header.replayed) replays.push(header);
    else objects.expect({ ...header, key, epoch: epochOf(header.id) });
  }
  return { last, waiting, keys, replays };
}

/** Bodies are stored only if something reads them: a Deleted that is found, or the previous object. */
function keptBody({ lastBody, events }: Trigger, usesOldObject: boolean, filtersOnOld: boolean): KeptBody {
  return usesOldObject || filtersOnOld || events.includes("Deleted") ? lastBody : "None";
}

/** Reconciled objects are stored whole; of others only the part that decides their keys. */
const keptForKeys = ({ key, lastBody }: Trigger): KeptBody =>
  key?.type === "expression" ? lastBody : key ? "Metadata" : "Full";

/** Retires the views of triggers that the manifest no longer has. */
async function retireUnused(
  { manifest, store, commits, retirement }: LoadParts,
  used: ReadonlySet<number>,
): Promise<void> {
  const unused = (await store.views(manifest.name)).filter(({ id }) => !used.has(id));
  // A schedule that is put back starts from then, so its position is not needed.
  for (const { id, resource, cursors } of unused) {
    if (hasNoObjects(resource)) for (const { namespace } of cursors) commits.dropCursor(id, namespace);
  }
  await retirement.retire(unused);
  // The retirement is on record before anything is delivered, so that after a kill it is not reported a second time.
  if (unused.length > 0) await commits.sync();
  retirement.forget(used);
}

function required<K, T>(all: ReadonlyMap<K, T>, key: K): T {
  const found = all.get(key);
  if (!found) throw new TypeError(`no view ${key}`);
  return found;
}

function partition<T>(all: readonly T[], isFirst: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}
