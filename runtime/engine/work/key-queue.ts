import type { Clock, Timer } from "../../base/clock.ts";
import type { NewDeadLetter } from "../../journal/batch.ts";
import { CommitShare } from "../commit/commit-share.ts";
import type { Commits } from "../commit/commits.ts";
import type { Attempts, Conclusion, LoadedCode } from "./attempt.ts";
import type { KeyBackoff } from "./key-backoff.ts";
import {
  arrivalAt,
  isByEdit,
  KeyLane,
  type KeyPresence,
  noCauses,
  requeued,
  type Waking,
  withCause,
} from "./key-lane.ts";
import type { Waits } from "./lane.ts";
import type { KeySource, Primary } from "./primary.ts";
import { debounceWaitMs } from "./retry.ts";
import type { Spill } from "./spill.ts";
import { type Turn, WorkQueue } from "./work-queue.ts";

/** Limit on one function's ready keys in memory. Beyond it changes wait, as for any slow function. */
const mostReady = 100_000;

/** The interval at which a full queue checks whether changes may go on, in milliseconds: other functions may have made room. */
const roomPollMs = 1_000;

/** The interval at which keys are recounted while there are too many, in milliseconds: it looks at each of 10,000. */
const recountMs = 5_000;

/** The interval at which keys are checked that may not run before their objects are known, in milliseconds. */
const settlePollMs = 100;

interface KeyQueueParts {
  readonly primary: Primary;
  readonly source: KeySource;
  readonly attempts: Attempts;
  readonly backoff: KeyBackoff;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly spill: Pick<Spill, "holdKeys" | "isFullOfKeys">;
  /** Returns the number of a new row. */
  readonly nextSequence: () => number;
}

/** One function's keys: at most one run of each at a time, and a row on disk for each that is to run. */
export class KeyQueue extends WorkQueue<KeyLane, KeyLane> {
  /** The share of a commit for its rows and runs. */
  readonly share: CommitShare;
  private readonly parts: KeyQueueParts;
  private readonly room: KeyRoom;
  /** Keys whose objects are not known yet. */
  private readonly unsettled = new Set<KeyLane>();
  private settling: Timer | undefined;
  private recountedAt = Number.NEGATIVE_INFINITY;
  /** Set while changes wait until there are fewer keys. */
  private roomPoll: Timer | undefined;
  private isStarted = false;
  private pumpsSoon = false;

  constructor(parts: KeyQueueParts) {
    const share = new CommitShare(parts.commits, () => {
      this.pump();
      parts.source.pump();
    });
    super(parts.attempts, parts.clock, (work) => share.soon(work));
    this.parts = parts;
    this.share = share;
    this.room = new KeyRoom(parts.spill);
  }

  /** Returns counts for the status, with times in wall-clock milliseconds. Requeued keys do not count as waiting. */
  counts() {
    const counts = this.count([...this.lanes.values()].filter(({ waits }) => waits !== "requeue"));
    const { size } = this.lanes;
    const keys = { count: size, withoutObject: this.room.withoutObject, full: this.roomPoll !== undefined };
    return { ...counts, requeued: size - counts.queued - counts.inFlight, keys };
  }

  /** Whether changes must wait until there are fewer keys. */
  get isFull(): boolean {
    const isFull = this.roomPoll
      ? !this.hasRoom
      : this.ready.length + this.unsettled.size >= mostReady || this.room.isFull;
    if (isFull) this.awaitRoom();
    return isFull;
  }

  /** Restores a key that was to run when the last process ended, so many milliseconds from now. */
  restore(lane: KeyLane, backoffMs: number): void {
    const { commits, primary } = this.parts;
    if (this.lanes.has(lane.key)) {
      commits.dropSpilled(primary.objects.functionName, lane.sequence);
      return;
    }
    this.lanes.set(lane.key, lane);
    const hasRun = backoffMs > 0;
    this.room.note(lane, primary.has(lane.key) ? "object" : hasRun ? "absent" : "unknown");
    const isRequeued = lane.attempts === 0 && lane.causes.every(({ type }) => type === "Requeue");
    if (hasRun) this.wait(lane, isRequeued ? "requeue" : "retry", backoffMs);
    else this.ready.add(lane);
  }

