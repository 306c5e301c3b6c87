import { type Clock, pause, type Timer } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type {
  Batch,
  Cursor,
  KnownBody,
  KnownIdentity,
  KnownState,
  NewDeadLetter,
  Spilled,
  StartedEvent,
  StateWrite,
} from "../../journal/batch.ts";
import type { Checkpoint } from "../../journal/checkpoint.ts";
import { largeBytes } from "../../v8/own-copy.ts";
import { freeBytes, type WrittenBodies } from "../account/loop-time.ts";
import type { EngineLog, EngineObserver } from "../delivery/observer.ts";
import { type BodyRoom, LastBodies, longestWaitMs, type PositionHold, RestingRows, ripeMs } from "./deferred-rows.ts";
import { OpenRows } from "./open-rows.ts";
import { PendingBatch } from "./pending-batch.ts";

/** Supplies a cursor when a commit is assembled. */
export interface CursorOwner {
  cursor(): Cursor | undefined;
}

/** The longest time that an attempt waits for others to share its commit, in milliseconds. */
const maxWaitMs = 20;
/** The number of attempts from which on a commit costs each of them almost nothing, however many more would share it. */
const fullCommit = 32;
/**
 * The share of all waiting and running attempts that must have joined such a commit, so that the running ones keep executors busy
 * meanwhile. Executors report 64 ended attempts at a time, of 260 with the defaults: two such batches are not quite half. With a
 * share of 0.5 a commit waited for the third batch, which cost 1 to 5 % of events a second.
 */
const joinedShare = 0.4;
/** The share of the time that commits take at most while handlers run, so that a slow disk gets larger batches. */
const commitShare = 0.1;
/**
 * The share of the time that commits take at most in any case, with a pause of at most `mostIdleMs` milliseconds, so that events
 * that arrive one by one share some commits. At 1,000 events a second an event then costs 410 us of CPU, and 590 with 1 ms. With
 * 2 ms it costs as much, and p99 is 5 ms instead of 4.
 */
const leastShare = 0.02;
const mostIdleMs = 1.5;
/** Finished work is committed after this many rows, bytes of bodies, or milliseconds. */
const eagerRows = 256;
const eagerBytes = 4 * 1024 * 1024;
const lazyMs = 250;
/** Sources pause while this much waits for a commit: rows only while the store fails, bytes of bodies always. */
const congestedRows = 1000;
const congestedBytes = 32 * 1024 * 1024;
const never = Number.POSITIVE_INFINITY;
/** The delay before a failed commit is retried, in milliseconds. */
const retryMs = 1_000;

/** Builds the command line that shows or replays a dead letter. `id` is in the form that commands accept. */
export type DeadLetterCommand = (action: "show" | "replay", id: string) => string;

const plainCommand: DeadLetterCommand = (action, id) => `watchfire dead-letters ${action} ${id}`;

interface CommitsOptions {
  readonly store: Checkpoint;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
  /** Prefix of a dead letter's id in the form that commands accept. Default: empty. */
  readonly letterPrefix?: string | undefined;
  /** Default: `watchfire dead-letters`, without options. */
  readonly letterCommand?: DeadLetterCommand | undefined;
  /** Memory for last bodies that wait. Default: not shared. */
  readonly bodyRoom?: BodyRoom | undefined;
  /** Charges functions for large bodies. Default: nobody is charged. */
  readonly written?: WrittenBodies | undefined;
  /** The first unused row number of the journal. */
  readonly firstJournalRow: number;
  /** Called before each commit; once it returns false, nothing is written any more. */
  readonly permitted?: (() => boolean) | undefined;
  /** Called once when another runtime has taken over the store, so that nothing can be written any more. */
  readonly onLost: (error: WatchfireError) => void;
}

/**
 * Group commit: gathers the writes of all functions and commits them together, one commit at a time, in order. Finished work
 * becomes durable soon; an attempt becomes durable before it runs.
 */
