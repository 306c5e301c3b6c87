import type { Clock, Random } from "../../base/clock.ts";
import { newerOf } from "../../base/resource-version.ts";
import type { NewDeadLetter, StartedEvent, StateWrite } from "../../journal/batch.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { Delivery, DeliveryListener, HandlerError, Look, Newest, Outcome, Runner } from "../delivery/delivery.ts";
import type { EngineLog, EngineObserver, EventOutcome } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import type { FinishedOutcome } from "../history/history.ts";
import type { OwnState } from "../own-state/own-state.ts";
import { nameOf } from "../state/by-namespace.ts";
import {
  deliverUnfiltered,
  deliveryOf,
  fetchedVerdict,
  goneVerdict,
  isDropped,
  isHeldBack,
  isRedelivered,
  type LaneEvent,
  storedEvent,
  unselectedVerdict,
  usesCurrentState,
} from "./event.ts";
import { PrefetchWindow } from "./fair-scheduler.ts";
import type { KeyBackoff } from "./key-backoff.ts";
import { isByEdit, type KeyLane, unknownVersion } from "./key-lane.ts";
import type { Waits } from "./lane.ts";
import { crashLoopError, interruptedDelay, isCrashLoop, requeueDelay, retryDelay } from "./retry.ts";
import type { Spill } from "./spill.ts";

/** The delay before a failed read of an attempt's input is retried, in milliseconds. */
const readRetryMs = 1_000;

/** The subject of an attempt: an event of an object or of a schedule, or a key that is to be reconciled. */
export type Waiting = LaneEvent | KeyLane;

/** The effect of an attempt on its event or key. */
export type Conclusion =
  /** `letter` is written in the commit that makes it terminal. `wasCrashing` means that no further attempt was made. */
  | {
      readonly type: "terminal";
      readonly outcome: EventOutcome;
      readonly letter?: NewDeadLetter;
      readonly wasCrashing?: boolean;
    }
  /** `blocked`: it is out of attempts, and holds its lane, as the manifest asks. A requeued event has a `notBefore`. */
  | {
      readonly type: "again";
      readonly why: Exclude<Waits, "debounce">;
      readonly afterMs: number;
      readonly blocked: boolean;
    }
  /** The function was paused meanwhile, or the runner returned it: the attempt counts as not made. */
  | { readonly type: "not-begun" };

/** Consumes the events of a function whose handler does not receive them: they end here. */
export interface EventSink {
  /** The number of events that it takes at once; 0 while they must wait. */
  readonly atOnce: number;
  /** Whether this event must wait, while other events of the function may continue. */
  refuses(event: LaneEvent): boolean;
  /** Whether it needs the object's previous state. */
  wantsOld(event: LaneEvent): boolean;
  /** Whether the previous state's metadata is enough. */
  isMetadataEnough(event: LaneEvent): boolean;
  /**
   * Takes an event. `body` is empty if the object is gone and only its name is known. `isPaused` is called between two pieces of
   * the work: if true, the rest is dropped and the event has not begun. `ended` is called once; at once if one piece is enough.
   */
  take(
    event: LaneEvent,
    states: { readonly body: Buffer; readonly oldBody: Buffer | undefined },
    isPaused: () => boolean,
    ended: (conclusion: Conclusion) => void,
  ): void;
}

interface AttemptsParts {
  /** Default: the handler receives the events. */
  readonly sink?: EventSink | undefined;
  readonly spill: Spill;
  readonly commits: Commits;
  readonly runner: Runner;
  /** Is charged for judging. */
  readonly time: LoopAccount;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
  /** Fetches an object if the body on disk has another form than the trigger's objects have now. */
  readonly look: Look;
  /** The entries that its handlers keep. Default: handlers keep no entries. */
  readonly state?: OwnState | undefined;
  /** The delays of keys after failures. Left out if the subjects are events. */
  readonly backoff?: KeyBackoff | undefined;
}

/** The code and manifest that attempts use. */
export interface LoadedCode {
  readonly manifest: FunctionManifest;
  /** Whether the handler reads the previous object. */
  readonly usesOldObject: boolean;
}