  /** Begins to run keys. */
  start(): void {
    this.isStarted = true;
    this.pump();
  }

  /**
   * Wakes a key: a run begins after this. Its row is in the next commit.
   * @returns the number of causes in the row that is written; 0 if the row on disk is sufficient
   */
  wake(key: string, cause: Waking): number {
    const { clock, nextSequence } = this.parts;
    const lane = this.lanes.get(key);
    // A replay is requested by a user, and the backoff is for changes.
    if (cause.type === "Replay") this.parts.backoff.forget(key);
    if (isByEdit(cause)) this.parts.attempts.noteEdit();
    if (!lane) {
      const redeliveryRisk = cause.hasBegun ? "persisted" : "none";
      const counts = { causes: [cause], begun: 0, forgiven: 0 };
      const made = new KeyLane(this.parts.primary, key, nextSequence(), counts, arrivalAt(clock), redeliveryRisk);
      this.lanes.set(key, made);
      this.room.note(made, this.presenceOf(key, cause));
      this.write(made);
      this.debounceOrBackOff(made);
      this.pumpSoon();
      return made.causes.length;
    }
    const { share } = this;
    const before = share.added;
    if (cause.type !== "Resync" || lane.waits === "requeue") this.wakeAgain(lane, cause);
    this.pumpSoon();
    return share.added === before ? 0 : lane.causes.length + lane.since.length;
  }

  /** Begins runs in a microtask, because a change is known only once its event has ended, later in this turn. */
  private pumpSoon(): void {
    if (this.pumpsSoon) return;
    this.pumpsSoon = true;
    queueMicrotask(() => {
      this.pumpsSoon = false;
      this.pump();
    });
  }

  override resumeWith(code: LoadedCode): void {
    if (this.room.isFull) this.runRequeuedNow();
    super.resumeWith(code);
  }

  /** Runs requeued keys without an object at once if the queue is full of keys: the new code may not requeue them. */
  private runRequeuedNow(): void {
    for (const lane of this.lanes.values())
      if (lane.waits === "requeue" && lane.presence === "absent") this.endWait(lane);
  }

  /** Whether a key has an object. A change of the object itself shows it before the known objects do. */
  private presenceOf(key: string, cause?: Waking): KeyPresence {
    const { primary } = this.parts;
    if (cause?.trigger === primary.objects.identity) return cause.type === "Deleted" ? "absent" : "object";
    if (primary.has(key)) return "object";
    return this.isSettled(key) ? "absent" : "unknown";
  }

  /** Stops all runs. Resolves when nothing runs. */
  override stop(): Promise<void> {
    this.settling?.cancel();
    this.roomPoll?.cancel();
    const stopped = super.stop();
    this.share.close();
    return stopped;
  }

  /**
   * Wakes a key that is to run anyway. Resets its attempts. It runs at once unless it is in backoff; a running key runs again.
   */
  private wakeAgain(lane: KeyLane, cause: Waking): void {
    const { clock } = this.parts;
    // A handler that asked for a later time can ask for it again.
    const isRequeued = lane.waits === "requeue";
    if (isRequeued) {
      lane.causes = noCauses;
      lane.wokenAt = arrivalAt(clock);
    }
    const isNews = lane.isNews(cause);
    this.room.note(lane, this.presenceOf(lane.key, cause));
    if (cause.hasBegun) lane.redeliveryRisk = "persisted";
    const failed = !lane.running && lane.attempts > 0;
    if (!lane.running) lane.forgive();
    if (lane.waits && lane.waits !== "interrupted") this.debounceOrBackOff(lane);
    // Otherwise its row already says that it is due.
    if (isNews || failed || isRequeued) this.write(lane);
  }

  protected take(lane: KeyLane): Turn {
    const { concurrency } = this.parts.attempts.code.manifest.delivery;
    if (!this.isStarted || this.inProgress >= concurrency || this.share.isSpent) return "full";
    if (!this.isRunnable(lane)) return "taken";
    this.share.add();
    return this.run(lane, lane);
  }