export class Commits {
  private readonly options: CommitsOptions;
  private pending: PendingBatch;
  /** The batch that is being written. */
  private writing: PendingBatch | undefined;
  private readonly dirty = new Set<CursorOwner>();
  /** Owners whose cursors may wait for a later commit, and the time since which the first of them waits. */
  private readonly late = new Set<CursorOwner>();
  private lateSince = 0;
  private readonly bodies: LastBodies;
  private readonly resting = new RestingRows();
  /** The number of callers that wait for all bodies. */
  private hurrying = 0;
  private nextRow: number;
  private readonly openRows = new OpenRows();
  /** The numbers of attempts that wait for their commit, and of those that run. */
  private waiting = 0;
  private running = 0;
  private timer: { readonly at: number; readonly timer: Timer } | undefined;
  private turn = false;
  private lastEnd = Number.NEGATIVE_INFINITY;
  private lastDurationMs = 0;
  private failure: WatchfireError | undefined;
  private halted = false;
  private congestion: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(options: CommitsOptions) {
    this.options = options;
    this.bodies = new LastBodies(options.bodyRoom);
    this.nextRow = options.firstJournalRow;
    this.pending = new PendingBatch(this.nextRow++);
  }

  /**
   * Writes a row in the next commit. A large body joins it unless others wait to be written: then it follows, one in each commit,
   * because other functions wait for a commit.
   */
  putKnown(view: number, key: string, state: KnownState | undefined): void {
    this.bodies.forget(view, key);
    this.resting.take(view, key);
    const body = state?.body instanceof Uint8Array ? state.body : undefined;
    if (state && body && body.length >= largeBytes && this.follows(view, key, body))
      this.pending.putKnown(view, key, { ...state, body: undefined });
    else {
      this.pending.putKnown(view, key, state);
      if (body && body.length > freeBytes) this.chargeKnown(view, body);
    }
    if (state?.deleted)
      for (const row of this.openRows.recordDeletion(view, key, state.uid)) this.pending.putJournal(row);
    this.soon();
  }

  /**
   * Same as `putKnown`, but the body may be written later, because an older one is stored. It is written within five seconds, and
   * at a clean shutdown.
   */
  putKnownBodyLater(view: number, key: string, state: KnownState & { readonly body: Buffer }): void {
    const { options, pending, bodies } = this;
    const waits =
      options.store.writesBodies &&
      pending.leavesBody(view, key) &&
      bodies.take(view, key, state.body, options.clock.monotonic());
    if (!waits) {
      this.putKnown(view, key, state);
      return;
    }
    this.resting.take(view, key);
    pending.putKnown(view, key, { ...state, body: "older" });
    this.soon();
  }

  /**
   * Same as `putKnown`, for a change that was held back and differs from the stored row only in the resourceVersion. Row and body
   * are written within five seconds, and at a clean shutdown. The body is dropped if there is no room for it.
   * @returns whether no checkpoint may pass the change before `hold` is released
   */
  putKnownAtRest(
    view: number,
    key: string,
    identity: KnownIdentity,
    body: Buffer | undefined,
    hold: PositionHold,
  ): boolean {
    const { options, pending, bodies } = this;
    const now = options.clock.monotonic();
    const row = { identity, hasBody: body !== undefined, hold };
    const rests = pending.has(view, key) ? undefined : this.resting.put(view, key, now, row);
    if (!rests) {
      if (body) this.putKnownBodyLater(view, key, { ...identity, body });
      else this.putKnown(view, key, { ...identity, body });
      return false;
    }
    if (body && options.store.writesBodies) bodies.take(view, key, body, now);
    this.within(longestWaitMs);
    return rests === "held";
  }

  putSpilled(event: Spilled): void {
    if (event.body.length > freeBytes || event.oldBody) this.chargeBodies(event);
    this.pending.addSpilled(event);
    this.soon();
  }

  dropSpilled(functionName: string, sequence: number): void {
    this.pending.dropSpilled(functionName, sequence);
    this.soon();
  }

  /** Adds what an attempt wrote to its function's state. Called in the turn in which its event ends, so that both share a commit. */
  putState(view: number, writes: readonly StateWrite[]): void {
    if (writes.length === 0) return;
    let length = 0;
    for (const { value } of writes) length += value?.length ?? 0;
    this.options.written?.charge(view, length);
    this.pending.addState(writes);
    this.soon();
  }

  private follows(view: number, key: string, body: Buffer): boolean {
    const { clock, store } = this.options;
    return store.writesBodies && this.bodies.take(view, key, body, clock.monotonic() - longestWaitMs);
  }

