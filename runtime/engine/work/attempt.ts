import type { Clock, Random } from "../../base/clock.ts";
import { metadataIn } from "../../informer/scan/change.ts";
import type { NewDeadLetter, StartedEvent } from "../../journal/batch.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { Delivery, DeliveryListener, HandlerError, Look, Outcome, Runner } from "../delivery/delivery.ts";
import type { EngineObserver, EventOutcome } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import { goneMeanwhile, refusedBefore, unselected } from "../filter/reason.ts";
import { nameOf } from "../state/by-namespace.ts";
import { givenUid, type LaneEvent, storedEvent } from "./event.ts";
import { PrefetchWindow } from "./fair-scheduler.ts";
import { interruptedDelay, isCrashLoop, requeueDelay, retryDelay } from "./retry.ts";
import type { Spill } from "./spill.ts";

/** How an attempt leaves its event. */
export type Conclusion =
  /** The letter goes into the commit that makes the event terminal. */
  | { readonly type: "terminal"; readonly outcome: EventOutcome; readonly letter?: NewDeadLetter }
  /** `blocked`: it is out of attempts, and holds its lane as the manifest asks. Where its handler asked for it, it has a `notBefore`. */
  | { readonly type: "again"; readonly afterMs: number; readonly blocked: boolean }
  /** The function was paused meanwhile, or the runner gave it back: the attempt is as if it had not been made. */
  | { readonly type: "not-begun" };

/** An attempt that ended by itself. */
type FinishedAttempt = Exclude<Outcome, { readonly type: "interrupted" | "unbegun" }>;

/** Takes the events of a function whose handler is not told of each: they end here. */
export interface EventSink {
  /** How many events it takes at once; 0 while they are to wait. */
  readonly atOnce: number;
  /** Whether an event is to wait, others of the function beside it. */
  refuses(event: LaneEvent): boolean;
  /** Whether it has to know the object before a change. */
  wantsOld(event: LaneEvent): boolean;
  /**
   * `body` is empty where the object is gone and nothing is known of it but its name.
   * @param isPaused asked between two pieces of the work: whether the rest is to be left, and the event not begun
   * @param ended called once, at once where one piece is all
   */
  take(
    event: LaneEvent,
    states: { readonly body: Buffer; readonly oldBody: Buffer | undefined },
    isPaused: () => boolean,
    ended: (conclusion: Conclusion) => void,
  ): void;
}

interface AttemptsParts {
  /** Left out: the handler is told. */
  readonly sink?: EventSink | undefined;
  readonly spill: Spill;
  readonly commits: Commits;
  readonly runner: Runner;
  /** On which judging goes. */
  readonly time: LoopAccount;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: EngineObserver;
  /** Asked for an object where the body on disk is of another form than the trigger's objects are now. */
  readonly look: Look;
}

/** What an attempt is made with. */
interface LoadedCode {
  readonly manifest: FunctionManifest;
  /** The handler reads the previous object. */
  readonly usesOldObject: boolean;
}

/** Hears of one attempt. */
export interface AttemptListener {
  ended(conclusion: Conclusion): void;
  /** The disk did not give what the attempt needs: it was not made. */
  failed(error: unknown): void;
}

/** What an attempt needs. */
interface Needs {
  readonly verdict: Verdict;
  readonly body: Buffer;
  readonly oldBody: Buffer | undefined;
}

/** An attempt that is on record. */
interface AttemptRecord extends Omit<Needs, "verdict"> {
  readonly row: number;
  readonly started: StartedEvent;
}

/** An attempt that the runner has. A class, because each event's closures and what they hold took 0.3 KB. */
class Given implements DeliveryListener {
  readonly event: LaneEvent;
  readonly recorded: AttemptRecord;
  readonly listener: AttemptListener;
  /** Monotonic milliseconds. */
  readonly givenAt: number;
  hasBegun = false;
  private readonly attempts: Attempts;

  constructor(
    attempts: Attempts,
    event: LaneEvent,
    recorded: AttemptRecord,
    listener: AttemptListener,
    givenAt: number,
  ) {
    this.attempts = attempts;
    this.event = event;
    this.recorded = recorded;
    this.listener = listener;
    this.givenAt = givenAt;
  }