  /** Whether the key may run. It waits until its object is known. If it has a wrong namespace, the right key is woken instead. */
  private isRunnable(lane: KeyLane): boolean {
    const { primary, commits } = this.parts;
    if (!this.isSettled(lane.key)) {
      this.unsettled.add(lane);
      this.awaitSettled();
      return false;
    }
    const canonical = primary.canonicalKey(lane.key);
    if (canonical === lane.key) {
      this.room.note(lane, this.presenceOf(lane.key));
      return true;
    }
    this.room.forget(lane);
    this.lanes.delete(lane.key);
    commits.dropSpilled(primary.objects.functionName, lane.sequence);
    if (lane.journalRow !== undefined)
      commits.settle(lane.journalRow, { view: primary.objects.id, key: lane.key, id: lane.id });
    for (const cause of lane.causes) this.wake(canonical, cause);
    return false;
  }

  private isSettled(key: string): boolean {
    const { primary, source } = this.parts;
    return this.isStarted && primary.isSettled(key, source);
  }

  private awaitSettled(): void {
    if (this.settling || this.isStopped) return;
    this.settling = this.parts.clock.after(
      settlePollMs,
      () => {
        this.settling = undefined;
        for (const lane of this.unsettled) this.ready.add(lane);
        this.unsettled.clear();
        this.pump();
      },
      { unref: true },
    );
  }

  protected returned(): void {
    if (this.roomPoll && this.hasRoom) this.endFull();
  }

  private get hasRoom(): boolean {
    return this.ready.length + this.unsettled.size <= mostReady / 2 && !this.room.isFull;
  }

  private awaitRoom(): void {
    if (this.roomPoll || this.isStopped) return;
    this.roomPoll = this.parts.clock.after(roomPollMs, () => (this.hasRoom ? this.endFull() : this.pollAgain()), {
      unref: true,
    });
  }

  private pollAgain(): void {
    this.roomPoll = undefined;
    const now = this.parts.clock.monotonic();
    if (now - this.recountedAt >= recountMs) this.recount(now);
    this.awaitRoom();
  }

  /** Recounts keys whose object may have appeared. */
  private recount(now: number): void {
    this.recountedAt = now;
    const { primary } = this.parts;
    for (const lane of this.lanes.values())
      if (lane.presence === "absent" && primary.has(lane.key)) this.room.note(lane, "object");
  }

  private endFull(): void {
    this.roomPoll?.cancel();
    this.roomPoll = undefined;
    this.parts.source.pump();
  }

  /** Causes that arrived during the run are still in `since`. */
  protected conclude(lane: KeyLane, _: KeyLane, conclusion: Conclusion): void {
    if (conclusion.type === "not-begun") {
      this.absorb(lane);
      this.ready.add(lane);
    } else if (conclusion.type === "again" && conclusion.why === "interrupted") {
      this.absorb(lane);
      this.wait(lane, "interrupted", conclusion.afterMs);
    } else this.finish(lane, conclusion);
  }

  /** Makes the causes that arrived during an interrupted run causes of the next one. */
  private absorb(lane: KeyLane): void {
    if (lane.since.length === 0) return;
    lane.causes = lane.since.reduce(withCause, lane.causes);
    lane.since = noCauses;
    lane.forgive();
    this.write(lane);
  }

  /** Ends a run that has ended by itself, or is not repeated. */
  private finish(lane: KeyLane, conclusion: Exclude<Conclusion, { readonly type: "not-begun" }>): void {
    const { clock, backoff } = this.parts;
    const { since } = lane;
    const isOk = conclusion.type === "terminal" ? conclusion.outcome === "ok" : conclusion.why === "requeue";
    lane.since = noCauses;
    if (conclusion.type === "terminal" && conclusion.wasCrashing) {
      lane.settleShown();
      this.drop(lane, conclusion.letter);
      for (const cause of since) this.wake(lane.key, cause);
      return;
    }
    if (isOk) {
      backoff.forget(lane.key);
      lane.wokenAt = arrivalAt(clock);
    }
    const isWoken = since.length > 0;
    if (isOk) lane.causes = isWoken ? since : requeued;
    else lane.causes = since.reduce(withCause, lane.causes);
    if (isWoken || isOk) lane.forgive();
    if (isWoken) {
      this.write(lane);
      this.debounceOrBackOff(lane);
    } else if (conclusion.type === "terminal") this.drop(lane, conclusion.letter);
    else {
      lane.blocked = conclusion.blocked;
      this.later(lane, conclusion.why, conclusion.afterMs);
    }
  }

