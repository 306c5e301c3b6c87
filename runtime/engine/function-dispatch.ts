import type { Clock } from "../base/clock.ts";
import type { ResourceVersion } from "../base/resource-version.ts";
import { type Change, type ObjectMeta, objectKey } from "../informer/scan/change.ts";
import type { Cursor, DeadLetter } from "../journal/batch.ts";
import type { DeadLetterLimit, DeadLetterStock } from "../journal/dead-letter-stats.ts";
import { replayedEvent } from "../journal/dead-letters.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoopAccount } from "./account/loop-time.ts";
import type { Commits } from "./commit/commits.ts";
import type { ConditionErrors, ConditionTrouble } from "./condition-errors.ts";
import type { EngineObserver } from "./delivery/observer.ts";
import type { HeldBackCount, History, PastRun } from "./history/history.ts";
import { type Concern, concernOf } from "./intake/passing.ts";
import type { Subscription } from "./intake/subscription.ts";
import { type SourceRef, TriggerScope } from "./intake/trigger-scope.ts";
import { mostTold, type ObjectReport, type ScheduleReport } from "./object-report.ts";
import { type PastEvent, type Redelivery, redeliver } from "./replay.ts";
import type { ScheduledTrigger } from "./schedule/scheduled-trigger.ts";
import type { KnownObjects } from "./state/known-objects.ts";
import type { Shard } from "./state/shard.ts";
import { type EventMaker, withUid } from "./work/event.ts";
import type { FunctionQueue } from "./work/function-queue.ts";
import type { Reconciling } from "./work/reconciling.ts";

/** How many keys a function has. */
export interface KeyCounts {
  readonly count: number;
  readonly withoutObject: number;
  readonly full: boolean;
}

/** How a function does; times are epoch milliseconds. */
export interface FunctionStatus {
  readonly function: string;
  /** Every source it reads has listed or resumed. */
  readonly ready: boolean;
  /** Age of the oldest unfinished event in seconds; 0 when there is none. */
  readonly lagSeconds: number;
  /** Age of the oldest event that could run and was not begun, in seconds. 0 when there is none, or the function is held. */
  readonly dueSeconds: number;
  /** Events that wait in memory, those in handlers, and those on disk. */
  readonly queued: number;
  readonly inFlight: number;
  readonly spilled: number;
  /** Keys whose handler asked for a later time. */
  readonly requeued: number;
  /** In mode Reconcile: the keys that are to run, now or later, and how many of them have no object. `full`: changes wait for fewer. */
  readonly keys?: KeyCounts | undefined;
  /** It takes nothing until its handler has caught up: its share of the room for what waits is used up. */
  readonly full: boolean;
  /** For how long it has been over its share of the event loop, in seconds; undefined where it is not. */
  readonly overShareSeconds: number | undefined;
  /** Of the event loop's time, what was taken for it since it was loaded, by what for. */
  readonly parentSeconds: ReadonlyMap<string, number>;
  /** Lanes held by an event that is out of attempts, as the manifest asks. */
  readonly blockedLanes: number;
  /** When an attempt last ended. */
  readonly lastEvent: number | undefined;
  readonly deadLetters: number;
  /** What its dead letters take, and what of them had to go. */
  readonly letterStock: DeadLetterStock;
  /** Failed attempts since the start. */
  readonly failures: number;
  /** Conditions that could not be evaluated since the start. */
  readonly conditionErrors: readonly ConditionTrouble[];
  /** Its last events that were held back, 200 at most, by their reasons. */
  readonly filtered: readonly HeldBackCount[];
  /** When its schedules run next, epoch milliseconds; undefined where never. */
  readonly schedules: readonly { readonly trigger: string; readonly next: number | undefined }[];
  readonly subscriptions: readonly { readonly id: string; readonly lowWaterMark: ResourceVersion | undefined }[];
}

