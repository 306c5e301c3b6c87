import type { Clock } from "../base/clock.ts";
import type { ResourceVersion } from "../base/resource-version.ts";
import { type Change, type ObjectMeta, objectKey } from "../informer/scan/change.ts";
import type { DeadLetter, SpilledEvent } from "../journal/batch.ts";
import type { DeadLetterLimit, DeadLetterStock } from "../journal/dead-letter-stats.ts";
import { replayedEvent } from "../journal/dead-letters.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoopAccount, WrittenBodies } from "./account/loop-time.ts";
import type { Commits } from "./commit/commits.ts";
import type { ConditionErrors, ConditionTrouble } from "./condition-errors.ts";
import { eventId } from "./delivery/delivery.ts";
import type { EngineObserver } from "./delivery/observer.ts";
import type { WakesNext } from "./filter/key-rule.ts";
import type { FilteredEvent, HeldBackCount, History, PastRun } from "./history/history.ts";
import type { Subscription } from "./intake/subscription.ts";
import type { SourceRef, TriggerScope } from "./intake/trigger-scope.ts";
import type { ScheduledTrigger } from "./schedule/scheduled-trigger.ts";
import type { Preview } from "./state/known-objects.ts";
import type { Shard } from "./state/sharding.ts";
import { type EventMaker, withUid } from "./work/event.ts";
import type { EventQueue } from "./work/event-queue.ts";
import type { LaneReport } from "./work/lane.ts";
import type { Reconciling } from "./work/reconciling.ts";

/** The state of one object under one trigger, for a user who asks why a handler did not receive it. */
export interface ObjectReport {
  /** The trigger's position in the object's namespace; `undefined` if it does not read that namespace. */
  readonly position: { readonly lowWaterMark: ResourceVersion | undefined; readonly ready: boolean } | undefined;
  /** Whether it belongs to another shard; `undefined` for a function without shards. */
  readonly isElsewhere?: boolean | undefined;
  /** The object's state after all waiting events; `undefined` if the trigger never saw it, or forgot it. */
  readonly known: { readonly resourceVersion: ResourceVersion; readonly deleted: boolean } | undefined;
  /** Whether no state of it is stored, because the conditions held for no state that was received. */
  readonly hasNeverMatched: boolean;
  /** The object's events that wait in memory; `undefined` if no event does. */
  readonly lane: LaneReport | undefined;
  /** Whether an event of it waits, in memory or on disk. */
  readonly waits: boolean;
  /** The object's share of the trigger's last ones, newest first. */
  readonly filtered: readonly FilteredEvent[];
  readonly runs: readonly PastRun[];
  /** The verdict on an event with the object's current state; `undefined` if the object was not fetched. */
  readonly next: Preview | undefined;
  /** In mode Reconcile, the keys that such an event would wake; `undefined` if the object was not fetched. */
  readonly wakes?: WakesNext | undefined;
}

/** The number of the object's filtered events, and of its runs, in a report. */
export const mostReported = 5;

/** The runs of a schedule, as far as dispatch knows them. */
export interface ScheduleReport {
  /** Whether another shard has it. */
  readonly isElsewhere: boolean;
  /** The begin of the next run, in epoch milliseconds; `undefined` if there is no next run. */
  readonly next: number | undefined;
  /** Whether a run waits, or is in progress. */
  readonly isBusy: boolean;
  /** Newest first. */
  readonly runs: readonly PastRun[];
}

/** The number of keys that are to run, now or later. */
export interface KeyCounts {
  readonly count: number;
  readonly withoutObject: number;
  readonly full: boolean;
}