  private chargeKnown(view: number, body: Buffer): void {
    const { store, written } = this.options;
    if (store.writesBodies) written?.charge(view, body.length);
  }

  private chargeBodies({ view, body, oldBody }: Pick<NewDeadLetter, "view" | "body" | "oldBody">): void {
    this.options.written?.charge(view, body.length);
    this.options.written?.charge(view, oldBody?.length);
  }

  putDeadLetter(letter: NewDeadLetter): void {
    this.chargeBodies(letter);
    this.pending.addDeadLetter(letter);
    this.soon();
  }

  dropDeadLetter(letter: string): void {
    this.pending.dropDeadLetter(letter);
    this.soon();
  }

  /** Records that the owner's cursor has moved. It is read at the next commit. */
  cursorMoved(owner: CursorOwner): void {
    this.dirty.add(owner);
    this.soon();
  }

  /**
   * Same as `cursorMoved`, for a cursor with which nothing else must be written: a busy source's commits share one write of it.
   */
  cursorMovedLater(owner: CursorOwner): void {
    if (this.dirty.has(owner) || this.late.has(owner)) return;
    if (this.late.size === 0) {
      this.lateSince = this.options.clock.monotonic();
      this.within(lazyMs);
    }
    this.late.add(owner);
  }

  dropCursor(view: number, namespace: string): void {
    this.pending.dropCursor(view, namespace);
    this.soon();
  }

  /** Replaces the journal rows of an earlier run by one for each attempt that still counts, and sets its `row`. */
  carryJournal(rows: readonly number[], started: Iterable<StartedEvent & { row: number }>): void {
    for (const row of rows) this.pending.settleJournal(row);
    for (const each of started) {
      const { row: _, ...event } = each;
      each.row = this.nextRow++;
      this.pending.putJournal({ id: each.row, started: [event] });
    }
    this.soon();
  }

  /**
   * Calls `begun` with the journal row when the attempt is recorded. Must be followed by `ended`. It takes a callback, because
   * promises are much of an event's cost. The callback must not throw.
   */
  begin(started: StartedEvent, begun: (row: number) => void): void {
    const { pending } = this;
    const { row } = pending;
    // A change that was held back earlier is recorded in the same commit; otherwise it would be delivered after this attempt if
    // the process is killed.
    const rested = this.resting.take(started.view, started.key);
    if (rested) pending.putKnown(started.view, started.key, rested);
    pending.started.push(started);
    this.openRows.add(row, pending.started);
    this.waiting++;
    pending.begun.push(begun);
    this.schedule();
  }

  /** Records that an attempt has ended, whatever its result. */
  ended(): void {
    this.running--;
    if (this.waiting > 0 && this.running === 0) this.schedule();
  }

  /**
   * Removes an attempt's record, because its event is terminal, or a later attempt is recorded. The row stays for the other
   * attempts in it, and is rewritten if it has become much smaller. Settling one twice does not affect the others.
   */
  settle(row: number, attempt: Pick<StartedEvent, "view" | "key" | "id">): void {
    if (this.openRows.settle(row, attempt)) {
      this.pending.settleJournal(row);
      return;
    }
    const left = this.openRows.shrink(row);
    if (left) this.pending.putJournal(left);
  }

  /** Removes an attempt from the count, but keeps the state that it has shown. Returns the row of that record. */
  uncount(row: number, shown: StartedEvent): number {
    this.settle(row, shown);
    const id = this.nextRow++;
    this.pending.putJournal({ id, started: [shown] });
    return id;
  }

  /** Removes the record of an attempt that did not begin, also for a later load of its function in this process. */
  withdraw(row: number, started: StartedEvent): void {
    const rest = this.openRows.withdraw(row, started);
    if (rest) {
      this.pending.putJournal(rest);
      this.soon();
    } else this.pending.settleJournal(row);
  }

  /** Adds the cursors to the next commit that have waited since `until` or longer. */
  private takeLate(until: number): void {
    if (this.late.size === 0 || this.lateSince > until) return;
    for (const owner of this.late) this.dirty.add(owner);
    this.late.clear();
  }

  /** The number of the commit that gathers writes. */
  get number(): number {
    return this.pending.row;
  }