interface FunctionDispatchParts {
  readonly manifest: FunctionManifest;
  /** By trigger. */
  readonly views: ReadonlyMap<string, KnownObjects>;
  readonly cursors: readonly Cursor[];
  readonly queue: FunctionQueue;
  readonly time: LoopAccount;
  /** In mode Reconcile: whom events wake. */
  readonly reconciling: Reconciling | undefined;
  readonly maker: EventMaker;
  readonly schedules: readonly ScheduledTrigger[];
  /** The part of the function that this is; undefined: all of it. */
  readonly shard: Shard | undefined;
  readonly conditionErrors: ConditionErrors;
  readonly history: History;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  /** Bodies of a list that may wait for its end, in bytes. */
  readonly listLimit: number;
  /** The last writes before the start may be missing. */
  readonly lostWrites: boolean;
  readonly letterStock: () => DeadLetterStock;
  readonly limitLetters: (limit: DeadLetterLimit) => Promise<void>;
  /** Takes a letter out of the store. */
  readonly drop: (letter: DeadLetter) => Promise<void>;
}

/** One loaded function. */
export class FunctionDispatch {
  readonly name: string;
  private readonly parts: FunctionDispatchParts;
  /** Both by trigger. */
  private readonly concern: ReadonlyMap<string, Concern>;
  private readonly scopes: ReadonlyMap<string, TriggerScope>;

  constructor(parts: FunctionDispatchParts) {
    this.name = parts.manifest.name;
    this.parts = parts;
    parts.queue.start();
    for (const schedule of parts.schedules) schedule.begin();
    const { shard, time } = parts;
    this.concern = new Map([...parts.views].map(([trigger, view]) => [trigger, concernOf(view, shard, time)]));
    const scopeOf = (view: KnownObjects) => {
      const cursors = parts.cursors.filter((cursor) => cursor.view === view.id);
      return new TriggerScope({ ...parts, view, cursors, concerns: this.concernOf(view.trigger.name) });
    };
    this.scopes = new Map([...parts.views].map(([trigger, view]) => [trigger, scopeOf(view)]));
    if (parts.reconciling) this.reconcile(parts.reconciling);
  }

  private reconcile(reconciling: Reconciling): void {
    const scope = this.scope(reconciling.trigger);
    reconciling.isSettledIn = (namespace) => scope.isSettled(namespace);
    reconciling.untold.isInLane = (key) => this.parts.queue.holds(this.view(reconciling.trigger), key);
    reconciling.keys.roomAgain = () => this.parts.queue.pump();
    reconciling.keys.start();
    reconciling.resync.start();
  }

  /** The subscriber for one of a trigger's sources; the same one for the same source. */
  subscription(trigger: string, source: SourceRef): Subscription {
    return this.scope(trigger).subscription(source);
  }

  /** Whether an object is this one's to tell of, and not another shard's alone. */
  concerns(trigger: string, change: Change): boolean {
    return this.concernOf(trigger)(withUid(change, this.view(trigger).resource));
  }

  /** Whether a complete list of a trigger's namespaces is to be believed, and `retain` called with it. */
  believes(trigger: string, namespaces: readonly string[]): boolean {
    return this.scope(trigger).believes(namespaces);
  }

  /** Says which namespaces a trigger reads, all of them; what is known of others is told of as Deleted, `unselected`. */
  retain(trigger: string, namespaces: readonly string[]): void {
    this.scope(trigger).retain(namespaces);
  }

  /**
   * Once the attempts that run have ended, on the old code, `swap` puts the new in place; none begins meanwhile. Where
   * `swap` fails, so does this, and the old code goes on.
   */
  async replace(manifest: FunctionManifest, usesOldObject: boolean, swap: () => Promise<void>): Promise<void> {
    const { queue, reconciling } = this.parts;
    await Promise.all([queue.gate.pause(), reconciling?.keys.gate.pause()]);
    try {
      await swap();
    } catch (error) {
      reconciling?.keys.gate.resume();
      queue.gate.resume();
      throw error;
    }
    reconciling?.keys.resumeWith(manifest);
    queue.resumeWith(manifest, usesOldObject);
    this.parts.observer.declared?.(manifest);
    await this.parts.limitLetters(manifest.delivery.deadLetters);
  }