/** The status of a function; times are epoch milliseconds. */
export interface FunctionStatus {
  readonly function: string;
  /** Whether every source that it reads has listed or resumed. */
  readonly ready: boolean;
  /** Age of the oldest unfinished event in seconds; 0 if every event is finished. */
  readonly lagSeconds: number;
  /**
   * Age of the oldest event that could run and has not begun, in seconds; 0 if there is no such event, or the function is held.
   */
  readonly dueSeconds: number;
  /** Events that wait in memory, those in handlers, and those on disk. */
  readonly queued: number;
  readonly inFlight: number;
  readonly spilled: number;
  /** The number of keys whose handler asked for a later time. */
  readonly requeued: number;
  /**
   * In mode Reconcile: the keys that are to run, now or later, and how many of them have no object. `full`: changes wait until
   * there are fewer.
   */
  readonly keys?: KeyCounts | undefined;
  /** Whether it accepts nothing until its handler has caught up, because its share of the room for waiting events is used up. */
  readonly full: boolean;
  /** How long it has exceeded its share of the event loop's time, in seconds; `undefined` if it does not. */
  readonly overShareSeconds: number | undefined;
  /** The event loop's time spent on it since it was loaded, by kind of work. */
  readonly parentSeconds: ReadonlyMap<string, number>;
  /** The number of lanes held by an event that is out of attempts, as the manifest asks. */
  readonly blockedLanes: number;
  /** The end of the last attempt. */
  readonly lastEvent: number | undefined;
  readonly deadLetters: number;
  /** The size of its dead letters, and how many were deleted for lack of room. */
  readonly letterStock: DeadLetterStock;
  /** Failed attempts since the start. */
  readonly failures: number;
  /** Conditions that could not be evaluated since the start. */
  readonly conditionErrors: readonly ConditionTrouble[];
  /** The number of its filtered events since it was loaded, by reason. */
  readonly filtered: readonly HeldBackCount[];
  /** The next runs of its schedules, in epoch milliseconds; `undefined` if there is no next run. */
  readonly schedules: readonly { readonly trigger: string; readonly next: number | undefined }[];
  readonly subscriptions: readonly { readonly id: string; readonly lowWaterMark: ResourceVersion | undefined }[];
}

interface FunctionDispatchParts {
  readonly name: string;
  /** By trigger. */
  readonly scopes: ReadonlyMap<string, TriggerScope>;
  readonly queue: EventQueue;
  readonly time: LoopAccount;
  /** In mode Reconcile: wakes and runs the keys. */
  readonly reconciling: Reconciling | undefined;
  readonly maker: EventMaker;
  readonly schedules: readonly ScheduledTrigger[];
  /** The part of the function that runs here; `undefined` for the whole function. */
  readonly shard: Shard | undefined;
  readonly conditionErrors: ConditionErrors;
  readonly history: History;
  readonly commits: Commits;
  readonly written: WrittenBodies;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  /** Whether the last writes before the start may be missing. */
  readonly lostWrites: boolean;
  readonly letterStock: () => DeadLetterStock;
  readonly limitLetters: (limit: DeadLetterLimit) => Promise<void>;
  /** Deletes a dead letter from the store. */
  readonly drop: (letter: DeadLetter) => Promise<void>;
}

/** One loaded function. */
export class FunctionDispatch {
  readonly name: string;
  private readonly parts: FunctionDispatchParts;

  constructor(parts: FunctionDispatchParts) {
    this.name = parts.name;
    this.parts = parts;
  }

  /** Returns the subscriber for one of a trigger's sources; the same one for the same source. */
  subscription(trigger: string, source: SourceRef): Subscription {
    return this.scope(trigger).subscription(source);
  }

  /** Whether an object belongs to this instance, and not only to another shard. */
  concerns(trigger: string, change: Change): boolean {
    return this.scope(trigger).concerns(change);
  }

  /** Whether to trust a complete list of a trigger's namespaces, and call `retain` with it. */
  believes(trigger: string, namespaces: readonly string[]): boolean {
    return this.scope(trigger).believes(namespaces);
  }

  /** Sets all namespaces that a trigger reads. Known objects of others are delivered as Deleted, `unselected`. */
  retain(trigger: string, namespaces: readonly string[]): void {
    this.scope(trigger).retain(namespaces);
  }