  begins(): void {
    this.hasBegun = true;
    this.attempts.begins(this);
  }

  ended(outcome: Outcome): void {
    this.attempts.ended(this, outcome);
  }
}

/** Runs one function's attempts: the filter's verdict, the record that one begins, the handler, and what follows from how it ended. */
export class Attempts {
  /** New code comes between two attempts. */
  code: LoadedCode;
  private readonly parts: AttemptsParts;
  /** Epoch milliseconds of the last attempt's end. */
  private lastAt: number | undefined;
  private failures = 0;
  /** Handlers that have begun and not ended. */
  private running = 0;
  private readonly ahead = new PrefetchWindow();
  /** Attempts that read what they need, or wait for others that do. */
  private reading = 0;
  /** Resolves when the last of them has begun. */
  private turn: Promise<void> = Promise.resolve();

  constructor(code: LoadedCode, parts: AttemptsParts) {
    this.code = code;
    this.parts = parts;
  }

  /** For the status. */
  counts() {
    return { lastEventAt: this.lastAt, failures: this.failures, inFlight: this.running };
  }

  /**
   * How many attempts may be under way for this event to be given to the runner. It counts those that may run at once,
   * and more that wait there. An event that may have brought down what ran it does not wait there.
   */
  limitFor({ attempts, doubt, interruptions }: LaneEvent): number {
    const { sink } = this.parts;
    if (sink) return sink.atOnce;
    const { concurrency, batch } = this.code.manifest.delivery;
    // Those of the batches that run, and those that the next one is made of.
    if (batch) return (concurrency + 1) * batch.maxSize;
    return interruptions > 0 || (attempts > 0 && doubt !== "none") ? concurrency : concurrency + this.ahead.events;
  }

  /** Whether an event is to wait where it is, and others of the function may begin. */
  refuses(event: LaneEvent): boolean {
    return this.parts.sink?.refuses(event) ?? false;
  }

  /** The quiet time of an object before its handler; undefined where there is none, or a key has it. */
  get debounceMs(): number | undefined {
    return this.parts.sink ? undefined : this.code.manifest.delivery.debounceMs;
  }

  /**
   * Whether its events begin in turns with other functions'. Its handler is so brief that it gains nothing from running beside theirs.
   * Of a function with a sink no handler is told, so none is brief.
   */
  get takesTurns(): boolean {
    return !this.code.manifest.delivery.batch && this.ahead.isBrief;
  }

  /** Has the runner give back what has not begun. */
  recall(): void {
    this.parts.runner.recall(this.code.manifest.name);
  }

  /**
   * Makes an attempt. It is put on record at once where all it needs is in memory.
   * @param isPaused asked when the record is written: whether the attempt must not begin any more
   * @param listener hears once how it left its event, never before this returns
   */
  run(event: LaneEvent, isPaused: () => boolean, listener: AttemptListener): void {
    // What the one before it has shown may be newer.
    if (event.doubt === "none" && event.view.isOvertaken(event.key, event.deletedBy)) event.doubt = "noted";
    if (isLetGo(event)) {
      event.verdict = isUnselected;
      // Where a handler may have had it, the object is known, and let go of. Otherwise nothing becomes known by it.
      const mayBeKnown = event.doubt !== "none" || event.attempts > 0;
      event.body = mayBeKnown ? (event.body ?? Buffer.alloc(0)) : undefined;
      if (!mayBeKnown) event.view.leaveUntold(event.key, event.meta.uid);
      event.isAsked = true;
      queueMicrotask(() => listener.ended({ type: "terminal", outcome: "filtered" }));
      return;
    }
    const needs = this.reading === 0 ? this.needsAtOnce(event) : undefined;
    if (needs) this.begin(event, needs, isPaused, listener);
    else void this.readAndBegin(event, isPaused, listener);
  }