  /** Until `release` events are taken and kept, and no attempt begins. */
  hold(): void {
    const { queue, reconciling } = this.parts;
    // Changes wake keys all along: no handler is called for that.
    (reconciling?.keys ?? queue).gate.hold();
  }

  /** Goes on; what waits for a retry is tried at once. */
  release(): void {
    const { queue, reconciling } = this.parts;
    (reconciling?.keys ?? queue).gate.release();
  }

  /** Whether something that may have been handled without a record of it is still to come, or waits for its turn. */
  get isInDoubt(): boolean {
    const { lostWrites, queue } = this.parts;
    if (!lostWrites) return false;
    const scopes = [...this.scopes.values()].filter(({ readsNothing }) => !readsNothing);
    if (scopes.length > 0 && this.subscriptions.length === 0) return true;
    if (scopes.some(({ isInDoubt }) => isInDoubt)) return true;
    return queue.holdsUnnoted;
  }

  /** Takes nothing any more, and begins nothing. Resolves when nothing runs. */
  async stop(): Promise<void> {
    for (const subscription of this.subscriptions) subscription.close();
    for (const scope of this.scopes.values()) scope.close();
    for (const schedule of this.parts.schedules) schedule.close();
    const { queue, reconciling } = this.parts;
    reconciling?.resync.stop();
    await Promise.all([queue.stop(), reconciling?.keys.stop()]);
  }

  /** Events that wait in memory alone, by view. */
  inMemory(): ReadonlyMap<number, number> {
    return this.parts.queue.inMemory();
  }

  /** It is unloaded, after it has stopped. */
  close(): void {
    for (const view of this.parts.views.values()) view.close();
    this.parts.time.close();
  }

  /** Puts a dead letter of this function back at the end of its lane. */
  async replay(letter: DeadLetter): Promise<void> {
    const { queue, maker, commits } = this.parts;
    commits.dropDeadLetter(letter.letter);
    queue.acceptSpilled(replayedEvent(letter, maker.nextSequence()));
    await commits.sync();
  }

  /**
   * Tells the handler again of an object as it is, in its turn. `again`: the event of that state that is repeated;
   * without it one is made. On record once `saved` has resolved.
   */
  redeliver(trigger: string, change: Change, again?: PastEvent): Redelivery {
    return redeliver(this.view(trigger), change, this.parts, again);
  }

  /** Resolves when what was taken until now is on disk. */
  saved(): Promise<void> {
    return this.parts.commits.sync();
  }

  /** A promise while what is taken waits for its commit. */
  get congested(): Promise<void> | undefined {
    return this.parts.commits.congested;
  }

  /** The namespaces that a trigger reads, "" for all. */
  namespaces(trigger: string): string[] {
    return [...this.scope(trigger).subscriptions].map(({ namespace }) => namespace);
  }