  /**
   * Replaces the code. Waits until running attempts have ended on the old code, and lets no attempt begin meanwhile; then calls
   * `swap`, which installs the new code. If `swap` fails, so does this, and the old code continues.
   */
  async replace(manifest: FunctionManifest, usesOldObject: boolean, swap: () => Promise<void>): Promise<void> {
    const { queue, reconciling } = this.parts;
    await Promise.all([queue.pause(), reconciling?.keys.pause()]);
    try {
      await swap();
    } catch (error) {
      reconciling?.keys.resume();
      queue.resume();
      throw error;
    }
    const code = { manifest, usesOldObject };
    reconciling?.keys.resumeWith(code);
    queue.resumeWith(code);
    this.parts.observer.declared?.(manifest);
    await this.parts.limitLetters(manifest.delivery.deadLetters);
  }

  /** Lets no attempt begin until `release`. Events are still accepted and kept. */
  hold(): void {
    const { queue, reconciling } = this.parts;
    // Changes still wake keys: no handler is called for that.
    (reconciling?.keys ?? queue).hold();
  }

  /** Ends a hold. Waiting retries are attempted at once. */
  release(): void {
    const { queue, reconciling } = this.parts;
    (reconciling?.keys ?? queue).release();
  }

  /** Whether an event may still arrive, or waits, that an earlier process may have handled without a record. */
  get hasUnpersistedRisk(): boolean {
    const { lostWrites, queue } = this.parts;
    if (!lostWrites) return false;
    const scopes = [...this.parts.scopes.values()].filter(({ readsNothing }) => !readsNothing);
    if (scopes.length > 0 && this.subscriptions.length === 0) return true;
    if (scopes.some(({ hasUnpersistedRisk }) => hasUnpersistedRisk)) return true;
    return queue.hasUnpersistedRisk;
  }

  /** Stops accepting events and beginning attempts. Resolves when nothing runs. */
  async stop(): Promise<void> {
    for (const subscription of this.subscriptions) subscription.close();
    for (const scope of this.parts.scopes.values()) scope.close();
    for (const schedule of this.parts.schedules) schedule.close();
    const { queue, reconciling } = this.parts;
    reconciling?.resync.stop();
    await Promise.all([queue.stop(), reconciling?.keys.stop()]);
  }

  /** Counts events that wait in memory alone, by view. */
  inMemory(): ReadonlyMap<number, number> {
    return this.parts.queue.inMemory();
  }

  /** Releases its resources when it is unloaded, after it has stopped. */
  close(): void {
    const { scopes, written, time } = this.parts;
    const known = [...scopes.values()].map(({ objects }) => objects);
    written.remove(known);
    for (const objects of known) objects.close();
    time.close();
  }

  /** Puts a dead letter of this function back at the end of its lane. */
  async replay(letter: DeadLetter): Promise<void> {
    const { queue, maker, commits } = this.parts;
    commits.dropDeadLetter(letter.letter);
    queue.acceptSpilled(replayedEvent(letter, maker.nextSequence()));
    await commits.sync();
  }

  /**
   * Puts an object's state at the end of its lane, as a replay. The event is flagged as redelivered, does not change the known
   * objects, and is on record once `saved` has resolved. The state must be the known one, without waiting events. Otherwise its
   * own event could follow, under the same id and without a flag.
   * @param again the past event of that state to repeat. Default: a new event.
   */
  redeliver(trigger: string, given: Change, again?: Pick<PastRun, "id" | "type">): Redelivery {
    const { objects } = this.scope(trigger);
    const change = withUid(given, objects.resource);
    const { meta, body } = change;
    const key = objectKey(meta);
    if (!objects.isIdle(key)) return "waits";
    const state = objects.stateAfterQueue(key);
    if (objects.hasNeverMatched(key) && !objects.matches(key, body)) return "filtered";
    if (!state || state.deleted || state.uid !== meta.uid) return "news";
    if (state.resourceVersion !== meta.resourceVersion) return "news";
    const { events } = objects.trigger;
    const type = again?.type ?? (["Modified", "Added"] as const).find((each) => events.includes(each));
    if (!type || !(again || objects.matches(key, body))) return "filtered";
    const { queue, maker, clock } = this.parts;
    if (!queue.takesReplay(body.length)) return "full";
    const { namespace, name, uid, resourceVersion } = meta;
    const epoch = objects.epochOf(key);
    const identity = {
      trigger: objects.identity,
      type,
      uid,
      resourceVersion,
      lastKnown: false,
      selective: false,
      epoch,
    };
    const event: SpilledEvent = {
      kind: "event",
      view: objects.id,
      function: objects.functionName,
      trigger: objects.trigger.name,
      namespace,
      name,
      uid,
      resourceVersion,
      type,
      id: again?.id ?? eventId(identity),
      flags: {},
      deletedBy: resourceVersion,
      body,
      oldBody: undefined,
      form: objects.form.ofEvents,
      receivedAt: clock.now(),
      sequence: maker.nextSequence(),
      replayed: true,
      redelivered: true,
    };
    queue.acceptSpilled(event);
    return "queued";
  }