/** Callbacks of one attempt. */
export interface AttemptListener {
  ended(conclusion: Conclusion): void;
  /** Runs the work after the attempt's end once a commit has room; until then it counts as running. Default: at once. */
  readonly soon?: ((work: () => void) => void) | undefined;
}

/** The states that a handler receives. */
interface Shown {
  readonly body: Buffer;
  readonly oldBody: Buffer | undefined;
  /** The current object of a key. */
  readonly newest?: Newest | undefined;
}

/** The inputs of one attempt at an event. */
interface Needs extends Shown {
  readonly verdict: Verdict;
}

/** An attempt that the runner has. A class, because each event's closures and what they captured took 0.3 KB. */
class Attempt implements DeliveryListener {
  readonly item: Waiting;
  readonly shown: Shown;
  /** The journal's row, and the attempt's record in it. */
  readonly row: number;
  readonly started: StartedEvent;
  readonly listener: AttemptListener;
  /** The time of submission to the runner, in monotonic milliseconds. */
  readonly givenAt: number;
  hasBegun = false;
  /** Its handler's writes to the function's state, once it has ended. */
  writes: readonly StateWrite[] | undefined;
  private readonly attempts: Attempts;
  private readonly delivery: Delivery;

  constructor(
    attempts: Attempts,
    item: Waiting,
    delivery: Delivery,
    shown: Shown,
    { row, started }: { readonly row: number; readonly started: StartedEvent },
    listener: AttemptListener,
    givenAt: number,
  ) {
    this.attempts = attempts;
    this.item = item;
    this.delivery = delivery;
    this.shown = shown;
    this.row = row;
    this.started = started;
    this.listener = listener;
    this.givenAt = givenAt;
  }

  begins(): void {
    this.hasBegun = true;
    this.attempts.begins(this);
  }

  ended(outcome: Outcome): void {
    const { attempts, listener } = this;
    // At once, because the next attempt may read the state before this one's end has room in a commit.
    this.writes = this.delivery.staged?.end(outcome.type === "ok");
    if (listener.soon) listener.soon(() => attempts.ended(this, outcome));
    else attempts.ended(this, outcome);
  }
}

/** Runs one function's attempts: filters the event, records the attempt, calls the handler, and acts on the outcome. */
export class Attempts {
  /** May be replaced between two attempts. */
  code: LoadedCode;
  private readonly parts: AttemptsParts;
  /** The end of the last attempt, in epoch milliseconds. */
  private lastAt: number | undefined;
  private failures = 0;
  /** The number of the last commit with the row of a key that an edit's deletion has woken. */
  private lastEdited = 0;
  /** All commits up to this number would survive a crash. */
  private lasting = 0;
  /** The number of handlers that have begun and not ended. */
  private running = 0;
  private readonly ahead = new PrefetchWindow();
  /** The number of attempts that read their inputs, or wait for others that do. */
  private reading = 0;
  /** Resolves when the last of them has begun. */
  private turn: Promise<void> = Promise.resolve();

  constructor(code: LoadedCode, parts: AttemptsParts) {
    this.code = code;
    this.parts = parts;
  }

  /** Returns counts for the status. */
  counts() {
    return { lastEventAt: this.lastAt, failures: this.failures, inFlight: this.running };
  }

  /**
   * Returns how many attempts may be in progress for this event to be submitted to the runner: those that may run at once, and
   * the prefetched ones. An event that may have crashed its executor is not prefetched.
   */
  limitFor({ attempts, redeliveryRisk, interruptions }: LaneEvent): number {
    const { sink } = this.parts;
    if (sink) return sink.atOnce;
    const { concurrency, batch } = this.code.manifest.delivery;
    // The running batches, and the one that is being filled.
    if (batch) return (concurrency + 1) * batch.maxSize;
    return interruptions > 0 || (attempts > 0 && redeliveryRisk !== "none")
      ? concurrency
      : concurrency + this.ahead.events;
  }

  /** Whether this event must wait, while other events of the function may begin. */
  refuses(event: LaneEvent): boolean {
    return this.parts.sink?.refuses(event) ?? false;
  }