  /** Past what waits for a commit: a store that is full takes nothing else, and this is what makes room in it. */
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
    return [...this.scopes.values()].every((scope) => scope.readsNothing);
  }

  /** Its last attempts that ended by themselves, 200 at most, newest first. */
  get runs(): Iterable<PastRun> {
    return this.parts.history.runs;
  }

  /** What is known of an object under a trigger. `seen`: as the API server has it now, where it was asked. */
  async object(trigger: string, meta: Pick<ObjectMeta, "namespace" | "name">, seen?: Change): Promise<ObjectReport> {
    const { queue, history, reconciling } = this.parts;
    const view = this.view(trigger);
    const key = objectKey(meta);
    const isOfIt = (event: { trigger: string; key: string }) => event.trigger === trigger && event.key === key;
    const body = reconciling && (seen?.body ?? (await view.lastBody(key)));
    const keys = reconciling?.wakes.keysFor(view, meta, body);
    const isRunOfIt = (run: PastRun) =>
      keys ? run.trigger === reconciling?.trigger && keys.has(run.key) : isOfIt(run);
    const keyLanes = [...(keys ?? [])].flatMap((each) => reconciling?.keys.lane(each) ?? []);
    const subscription = this.scope(trigger).reads(meta.namespace);
    const standing = view.standing(key);
    return {
      position: subscription && { lowWaterMark: subscription.lowWaterMark, ready: subscription.isReady },
      known: standing && { resourceVersion: standing.resourceVersion, deleted: standing.deleted },
      isElsewhere: this.parts.shard && this.isElsewhere(trigger, meta, seen, this.parts.shard),
      isStranger: view.isStranger(key),
      lane: queue.lane(view, key) ?? keyLanes[0],
      waits: !view.isIdle(key),
      filtered: [...history.filtered].filter(isOfIt).slice(0, mostTold),
      runs: [...history.runs].filter(isRunOfIt).slice(0, mostTold),
      next: seen && (await view.preview(key, withUid(seen, view.resource))),
      wakes: seen && reconciling?.wakes.next(view, meta, seen.body),
    };
  }

  /** An object that is gone may have woken any keys, where its fields say which: it is another shard's for none. */
  private isElsewhere(
    trigger: string,
    meta: Pick<ObjectMeta, "namespace" | "name">,
    seen: Change | undefined,
    shard: Shard,
  ): boolean {
    if (!shard.mayOwnIn(meta.namespace)) return true;
    if (seen) return !this.concerns(trigger, seen);
    return this.view(trigger).trigger.key === undefined && !shard.owns(objectKey(meta));
  }

  /** What is known of a schedule's runs, the last ones of them, newest first. Another shard's has none here. */
  schedule(trigger: string): ScheduleReport {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    const runs = [...this.parts.history.runs].filter((run) => run.trigger === trigger).slice(0, mostTold);
    return { isElsewhere: !found, next: found?.next, isBusy: found?.isBusy ?? false, runs };
  }

  /** Tells a schedule's run again, unless another one of it waits. */
  runAgain(run: PastRun): Redelivery {
    return this.scheduled(run.trigger).again(run) ? "told" : "waits";
  }

  /** Runs a schedule at once, unless a run of it waits. Undefined: another shard has it. */
  runNow(trigger: string): Redelivery | undefined {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    return found && (found.now() ? "told" : "waits");
  }

  private scheduled(trigger: string): ScheduledTrigger {
    const found = this.parts.schedules.find((schedule) => schedule.trigger === trigger);
    if (!found) throw new TypeError(`function ${this.name} has no schedule ${trigger}`);
    return found;
  }

  private get subscriptions(): readonly Subscription[] {
    return [...this.scopes.values()].flatMap((scope) => [...scope.subscriptions]);
  }

  private concernOf(trigger: string): Concern {
    const concern = this.concern.get(trigger);
    if (!concern) throw new TypeError(`function ${this.name} has no trigger ${trigger}`);
    return concern;
  }

  private view(trigger: string): KnownObjects {
    const view = this.parts.views.get(trigger);
    if (!view) throw new TypeError(`function ${this.name} has no trigger ${trigger}`);
    return view;
  }

  private scope(trigger: string): TriggerScope {
    const scope = this.scopes.get(trigger);
    if (!scope) throw new TypeError(`function ${this.name} has no trigger ${trigger}`);
    return scope;
  }
}

/** A function's counts, with its keys among what waits and runs. */
function withKeys(
  events: ReturnType<FunctionQueue["counts"]>,
  keys: ReturnType<Reconciling["keys"]["counts"]> | undefined,
): ReturnType<FunctionQueue["counts"]> & Pick<FunctionStatus, "requeued" | "keys"> {
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