  /** Resolves when everything accepted until now is on disk. */
  saved(): Promise<void> {
    return this.parts.commits.sync();
  }

  /** A pending promise while accepted events wait for their commit. */
  get congested(): Promise<void> | undefined {
    return this.parts.commits.congested;
  }

  /** Returns the namespaces that a trigger reads, "" for all. */
  namespaces(trigger: string): string[] {
    return [...this.scope(trigger).subscriptions].map(({ namespace }) => namespace);
  }

  /** Deletes a dead letter ahead of the waiting commits: a full store accepts nothing else, and this makes room in it. */
  async drop(letter: DeadLetter): Promise<void> {
    await this.parts.drop(letter);
  }

  status(): FunctionStatus {
    const { clock, queue, reconciling, time } = this.parts;
    const { oldestAt, dueSince, blocked, lastEventAt, ...counts } = withKeys(
      queue.counts(),
      reconciling?.keys.counts(),
    );
    const { subscriptions } = this;
    const ageOf = (at: number | undefined) => (at === undefined ? 0 : Math.max(0, clock.now() - at) / 1000);
    const letterStock = this.parts.letterStock();
    return {
      function: this.name,
      ready: (subscriptions.length > 0 || this.readsNothing) && subscriptions.every(({ isReady }) => isReady),
      lagSeconds: ageOf(oldestAt),
      dueSeconds: ageOf(dueSince),
      ...counts,
      blockedLanes: blocked,
      overShareSeconds: time.overSeconds,
      parentSeconds: time.spent,
      lastEvent: lastEventAt,
      deadLetters: letterStock.count,
      letterStock,
      conditionErrors: this.parts.conditionErrors.list(),
      filtered: this.parts.history.count(),
      schedules: this.parts.schedules.map(({ trigger, next }) => ({ trigger, next })),
      subscriptions: subscriptions.map(({ id, lowWaterMark }) => ({ id, lowWaterMark })),
    };
  }

  private get readsNothing(): boolean {
    return [...this.parts.scopes.values()].every((scope) => scope.readsNothing);
  }

  /** Its last attempts that ended by themselves, 200 at most, newest first. */
  get runs(): Iterable<PastRun> {
    return this.parts.history.runs;
  }