  /** The debounce time of an object; `undefined` without one, or if keys are debounced instead. */
  get debounceMs(): number | undefined {
    return this.parts.sink ? undefined : this.code.manifest.delivery.debounceMs;
  }

  /**
   * Whether the function's events begin in turns with those of other functions: its handler is so brief that running in parallel
   * with theirs gains nothing. A function with a sink never takes turns, because no handler is called.
   */
  get takesTurns(): boolean {
    return !this.code.manifest.delivery.batch && this.ahead.isBrief;
  }

  /** Makes the runner return the events that have not begun. */
  recall(): void {
    this.parts.runner.recall(this.code.manifest.name);
  }

  /**
   * Makes an attempt. It is recorded at once if all its inputs are in memory.
   * @param isPaused called when the record is written: whether the attempt must not begin any more
   * @param listener called once with the result, never before this returns
   */
  run(event: Waiting, isPaused: () => boolean, listener: AttemptListener): void {
    if (event.kind === "key") {
      void this.readAndRun(event, isPaused, listener);
      return;
    }
    // An earlier event's attempt may have shown a newer state.
    if (event.redeliveryRisk === "none" && event.objects.isOvertaken(event.key, event.deletedBy))
      event.redeliveryRisk = "persisted";
    if (isDropped(event)) {
      event.verdict = unselectedVerdict;
      // If a handler may have received it, the object is known, and is forgotten. Otherwise it never becomes known.
      const mayBeKnown = event.redeliveryRisk !== "none" || event.attempts > 0;
      event.body = mayBeKnown ? (event.body ?? Buffer.alloc(0)) : undefined;
      if (!mayBeKnown) event.objects.recordDroppedUnselected(event.key, event.meta.uid);
      event.isFetched = true;
      queueMicrotask(() => listener.ended({ type: "terminal", outcome: "filtered" }));
      return;
    }
    const needs = this.reading === 0 ? this.needsAtOnce(event) : undefined;
    if (needs) this.begin(event, needs, isPaused, listener);
    else void this.readAndBegin(event, isPaused, listener);
  }

  /** Makes an attempt at a key with its current object. */
  private async readAndRun(lane: KeyLane, isPaused: () => boolean, listener: AttemptListener): Promise<void> {
    let newest: Newest | undefined;
    try {
      newest = await lane.primary.newest(lane.key);
    } catch (error) {
      this.unread(lane, error, listener);
      return;
    }
    this.record(lane, { body: newest?.body ?? Buffer.alloc(0), oldBody: undefined, newest }, isPaused, listener);
  }

  /** Reads an attempt's inputs. Attempts begin in the order in which they were made, however long each had to read. */
  private async readAndBegin(event: LaneEvent, isPaused: () => boolean, listener: AttemptListener): Promise<void> {
    const before = this.turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.turn = promise;
    this.reading++;
    let needs: Needs | undefined;
    let failure: unknown;
    // Events that are read together are judged one after the other, in the function's share of time.
    const admitted = async () => {
      await before;
      await new Promise<void>((resolve) => this.parts.time.soon(resolve));
    };
    try {
      needs = await this.needsOf(event, admitted);
    } catch (error) {
      failure = error;
    }
    await before;
    this.reading--;
    if (needs) this.begin(event, needs, isPaused, listener);
    else this.unread(event, failure, listener);
    resolve();
  }

  /** Ends an attempt that did not start, because its stored input could not be read. */
  private unread({ objects, key }: Waiting, error: unknown, listener: AttemptListener): void {
    const fields = { function: objects.functionName, object: key, error: String(error) };
    this.parts.log.error(fields, "attempt could not begin");
    listener.ended({ type: "again", why: "interrupted", afterMs: readRetryMs, blocked: false });
  }