  /** Attempts go on in the order in which they were made, however long each had to read. */
  private async readAndBegin(event: LaneEvent, isPaused: () => boolean, listener: AttemptListener): Promise<void> {
    const before = this.turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.turn = promise;
    this.reading++;
    let needs: Needs | undefined;
    let failure: unknown;
    // What is read together is judged one after the other, in the function's time.
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
    else listener.failed(failure);
    resolve();
  }

  /** What an attempt needs, where all of it is in memory. */
  private needsAtOnce(event: LaneEvent): Needs | undefined {
    const { view, body, type } = event;
    if (!body) return undefined;
    let { verdict } = event;
    if (!verdict) {
      if (event.lastKnown || (type !== "Added" && !view.judgesAtOnce(event.key))) return undefined;
      verdict = view.judgeAtOnce(event, body);
      if (!verdict) return undefined;
    }
    return event.oldBody || !this.wantsOld(event, verdict) ? { verdict, body, oldBody: event.oldBody } : undefined;
  }

  /** The same, of which some may be in the store alone. */
  private async needsOf(event: LaneEvent, admitted: () => Promise<void>): Promise<Needs> {
    const { view } = event;
    // A dead letter that was put back has its own: of its object the view may know nothing any more, or another state.
    const inView = event.lastKnown && !event.replayed;
    const stored = event.body ?? (await (inView ? view.lastBody(event.key) : this.parts.spill.body(event)));
    const isLeftOut = stored?.length === 0 && event.type !== "Scheduled";
    const kept = isLeftOut ? await this.bodyNow(event) : stored;
    if (isLeftOut && !kept && isOfToday(event)) {
      const body = this.parts.sink ? Buffer.alloc(0) : view.nameAlone(event);
      return { verdict: this.parts.sink ? told : isGone, body, oldBody: undefined };
    }
    const verdict =
      event.verdict ?? (event.isAsked && event.replayed ? asked(event, kept) : await view.judge(event, kept, admitted));
    const oldBody = event.oldBody ?? (this.wantsOld(event, verdict) ? await view.body(event.key) : undefined);
    return { verdict, body: kept ?? (this.parts.sink ? Buffer.alloc(0) : view.nameAlone(event)), oldBody };
  }

  /** The object as it stands, which may be newer than the event; undefined where it is gone. */
  private async bodyNow(event: LaneEvent): Promise<Buffer | undefined> {
    const { view, key, type, meta } = event;
    if (type === "Deleted") return undefined;
    event.isAsked = true;
    const found = await this.parts.look(view.functionName, view.trigger.name, nameOf(key));
    if (found?.uid !== meta.uid) return undefined;
    event.shown = found.resourceVersion;
    return found.body;
  }

  /** A replay has its own or none: the view knows its object as it left it, or as later events did. */
  private wantsOld(event: LaneEvent, { deliver }: Verdict): boolean {
    if (event.type === "Added" || !deliver || event.replayed) return false;
    const { view, key, type, meta } = event;
    // A list tells a state again where the end of its event is not proven: it is not the state before itself.
    if (type === "Modified" && view.stands(key)?.resourceVersion === meta.resourceVersion) return false;
    return this.parts.sink?.wantsOld(event) ?? this.code.usesOldObject;
  }

  private begin(
    event: LaneEvent,
    { verdict, body, oldBody }: Needs,
    isPaused: () => boolean,
    listener: AttemptListener,
  ): void {
    event.verdict = verdict;
    event.body = body;
    if (!verdict.deliver && (!event.replayed || event.isAsked)) {
      queueMicrotask(() => listener.ended({ type: "terminal", outcome: "filtered" }));
      return;
    }
    const { sink } = this.parts;
    if (sink) {
      const ended = (conclusion: Conclusion) => listener.ended(conclusion);
      queueMicrotask(() => this.parts.time.soon(() => sink.take(event, { body, oldBody }, isPaused, ended)));
      return;
    }
    const { retry, onFailure } = this.code.manifest.delivery;
    if (onFailure !== "Block" && isCrashLoop(event.attempts, retry)) {
      const conclusion = this.givenUp(event, crashLoopError(event.attempts));
      queueMicrotask(() => listener.ended(conclusion));
      return;
    }
    const started = {
      view: event.view.id,
      key: event.key,
      id: event.id,
      resourceVersion: event.shown ?? event.deletedBy,
      type: event.type,
      attempt: event.attempts + 1,
    };
    this.parts.commits.begin(started, (row) => {
      if (isPaused()) {
        this.parts.commits.ended();
        this.parts.commits.withdraw(row, started);
        listener.ended({ type: "not-begun" });
      } else this.give(event, { body, oldBody, row, started }, listener);
    });
  }

