import type { NewDeadLetter, StartedEvent } from "../../checkpoint/batch.ts";
import type { Clock, Random } from "../../clock.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { Commits } from "../commit/commits.ts";
import type { HandlerError, Outcome, Runner } from "../delivery/delivery.ts";
import type { EventOutcome, Observer } from "../delivery/observer.ts";
import { Ahead } from "./ahead.ts";
import { crashLoopError, deliveryOf, isRedelivered } from "./attempt.ts";
import { type LaneEvent, storedEvent } from "./event.ts";
import { interruptedDelay, isCrashLoop, retryDelay } from "./retry.ts";
import type { Spill } from "./spill.ts";

/** How an attempt leaves its event. */
export type Conclusion =
  /** The letter goes into the commit that makes the event terminal. */
  | { readonly type: "terminal"; readonly outcome: EventOutcome; readonly letter?: NewDeadLetter }
  /** `blocked`: it is out of attempts, and holds its lane as the manifest asks. */
  | { readonly type: "again"; readonly afterMs: number; readonly blocked: boolean }
  /** The function was paused meanwhile, or the runner gave it back: the attempt is as if it had not been made. */
  | { readonly type: "not-begun" };

/** An attempt that ended by itself. */
type Finished = Exclude<Outcome, { readonly type: "interrupted" | "unbegun" }>;

export interface AttemptsParts {
  readonly spill: Spill;
  readonly commits: Commits;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
}

/** What an attempt is made with. */
export interface Code {
  readonly manifest: FunctionManifest;
  /** The handler reads the previous object. */
  readonly usesOldObject: boolean;
}

/** Runs one function's attempts: the filter's verdict, the record that one begins, the handler, and what follows from how it ended. */
export class Attempts {
  /** New code comes between two attempts. */
  code: Code;
  private readonly parts: AttemptsParts;
  /** Epoch milliseconds of the last attempt's end. */
  private lastAt: number | undefined;
  private failures = 0;
  /** Handlers that have begun and not ended. */
  private running = 0;
  private readonly ahead = new Ahead();
  /** Resolves when the attempt that was made last has read what it needs, and those before it. */
  private turn: Promise<void> = Promise.resolve();

  constructor(code: Code, parts: AttemptsParts) {
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
    const { concurrency } = this.code.manifest.delivery;
    return interruptions > 0 || (attempts > 0 && doubt !== "none") ? concurrency : concurrency + this.ahead.events;
  }

  /** Has the runner give back what has not begun. */
  recall(): void {
    this.parts.runner.recall(this.code.manifest.name);
  }

  /**
   * Rejects where the disk does not give what the attempt needs.
   * @param isPaused asked when the record is written: whether the attempt must not begin any more
   */
  async run(event: LaneEvent, isPaused: () => boolean): Promise<Conclusion> {
    const { commits, runner, clock } = this.parts;
    const { view } = event;
    const { verdict, body, oldBody } = await this.inTurn(this.read(event));
    event.verdict = verdict;
    event.body = body;
    if (!verdict.deliver && !event.replayed) return { type: "terminal", outcome: "filtered" };
    const { retry, onFailure, timeoutMs } = this.code.manifest.delivery;
    if (onFailure !== "Block" && isCrashLoop(event.attempts, retry)) {
      return this.givenUp(event, crashLoopError(event.attempts));
    }
    const started = {
      view: view.id,
      key: event.key,
      id: event.id,
      resourceVersion: event.deletedBy,
      type: event.type,
      attempt: event.attempts + 1,
    };
    const row = await commits.begin(started);
    if (isPaused()) {
      commits.ended();
      commits.withdraw(row, started);
      return { type: "not-begun" };
    }
    if (event.journalRow !== undefined) commits.settle(event.journalRow, started);
    event.journalRow = row;
    if (event.doubt === "unnoted") event.doubt = "noted";
    event.attempts++;
    const givenAt = clock.monotonic();
    let hasBegun = false;
    const outcome = await runner.run(deliveryOf(event, body, oldBody, timeoutMs), () => {
      hasBegun = true;
      this.begins(event);
    });
    if (hasBegun) this.running--;
    commits.ended();
    if (outcome.type === "unbegun") return this.takenBack(event, row, started);
    this.lastAt = clock.now();
    if (outcome.type !== "interrupted") {
      this.ahead.ended(clock.monotonic() - givenAt);
      return this.conclude(event, outcome, oldBody);
    }
    this.ahead.interrupted();
    event.attempts--;
    event.interruptions++;
    event.doubt = "noted";
    return { type: "again", afterMs: interruptedDelay(event.interruptions), blocked: false };
  }

  /** What an attempt needs, of which some may be in the store alone. */
  private async read(event: LaneEvent) {
    const { view } = event;
    const kept = event.body ?? (await (event.lastKnown ? view.body(event.key) : this.parts.spill.body(event)));
    const verdict = event.verdict ?? (await view.judge(event, kept));
    const isToRun = verdict.deliver || event.replayed;
    const wantsOld = isToRun && this.code.usesOldObject && event.type !== "Added";
    const oldBody = event.oldBody ?? (wantsOld ? await view.body(event.key) : undefined);
    return { verdict, body: kept ?? view.nameAlone(event), oldBody };
  }

  /** Attempts go on in the order in which they were made, however long each had to read. */
  private async inTurn<T>(reading: Promise<T>): Promise<T> {
    const before = this.turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.turn = promise;
    try {
      const read = await reading;
      await before;
      return read;
    } finally {
      resolve();
    }
  }

  private begins({ view, receivedAt, doubt, attempts }: LaneEvent): void {
    const { observer, clock } = this.parts;
    this.running++;
    observer.attempt?.(view.functionName, view.trigger.name, clock.monotonic() - receivedAt);
    if (isRedelivered({ doubt, attempts })) observer.flagged?.(view.functionName, view.trigger.name);
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

  private conclude(event: LaneEvent, outcome: Finished, oldBody: Buffer | undefined): Conclusion {
    const { random, observer } = this.parts;
    const { view } = event;
    event.interruptions = 0;
    observer.handled?.(view.functionName, view.trigger.name, outcome.durationMs);
    if (outcome.type === "ok") return { type: "terminal", outcome: "ok" };
    this.failures++;
    const { retry, onFailure } = this.code.manifest.delivery;
    const spent = outcome.type === "permanent" || event.attempts >= retry.maxAttempts;
    if (spent && onFailure !== "Block") return this.givenUp(event, outcome.error, oldBody);
    observer.event?.(view.functionName, view.trigger.name, event.type, "retry");
    if (spent) return { type: "again", afterMs: retry.maxDelayMs, blocked: true };
    const asked = outcome.type === "failed" ? outcome.retryAfterMs : undefined;
    return { type: "again", afterMs: retryDelay(retry, event.attempts, asked, random), blocked: false };
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