  /** Returns an attempt's inputs if all of them are in memory. */
  private needsAtOnce(event: LaneEvent): Needs | undefined {
    const { objects, body, type } = event;
    if (!body) return undefined;
    let { verdict } = event;
    if (!verdict) {
      if (event.lastKnown || (type !== "Added" && !objects.judgesAtOnce(event.key))) return undefined;
      verdict = objects.judgeAtOnce(event, body);
      if (!verdict) return undefined;
    }
    return event.oldBody || !this.wantsOld(event, verdict) ? { verdict, body, oldBody: event.oldBody } : undefined;
  }

  /** Returns an attempt's inputs, reading from the store if necessary. */
  private async needsOf(event: LaneEvent, admitted: () => Promise<void>): Promise<Needs> {
    const { objects } = event;
    // A dead letter that was put back has its own body: its object may no longer be known, or in another state.
    const inView = event.lastKnown && !event.replayed;
    const stored = event.body ?? (await (inView ? objects.lastBody(event.key) : this.parts.spill.body(event)));
    const isLeftOut = stored?.length === 0 && event.kind !== "tick";
    const kept = isLeftOut ? await this.bodyNow(event) : stored;
    if (isLeftOut && !kept && usesCurrentState(event)) {
      const body = this.parts.sink ? Buffer.alloc(0) : objects.nameAlone(event);
      return { verdict: this.parts.sink ? deliverUnfiltered : goneVerdict, body, oldBody: undefined };
    }
    // An object that is fetched again may have changed since it was judged.
    const before = isLeftOut ? undefined : event.verdict;
    const verdict =
      before ??
      (event.isFetched && event.replayed ? fetchedVerdict(event, kept) : await objects.judge(event, kept, admitted));
    const { sink } = this.parts;
    const isEnough = sink?.isMetadataEnough(event);
    const oldBody =
      event.oldBody ?? (this.wantsOld(event, verdict) ? await objects.body(event.key, isEnough) : undefined);
    return { verdict, body: kept ?? (sink ? Buffer.alloc(0) : objects.nameAlone(event)), oldBody };
  }

  /** Fetches the current object, which may be newer than the event; `undefined` if it is gone. */
  private async bodyNow(event: LaneEvent): Promise<Buffer | undefined> {
    const { objects, key, type, meta } = event;
    if (type === "Deleted") return undefined;
    event.isFetched = true;
    const found = await this.parts.look(objects.functionName, objects.trigger.name, nameOf(key));
    if (found?.uid !== meta.uid) return undefined;
    event.shown = found.resourceVersion;
    return found.body;
  }

  /** Whether the attempt needs the previous object. A replay has its own, if any: later events may have changed the known one. */
  private wantsOld(event: LaneEvent, { deliver }: Verdict): boolean {
    if (event.type === "Added" || !deliver || event.replayed) return false;
    const { objects, key, type, meta } = event;
    // A list repeats a state if the end of its event is not proven; that state is not its own predecessor.
    if (type === "Modified" && objects.knownState(key)?.resourceVersion === meta.resourceVersion) return false;
    if (!(this.parts.sink?.wantsOld(event) ?? this.code.usesOldObject)) return false;
    // An event that received its object from the API server has shown a newer state than the stored one.
    return event.redeliveryRisk !== "none" || !objects.hasShownNewer(key);
  }

  private begin(
    event: LaneEvent,
    { verdict, body, oldBody }: Needs,
    isPaused: () => boolean,
    listener: AttemptListener,
  ): void {
    event.verdict = verdict;
    event.body = body;
    if (isHeldBack(event, verdict)) {
      queueMicrotask(() => listener.ended({ type: "terminal", outcome: "filtered" }));
      return;
    }
    const { sink } = this.parts;
    if (sink) {
      const ended = (conclusion: Conclusion) => listener.ended(conclusion);
      queueMicrotask(() => this.parts.time.soon(() => sink.take(event, { body, oldBody }, isPaused, ended)));
      return;
    }
    this.record(event, { body, oldBody }, isPaused, listener);
  }