  /** Gives the runner an event whose attempt is on record. */
  private give(event: LaneEvent, recorded: AttemptRecord, listener: AttemptListener): void {
    const { commits, runner, clock } = this.parts;
    const { body, oldBody, row, started } = recorded;
    if (event.journalRow !== undefined) commits.settle(event.journalRow, started);
    event.journalRow = row;
    if (event.doubt === "unnoted") event.doubt = "noted";
    event.attempts++;
    const given = new Given(this, event, recorded, listener, clock.monotonic());
    runner.give(deliveryOf(event, body, oldBody, this.code.manifest.delivery.timeoutMs), given);
  }

  /** The handler of an attempt begins. */
  begins({ event: { view, receivedAt, doubt, attempts } }: Given): void {
    const { observer, clock } = this.parts;
    this.running++;
    observer.attempt?.(view.functionName, view.trigger.name, clock.monotonic() - receivedAt);
    if (isRedelivered({ doubt, attempts })) observer.flagged?.(view.functionName, view.trigger.name);
  }

  /** The runner has an attempt no more. */
  ended({ event, recorded, listener, givenAt, hasBegun }: Given, outcome: Outcome): void {
    if (hasBegun) this.running--;
    this.parts.commits.ended();
    if (outcome.type === "unbegun") listener.ended(this.takenBack(event, recorded.row, recorded.started));
    else listener.ended(this.after(event, outcome, recorded.oldBody, givenAt));
  }

  private after(
    event: LaneEvent,
    outcome: Exclude<Outcome, { readonly type: "unbegun" }>,
    oldBody: Buffer | undefined,
    givenAt: number,
  ): Conclusion {
    const { clock } = this.parts;
    this.lastAt = clock.now();
    if (outcome.type !== "interrupted") {
      this.ahead.ended(clock.monotonic() - givenAt, outcome.durationMs);
      return this.conclude(event, outcome, oldBody);
    }
    this.ahead.interrupted();
    event.attempts--;
    event.interruptions++;
    event.doubt = "noted";
    return { type: "again", afterMs: interruptedDelay(event.interruptions), blocked: false };
  }

  /** Where the event had begun before, the record stays: it is all that says so. */
  private takenBack(event: LaneEvent, row: number, started: StartedEvent): Conclusion {
    event.attempts--;
    if (event.attempts === 0 && event.doubt === "none") {
      event.journalRow = undefined;
      this.parts.commits.withdraw(row, started);
    }
    return { type: "not-begun" };
  }

  private conclude(event: LaneEvent, outcome: FinishedAttempt, oldBody: Buffer | undefined): Conclusion {
    const { random, observer, clock } = this.parts;
    const { view } = event;
    event.interruptions = 0;
    observer.handled?.(view.functionName, view.trigger.name, outcome.durationMs);
    view.history.ran(event, event.attempts, outcome, clock.now());
    if (outcome.type === "ok") {
      if (outcome.requeueAfterMs === undefined) return { type: "terminal", outcome: "ok" };
      return this.requeued(event, requeueDelay(outcome.requeueAfterMs));
    }
    this.failures++;
    const { retry, onFailure } = this.code.manifest.delivery;
    const spent = outcome.type === "permanent" || event.attempts >= retry.maxAttempts;
    if (spent && onFailure !== "Block") return this.givenUp(event, outcome.error, oldBody);
    observer.event?.(view.functionName, view.trigger.name, event.type, "retry");
    if (spent) return { type: "again", afterMs: retry.maxDelayMs, blocked: true };
    const asked = outcome.type === "failed" ? outcome.retryAfterMs : undefined;
    return { type: "again", afterMs: retryDelay(retry, event.attempts, asked, random), blocked: false };
  }