  /** Drops the key: it does not run until its next change, or the next resync. */
  private drop(lane: KeyLane, letter: NewDeadLetter | undefined): void {
    const { commits, primary } = this.parts;
    if (letter) commits.putDeadLetter(letter);
    this.share.add();
    this.room.forget(lane);
    this.lanes.delete(lane.key);
    commits.dropSpilled(primary.objects.functionName, lane.sequence);
  }

  /** Schedules a later run, which survives the end of this process. */
  private later(lane: KeyLane, why: Waits, delayMs: number): void {
    this.room.note(lane, this.presenceOf(lane.key));
    this.write(lane, delayMs);
    this.wait(lane, why, delayMs);
  }

  /**
   * Schedules a run after a change: once the object no longer changes and the backoff is over. Replaces the key's current wait.
   */
  private debounceOrBackOff(lane: KeyLane): void {
    const { attempts, clock, backoff } = this.parts;
    const now = clock.monotonic();
    const waitMs = debounceWaitMs(attempts.code.manifest.delivery.debounceMs, lane.wokenAt.monotonic, now, now);
    const backoffMs = backoff.msOf(lane.key);
    if (backoffMs > waitMs) this.wait(lane, "retry", backoffMs);
    else if (waitMs > 0) this.wait(lane, "debounce", waitMs);
    else this.endWait(lane);
  }

  /**
   * Writes its row.
   * @param delayMs the time until it is due. Default: the rest of its backoff.
   */
  private write(lane: KeyLane, delayMs = this.parts.backoff.msOf(lane.key)): void {
    this.share.add();
    this.parts.commits.putSpilled(lane.row(this.parts.clock.now() + delayMs));
  }
}

/**
 * Limit on one function's keys without an object. Keys of objects are limited by the number of objects, each of which costs more
 * than its key. Keys that a `key` expression names, or whose owner is gone, have no such limit.
 */
const mostWithoutObject = 10_000;

/** Limit on keys of which it is not known yet whether they have an object. */
const mostUnknown = 100_000;

/** The memory of a key, and roughly the size of its row, in bytes: its parts, two copies of its name, and each cause. */
const keyBytes = 1024;
const causeBytes = 256;

/** Counts one function's keys, and charges those without an object to the shared budgets. */
class KeyRoom {
  private readonly spill: Pick<Spill, "holdKeys" | "isFullOfKeys">;
  private readonly counts: Record<KeyPresence, number> = { object: 0, absent: 0, unknown: 0 };

  constructor(spill: Pick<Spill, "holdKeys" | "isFullOfKeys">) {
    this.spill = spill;
  }

  /** Counts a key, or counts it again in another category. */
  note(lane: KeyLane, presence: KeyPresence): void {
    this.forget(lane);
    lane.presence = presence;
    this.counts[presence]++;
    if (presence !== "absent") return;
    lane.counted = keyBytes + 2 * lane.key.length + causeBytes * (lane.causes.length + lane.since.length);
    this.spill.holdKeys(lane.counted);
  }

  /** Uncounts a key. */
  forget(lane: KeyLane): void {
    if (lane.presence) this.counts[lane.presence]--;
    lane.presence = undefined;
    if (lane.counted > 0) this.spill.holdKeys(-lane.counted);
    lane.counted = 0;
  }

  get withoutObject(): number {
    return this.counts.absent;
  }

  /** Whether changes must wait until there are fewer keys. */
  get isFull(): boolean {
    const { absent, unknown } = this.counts;
    return absent >= mostWithoutObject || unknown >= mostUnknown || this.spill.isFullOfKeys;
  }
}