  /** Records an attempt, and starts it once the record is durable. */
  private record(item: Waiting, shown: Shown, isPaused: () => boolean, listener: AttemptListener): void {
    const { retry, onFailure } = this.code.manifest.delivery;
    if (onFailure !== "Block" && isCrashLoop(item.attempts, retry)) {
      const conclusion = this.givenUp(item, crashLoopError(item.attempts), shown, true);
      queueMicrotask(() => listener.ended(conclusion));
      return;
    }
    // One literal for both kinds: spreading a second one into it took 0.2 KB for each event.
    const isKey = item.kind === "key";
    const started: StartedEvent = {
      view: item.objects.id,
      key: item.key,
      id: item.id,
      // A key's record replaces that of an interrupted run, which may have shown a newer state.
      resourceVersion: isKey
        ? shown.newest
          ? newerOf(item.shown, shown.newest.resourceVersion)
          : (item.shown ?? unknownVersion)
        : (item.shown ?? item.deletedBy),
      // A recorded deletion implies nothing for the object's own events.
      type: isKey ? "Deleted" : item.type,
      attempt: (isKey ? item.begun : item.attempts) + 1,
    };
    const { commits } = this.parts;
    const onRecord = (row: number) => {
      if (isPaused()) {
        commits.ended();
        commits.withdraw(row, started);
        listener.ended({ type: "not-begun" });
      } else this.give(item, shown, { row, started }, listener);
    };
    // The object was unselected by an edit alone and did not change. If the selection is restored, only the record shows that a
    // deletion was delivered.
    const mustOutlast = isKey
      ? this.lastEdited > this.lasting && item.causes.some(isByEdit)
      : item.flags.reason === "unselected";
    const onLasting = (row: number) =>
      void this.outlast().then(
        () => onRecord(row),
        () => undefined,
      );
    commits.begin(started, mustOutlast ? onLasting : onRecord);
  }

  /** Records that an edit's deletion has woken a key. */
  noteEdit(): void {
    this.lastEdited = this.parts.commits.number;
  }

  private async outlast(): Promise<void> {
    const { commits } = this.parts;
    const { number } = commits;
    await commits.sync();
    this.lasting = Math.max(this.lasting, number);
  }

  /** Passes a recorded attempt to the runner. */
  private give(
    item: Waiting,
    shown: Shown,
    recorded: { readonly row: number; readonly started: StartedEvent },
    listener: AttemptListener,
  ): void {
    const { commits, runner, clock, state } = this.parts;
    const { timeoutMs } = this.code.manifest.delivery;
    if (item.journalRow !== undefined) commits.settle(item.journalRow, recorded.started);
    item.journalRow = recorded.row;
    if (item.kind === "key") item.shown = recorded.started.resourceVersion;
    if (item.redeliveryRisk === "unpersisted") item.redeliveryRisk = "persisted";
    item.attempts++;
    const delivery =
      item.kind === "key"
        ? {
            ...item.delivery(shown.newest),
            receivedAt: item.wokenAt.wall,
            redelivered: isRedelivered(item),
            timeoutMs,
            state,
            staged: undefined,
          }
        : deliveryOf(item, shown, timeoutMs, state);
    runner.give(delivery, new Attempt(this, item, delivery, shown, recorded, listener, clock.monotonic()));
  }

  /** Called when the handler of an attempt begins. */
  begins({ item }: Attempt): void {
    const { observer, clock } = this.parts;
    const { objects, receivedAt } = item;
    this.running++;
    observer.attempt?.(objects.functionName, objects.trigger.name, clock.monotonic() - receivedAt);
    if (isRedelivered(item)) observer.flagged?.(objects.functionName, objects.trigger.name);
  }

  /** Called when the runner has finished or returned an attempt. */
  ended(attempt: Attempt, outcome: Outcome): void {
    const { item, listener, givenAt } = attempt;
    const { commits, clock } = this.parts;
    if (attempt.hasBegun) this.running--;
    commits.ended();
    if (outcome.type === "unbegun") {
      item.attempts--;
      // If it may have begun before, the record stays: nothing else says so.
      if (item.attempts === 0 && item.redeliveryRisk === "none") {
        item.journalRow = undefined;
        if (item.kind === "key") item.shown = undefined;
        commits.withdraw(attempt.row, attempt.started);
      }
      listener.ended({ type: "not-begun" });
      return;
    }
    this.lastAt = clock.now();
    if (outcome.type === "interrupted") {
      this.ahead.interrupted();
      item.attempts--;
      item.interruptions++;
      item.redeliveryRisk = "persisted";
      const afterMs = interruptedDelay(item.interruptions);
      listener.ended({ type: "again", why: "interrupted", afterMs, blocked: false });
      return;
    }
    this.ahead.ended(clock.monotonic() - givenAt, outcome.durationMs);
    listener.ended(this.conclude(attempt, outcome));
  }