  /** As if it had not been attempted, but for the flag: the handler has seen it. */
  private requeued(event: LaneEvent, afterMs: number): Conclusion {
    const { clock, spill } = this.parts;
    const { view, key, id, meta, journalRow: row, shown } = event;
    event.attempts = 0;
    event.doubt = "noted";
    event.notBefore = clock.now() + afterMs;
    spill.defer(event);
    // The row that is written of it now says all that the journal would. Where there is no room for one, the journal does.
    if (event.place !== "memory" && row !== undefined) {
      view.settle({ key, id, uid: meta.uid, row, shown, comesAgain: !event.replayed });
      event.journalRow = undefined;
    }
    return { type: "again", afterMs, blocked: false };
  }

  private givenUp(event: LaneEvent, error: HandlerError, oldBody?: Buffer): Conclusion {
    if (this.code.manifest.delivery.onFailure === "Drop") return { type: "terminal", outcome: "dropped" };
    const { apiVersion, kind } = event.view.trigger;
    const { attempts } = event;
    const failedAt = this.parts.clock.now();
    const letter = { ...storedEvent(event, oldBody), apiVersion, kind, attempts, error: { ...error }, failedAt };
    return { type: "terminal", outcome: "dead_letter", letter };
  }
}

/** Whether it is told with the object as it stands now. A dead letter that was put back is told whatever became of it. */
const isOfToday = ({ type, replayed, flags }: LaneEvent): boolean =>
  type !== "Deleted" && (!replayed || flags.reason === "edited");

/** The verdict on a replay whose object was asked for. A dead letter is told whatever its conditions say. */
function asked(event: LaneEvent, body: Buffer | undefined): Verdict {
  if (!body || !isOfToday(event)) return told;
  return event.view.matches(event.key, body) ? told : { ...isGone, heldBack: refusedBefore };
}

/** Of an object that is gone: its deletion is told, and what was before is not. */
const isGone: Verdict = { deliver: false, heldBack: goneMeanwhile, hash: "", matched: true };
const isUnselected: Verdict = { deliver: false, heldBack: unselected, hash: "", matched: true };

/** Whether it is of an object that the trigger selects no more. Its deletion is told, unless all before it was left out here. */
const isLetGo = ({ type, view, key, meta, isUnselected }: LaneEvent): boolean =>
  type === "Deleted" ? view.isUntold(key, meta.uid) : isUnselected;

const told: Verdict = { deliver: true, heldBack: undefined, hash: "", matched: true };

/** Whether an attempt's event may have run before; of one that is counted among its attempts. */
export const isRedelivered = ({ doubt, attempts }: Pick<LaneEvent, "doubt" | "attempts">): boolean =>
  doubt !== "none" || attempts > 1;

/** One attempt at an event, as the runner takes it. */
function deliveryOf(event: LaneEvent, body: Buffer, oldBody: Buffer | undefined, timeoutMs: number): Delivery {
  const { view, meta, type, id, flags, attempts } = event;
  return {
    function: view.functionName,
    trigger: view.trigger.name,
    id,
    type,
    object: {
      apiVersion: view.trigger.apiVersion,
      kind: view.trigger.kind,
      namespace: meta.namespace,
      name: meta.name,
      uid: givenUid(meta.uid),
    },
    resourceVersion: meta.resourceVersion,
    past: event.epoch < view.epochOf(event.key),
    attempt: attempts,
    redelivered: isRedelivered(event),
    flags,
    body,
    metadata: event.members && metadataIn(event.members, body),
    oldBody,
    timeoutMs,
  };
}

/** Why an event was given up that never got to fail by itself. */
export const crashLoopError = (attempts: number): HandlerError => ({
  name: "CrashLoop",
  message: `the runtime ended during each of ${attempts} attempts at this event`,
  stack: "",
  code: "WF_DISPATCH_CRASH_LOOP",
});