  /** Returns what is known of an object under a trigger. `seen` is its current state, if the API server was asked. */
  async object(trigger: string, meta: Pick<ObjectMeta, "namespace" | "name">, seen?: Change): Promise<ObjectReport> {
    const { queue, history, reconciling } = this.parts;
    const { objects } = this.scope(trigger);
    const key = objectKey(meta);
    const isOfIt = (event: { trigger: string; key: string }) => event.trigger === trigger && event.key === key;
    const body = reconciling && (seen?.body ?? (await objects.lastBody(key)));
    const keys = reconciling?.wakes.keysFor(objects, meta, body);
    const isRunOfIt = (run: PastRun) =>
      keys ? run.trigger === reconciling?.trigger && keys.has(run.key) : isOfIt(run);
    const keyLanes = [...(keys ?? [])].flatMap((each) => reconciling?.keys.report(each) ?? []);
    const subscription = this.scope(trigger).reads(meta.namespace);
    const state = objects.stateAfterQueue(key);
    return {
      position: subscription && { lowWaterMark: subscription.lowWaterMark, ready: subscription.isReady },
      known: state && { resourceVersion: state.resourceVersion, deleted: state.deleted },
      isElsewhere: this.parts.shard && this.isElsewhere(trigger, meta, seen, this.parts.shard),
      hasNeverMatched: objects.hasNeverMatched(key),
      lane: queue.lane(objects, key) ?? keyLanes[0],
      waits: !objects.isIdle(key),
      filtered: [...history.filtered].filter(isOfIt).slice(0, mostReported),
      runs: [...history.runs].filter(isRunOfIt).slice(0, mostReported),
      next: seen && (await objects.preview(key, withUid(seen, objects.resource))),
      wakes: seen && reconciling?.wakes.next(objects, meta, seen.body),
    };
  }

  /**
   * Whether the object belongs to another shard. A deleted object whose fields decide its keys may have woken any, so it belongs
   * to no other shard.
   */
  private isElsewhere(
    trigger: string,
    meta: Pick<ObjectMeta, "namespace" | "name">,
    seen: Change | undefined,
    shard: Shard,
  ): boolean {
    if (!shard.mayOwnIn(meta.namespace)) return true;
    if (seen) return !this.concerns(trigger, seen);
    return this.scope(trigger).objects.trigger.key === undefined && !shard.owns(objectKey(meta));
  }

  /** Returns the last runs of a schedule, newest first. The runs of another shard's schedule are not known here. */
  schedule(trigger: string): ScheduleReport {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    const runs = [...this.parts.history.runs].filter((run) => run.trigger === trigger).slice(0, mostReported);
    return { isElsewhere: !found, next: found?.next, isBusy: found?.isBusy ?? false, runs };
  }

  /** Repeats a schedule's run, unless another one of it waits. */
  runAgain(run: PastRun): Redelivery {
    return this.scheduled(run.trigger).again(run) ? "queued" : "waits";
  }

  /** Runs a schedule at once, unless a run of it waits. Returns `undefined` if another shard has the schedule. */
  runNow(trigger: string): Redelivery | undefined {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    return found && (found.now() ? "queued" : "waits");
  }

  private scheduled(trigger: string): ScheduledTrigger {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    if (!found) throw new TypeError(`function ${this.name} has no schedule ${trigger}`);
    return found;
  }

  private get subscriptions(): readonly Subscription[] {
    return [...this.parts.scopes.values()].flatMap((scope) => [...scope.subscriptions]);
  }

  private scope(trigger: string): TriggerScope {
    const scope = this.parts.scopes.get(trigger);
    if (!scope) throw new TypeError(`function ${this.name} has no trigger ${trigger}`);
    return scope;
  }
}

/** Adds a function's keys to its counts. */
function withKeys(
  events: ReturnType<EventQueue["counts"]>,
  keys: ReturnType<Reconciling["keys"]["counts"]> | undefined,
): ReturnType<EventQueue["counts"]> & Pick<FunctionStatus, "requeued" | "keys"> {
  if (!keys) return { ...events, requeued: 0, keys: undefined };
  const { lastEventAt, failures, inFlight, requeued } = keys;
  return {
    ...events,
    queued: events.queued + keys.queued,
    blocked: keys.blocked,
    oldestAt: earlier(events.oldestAt, keys.oldestAt),
    dueSince: earlier(events.dueSince, keys.dueSince),
    ...{ lastEventAt, failures, inFlight, requeued, keys: keys.keys },
  };
}

const earlier = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

/** The result of a request to deliver an object again. */
export type Redelivery =
  | "queued"
  /** An event of it waits already. */
  | "waits"
  /** The trigger has not handled this state yet: the state's own event, or a list, is in progress. */
  | "news"
  /** The trigger's conditions do not hold for it, or it subscribes to deletions alone. */
  | "filtered"
  /** There is no room for waiting events. */
  | "full";