  private conclude({ item, shown, row, started, writes }: Attempt, outcome: FinishedOutcome): Conclusion {
    const { random, observer, clock, backoff, commits } = this.parts;
    const { objects } = item;
    const { functionName, trigger } = objects;
    item.interruptions = 0;
    observer.handled?.(functionName, trigger.name, outcome.durationMs);
    const subject = item.kind === "key" ? item.lastRun(shown.newest) : item;
    objects.history.ran(subject, item.attempts, outcome, clock.now());
    if (item.kind === "key") item.settle(row, started, shown.newest, commits);
    if (writes) commits.putState(item.objects.id, writes);
    if (outcome.type === "ok") {
      if (outcome.requeueAfterMs === undefined) return { type: "terminal", outcome: "ok" };
      const afterMs = requeueDelay(outcome.requeueAfterMs);
      if (item.kind !== "key") this.requeue(item, afterMs);
      return { type: "again", why: "requeue", afterMs, blocked: false };
    }
    this.failures++;
    const { retry, onFailure } = this.code.manifest.delivery;
    const isSpent = outcome.type === "permanent" || item.attempts >= retry.maxAttempts;
    const asked = outcome.type === "failed" ? outcome.retryAfterMs : undefined;
    // A key is delayed after each failure, whatever the failure leads to.
    const backoffMs = item.kind === "key" ? backoff?.recordFailure(item.key, retry, item.attempts, asked) : undefined;
    const isGivenUp = isSpent && onFailure !== "Block";
    if (!isGivenUp || item.kind === "key") observer.event?.(functionName, trigger.name, subject.type, "retry");
    if (isGivenUp) return this.givenUp(item, outcome.error, shown, false);
    const afterMs = isSpent ? retry.maxDelayMs : (backoffMs ?? retryDelay(retry, item.attempts, asked, random));
    if (item.kind !== "key" && asked !== undefined && !isSpent) this.defer(item, afterMs);
    return { type: "again", why: "retry", afterMs, blocked: isSpent };
  }

  /** Resets the event as if it had not been attempted, except for the redelivery flag: the handler has seen it. */
  private requeue(event: LaneEvent, afterMs: number): void {
    const { objects, key, id, meta, journalRow: row, shown } = event;
    event.attempts = 0;
    event.redeliveryRisk = "persisted";
    this.defer(event, afterMs);
    // The row written now contains all that the journal would. If there is no room for a row, the journal keeps it.
    if (event.place !== "memory" && row !== undefined) {
      objects.settle({ key, id, uid: meta.uid, row, shown, comesAgain: !event.replayed });
      event.journalRow = undefined;
    }
  }

  /** Delays an event until a time that its handler named. The time is stored, so that a later process waits for it, too. */
  private defer(event: LaneEvent, afterMs: number): void {
    event.notBefore = this.parts.clock.now() + afterMs;
    this.parts.spill.defer(event);
  }

  private givenUp(item: Waiting, error: HandlerError, shown: Shown, wasCrashing: boolean): Conclusion {
    if (this.code.manifest.delivery.onFailure === "Drop") return { type: "terminal", outcome: "dropped", wasCrashing };
    const { apiVersion, kind } = item.objects.trigger;
    const { attempts } = item;
    const stored = item.kind === "key" ? item.letter(shown.newest) : storedEvent(item, shown.oldBody);
    const failedAt = this.parts.clock.now();
    const letter = { ...stored, apiVersion, kind, attempts, error: { ...error }, failedAt };
    return { type: "terminal", outcome: "dead_letter", letter, wasCrashing };
  }
}