  /** Writes everything gathered, and then calls `done`. */
  written(done: () => void): void {
    this.pending.waiters.push(done);
    this.now();
  }

  /** Resolves when everything submitted so far is committed. */
  flush(): Promise<void> {
    this.takeLate(never);
    return new Promise((resolve) => {
      this.pending.waiters.push(resolve);
      this.now();
    });
  }

  /**
   * Commits a batch ahead of the gathered writes. Retries without limit, since a store that timed out may have committed it.
   * @throws WatchfireError the reason, once nothing is written any more
   */
  async past(batch: Batch): Promise<void> {
    while (this.options.permitted?.() !== false && !this.halted) {
      if (await this.attempt(batch)) {
        // The batch that is being written reports its own failure.
        if (!this.writing) this.failure = undefined;
        return;
      }
      await pause(this.options.clock, retryMs);
    }
    throw this.failure ?? new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: "the runtime ends" });
  }

  /** Resolves when everything submitted so far would survive a crash, bodies and resting rows included. */
  async sync(): Promise<void> {
    await this.flushAll();
    await this.options.store.sync();
  }

  /** Resolves when everything submitted so far is committed, bodies and resting rows included. */
  async flushAll(): Promise<void> {
    const until = this.options.clock.monotonic() + longestWaitMs;
    this.hurrying++;
    do await this.flush();
    while (this.due <= until);
    this.hurrying--;
  }

  /** Returns the last known body of an object, committed or not. */
  async body(view: number, key: string): Promise<KnownBody | undefined> {
    // The newest one, if there is one: the pending row of a large body is without it.
    const waiting = this.bodies.get(view, key);
    if (waiting) return waiting;
    const found = this.pending.bodyOf(view, key);
    if (found) return found.body;
    const written = this.writing?.bodyOf(view, key);
    const body = written ? written.body : await this.options.store.body(view, key);
    return body && this.resting.has(view, key) ? { ...body, isOlder: true } : body;
  }

  /** The time at which the next waiting body or resting row must be written. */
  private get due(): number {
    return Math.min(this.bodies.due ?? never, this.resting.due ?? never);
  }

  /** The error of the last commit; `undefined` if it succeeded. */
  get trouble(): WatchfireError | undefined {
    return this.failure;
  }

  /** The bytes of bodies in the next commit. */
  get pendingBytes(): number {
    return this.pending.bytes;
  }

  /** A pending promise while sources should pause. */
  get congested(): Promise<void> | undefined {
    const rows = this.pending.rows + (this.writing?.rows ?? 0);
    const bytes = this.pending.bytes + (this.writing?.bytes ?? 0);
    if (bytes <= congestedBytes && !(this.failure && rows > congestedRows)) return undefined;
    this.congestion ??= Promise.withResolvers<void>();
    return this.congestion.promise;
  }

  /** Stops writing, as if the process had been killed. */
  halt(): void {
    this.halted = true;
    this.bodies.close();
    this.timer?.timer.cancel();
  }

  private soon(): void {
    if (this.pending.rows >= eagerRows || this.pending.bytes >= eagerBytes) this.now();
    else this.within(lazyMs);
  }

  /** Schedules a commit for a waiting attempt: at once if many wait with it; otherwise after a pause, for others to join. */
  private schedule(): void {
    const joined = this.pending.started.length;
    if (joined >= fullCommit && joined >= joinedShare * (this.running + this.waiting)) {
      this.now();
      return;
    }
    const { lastDurationMs } = this;
    const idleMs = Math.min(mostIdleMs, lastDurationMs / leastShare);
    const pauseMs = this.running === 0 ? idleMs : Math.max(idleMs, Math.min(maxWaitMs, lastDurationMs / commitShare));
    const delay = this.lastEnd + pauseMs - this.options.clock.monotonic();
    if (delay <= 0) this.now();
    else this.within(delay);
  }

  private within(delayMs: number): void {
    if (this.turn || this.halted) return;
    const at = this.options.clock.monotonic() + delayMs;
    if (this.timer && this.timer.at <= at) return;
    this.timer?.timer.cancel();
    this.timer = { at, timer: this.options.clock.after(delayMs, () => this.now()) };
  }

  /** Commits after this turn of the event loop, so that all writes of the turn share the commit. */
  private now(): void {
    if (this.turn || this.halted) return;
    this.turn = true;
    this.timer?.timer.cancel();
    this.timer = undefined;
    setImmediate(() => void this.commitOne());
  }

  private async commitOne(): Promise<void> {
    if (this.writing || !this.turn || this.halted) return;
    this.turn = false;
    const batch = this.pending;
    this.pending = new PendingBatch(this.nextRow++);
    this.writing = batch;
    await this.write(batch);
    this.writing = undefined;
    if (this.halted) return;
    this.congestion?.resolve();
    this.congestion = undefined;
    for (const begun of batch.begun) {
      this.waiting--;
      this.running++;
      begun(batch.row);
    }
    for (const resolve of batch.waiters) resolve();
    // The next commit gets another turn: the work that waited for this one adds more writes.
    const due = Math.min(this.due, this.late.size > 0 ? this.lateSince + lazyMs : never);
    if (this.turn) setImmediate(() => void this.commitOne());
    else if (due !== never) this.within(Math.max(0, due - this.options.clock.monotonic()));
  }

  /** Logs an event that was given up, once its dead letter is on disk and can be looked at. */
  private logGivenUp(letter: NewDeadLetter, id: string | undefined): void {
    const { function: name, trigger, attempts: attempt } = letter;
    const called = `${this.options.letterPrefix ?? ""}${id}`;
    const { letterCommand = plainCommand } = this.options;
    const ways = { show: letterCommand("show", called), replay: letterCommand("replay", called) };
    this.options.log.warn(
      { function: name, trigger, object: objectText(letter), attempt, letter: called, ...ways },
      "event given up",
    );
  }

  private async write(batch: PendingBatch): Promise<void> {
    const { clock, observer } = this.options;
    const until = clock.monotonic() - (this.hurrying > 0 ? 0 : ripeMs);
    for (const { view, key, state } of this.resting.release(until)) batch.putKnown(view, key, state);
    const bodies = this.bodies.release(until);
    for (const { view, body } of bodies) this.options.written?.charge(view, body.length);
    batch.takeBodies(bodies);
    this.takeLate(clock.monotonic() - lazyMs);
    const cursors = [...this.dirty].flatMap((owner) => owner.cursor() ?? []);
    this.dirty.clear();
    const sealed = batch.seal(cursors);
    for (;;) {
      if (this.options.permitted?.() === false) {
        this.halt();
        return;
      }
      const from = clock.monotonic();
      const letters = await this.attempt(sealed);
      if (letters) {
        this.failure = undefined;
        this.lastEnd = clock.monotonic();
        this.lastDurationMs = this.lastEnd - from;
        observer.committed?.(this.lastDurationMs, sealed.known.length + sealed.journal.length + sealed.spill.length);
        for (const [index, letter] of sealed.deadLetters.entries()) this.logGivenUp(letter, letters[index]);
        return;
      }
      if (this.halted) return;
      await pause(clock, retryMs);
      if (this.halted) return;
    }
  }

  /**
   * Returns the dead letters' ids; `undefined` if the commit failed. Only errors of the store are caught here: a batch that was
   * written is not written again.
   */
  private async attempt(sealed: Batch): Promise<readonly string[] | undefined> {
    const { store, observer, log } = this.options;
    try {
      return await store.commit(sealed);
    } catch (error) {
      this.failure = asCommitError(error);
      observer.commitFailed?.();
      if (error instanceof WatchfireError && isFinal(error)) {
        this.halt();
        this.options.onLost(error);
      } else log.error({ error: String(error) }, "commit failed");
      return undefined;
    }
  }
}

/** Whether no later commit can succeed. */
const isFinal = ({ code }: WatchfireError): boolean =>
  code === "WF_CHECKPOINT_FENCED" || code === "WF_CHECKPOINT_GONE" || code === "WF_CHECKPOINT_REWOUND";

/** The name of an object in the log. */
const objectText = ({ apiVersion, kind, namespace, name }: NewDeadLetter): string =>
  `${apiVersion}/${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;

const asCommitError = (error: unknown): WatchfireError =>
  error instanceof WatchfireError
    ? error
    : new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", {
        what: error instanceof Error ? error.message : String(error),
      });
