import { randomBytes } from "node:crypto";
import type { EndReason } from "../messages.ts";
import { abortItem, type BatchItem, composeBatch, type QueuedEvent, replyItem } from "./batch.ts";
import { type EventSource, RealmIntake } from "./intake.ts";
import { cpuMsOf, disposeOf, type GuestDoors, type GuestScript, processMs } from "./isolate.ts";
import { isWhole, type OutboxSummary, summarise, withFailure, withStray } from "./outbox.ts";
import type { RealmReports } from "./realm-reports.ts";
import { failureWord, ownStack, type Rejection, rejectionOf } from "./rejection.ts";
import type { IsolateSlots } from "./slots.ts";
import type { Watchdog, Watched } from "./watchdog.ts";

/**
 * Minimum milliseconds between two entries of one isolate that V8 itself times. Only V8's timeouts report where the code was. But
 * isolated-vm keeps a timer for each until it is due and crashes when 200,000 are due together, and one stuck isolate delays the
 * timeouts of all others. So they are rare, and the watchdog enforces the limits.
 */
const timedEntryMs = 1000;
/** Milliseconds after V8's timeout at which the watchdog acts. On a busy machine V8's timer thread runs late. */
const timeoutLeadMs = 100;
/** Share of the budget that must have been real CPU time when V8's timeout, which counts wall time, ends an entry. */
const realShare = 0.8;
/** Milliseconds after which a running entry lends its slot to a waiting isolate. Most entries take less than a batch's 25. */
const lendMs = 30;
/** Milliseconds after disposal of an isolate at which a still running entry is considered unstoppable. */
const unstoppableMs = 1000;
/** Milliseconds that an event's own entry may exceed the event's deadline before it is cut off. */
const deadlineGraceMs = 20;
/** Milliseconds between two seeds of the guest's random numbers. */
const reseedMs = 1000;
/**
 * Interval between two measurements of the guest's heap: milliseconds or events, whichever is reached first. One takes 2 us of
 * the isolate's thread.
 */
const weighMs = 1000;
const weighEvents = 64;
/** Share of the memory limit at which an isolate is replaced, so that no event is charged for memory that earlier events left. */
const wornShare = 0.75;

interface PendingEvent {
  readonly deadline: number;
  cpuMs: number;
  aborted: boolean;
}

interface RunningEntry {
  readonly events: readonly number[];
  readonly startedAt: number;
  readonly startCpuMs: number;
  /** Time of the watchdog's first check of it, and the process' CPU time then. Most entries end before one. */
  seen: { readonly at: number; readonly processMs: number } | undefined;
  readonly budgetMs: number;
  /** Milliseconds that V8 has to end it once a limit is reached, before the watchdog does. */
  readonly leadMs: number;
  /** Whether it has lent its slot. */
  lent: boolean;
  /** Stack at which V8 ended it; empty before. */
  stack: string;
}

/** Constructor parameters of a realm. */
interface RealmParts {
  readonly id: number;
  readonly doors: GuestDoors;
  /** CPU time of an entry, in milliseconds. */
  readonly budgetMs: number;
  readonly watchdog: Watchdog;
  readonly slots: IsolateSlots;
  /** Whether V8 may time the first entry. */
  readonly timed: boolean;
  /** Whether its script will run again in fresh contexts. */
  readonly renews: boolean;
  /** Creates the source from which it takes its events. */
  readonly source: (realm: Realm) => EventSource;
  readonly reports: RealmReports;
}

/** One isolate with a function's code, and its limits. At most one entry runs in it at any time. */
export class Realm implements Watched {
  /** Number by which answers to its calls are routed. */
  id: number;
  private doors: GuestDoors;
  private readonly watchdog: Watchdog;
  private readonly slots: IsolateSlots;
  private readonly intake: RealmIntake;
  private readonly reports: RealmReports;
  private readonly budgetMs: number;
  private readonly renews: boolean;
  private readonly bornAt = performance.now();
  private readonly inbox: BatchItem[] = [];
  private readonly pending = new Map<number, PendingEvent>();
  private readonly calls = new Map<number, number>();
  /** Calls on which the guest's code is blocked. */
  private readonly asked = new Map<number, (answer: string) => void>();
  private entry: RunningEntry | undefined;
  private turning = false;
  private wake: NodeJS.Timeout | undefined;
  private wakeDue = false;
  /** Time at which the first pending timer was due when the isolate became idle. */
  private lateAt = Number.POSITIVE_INFINITY;
  private seededAt = Number.NEGATIVE_INFINITY;
  private timedAt = Number.NEGATIVE_INFINITY;
  private compiled: GuestScript | undefined;
  /** The first entry is weighed: a function may have few events. */
  private weighedAt = Number.NEGATIVE_INFINITY;
  private weighedTaken = 0;
  private isHeavy = false;
  /** 0 before it was measured. */
  private heapBytes = 0;
  private over = false;
  /** Settles after the last call that was queued behind the handler's code. */
  private behind: Promise<unknown> = Promise.resolve();

  constructor({ id, doors, budgetMs, watchdog, slots, timed, renews, source, reports }: RealmParts) {
    if (!timed) this.timedAt = performance.now();
    this.id = id;
    this.doors = doors;
    this.budgetMs = budgetMs;
    this.renews = renews;
    this.watchdog = watchdog;
    this.slots = slots;
    this.intake = new RealmIntake(source(this));
    this.reports = reports;
  }

  /** Number of events that have not ended. */
  get size(): number {
    return this.pending.size;
  }

  get isOver(): boolean {
    return this.over;
  }

  /**
   * Runs the function's script within `budgetMs` of CPU time. Resolves to the guest's result: empty, or why there is no handler.
   */
  async load(script: string, filename: string, budgetMs: number): Promise<string | undefined> {
    return this.enterAlone(budgetMs, async (timeout) => {
      const { isolate, context } = this.doors;
      if (!this.renews) return this.word(context.eval(script, { filename, ...timeout }), timeout);
      const compiling = isolate.compileScript(script, { filename });
      const malformed = await this.unheard(compiling, timeout);
      if (malformed) return failureWord("thrown", malformed);
      this.compiled = await compiling;
      return this.word(this.compiled.run(context, timeout), timeout);
    });
  }

  /** Runs the function's script again in a fresh context created by `renewed`; otherwise like `load`. No event may be pending. */
  async renew(renewed: (old: GuestDoors) => Promise<GuestDoors>, budgetMs: number): Promise<string | undefined> {
    return this.enterAlone(budgetMs, async () => {
      this.doors = await renewed(this.doors);
      this.lateAt = Number.POSITIVE_INFINITY;
      this.seededAt = Number.NEGATIVE_INFINITY;
      return this.word(this.compiled?.run(this.doors.context), undefined);
    });
  }

  /** Whether a new isolate should replace it, because of its number of events or because of what they left in its heap. */
  isWorn(maxEvents: number): boolean {
    return this.isHeavy || this.intake.taken >= maxEvents;
  }

  /**
   * Waits for the guest's result of running the function's script. Queued right behind the script, because each separate entry
   * into the isolate wakes a thread.
   */
  private async word(ran: Promise<unknown> | undefined, timeout: Timeout): Promise<string> {
    const { loaded } = this.doors;
    const said = this.queued(loaded.apply(undefined, []) as Promise<string>);
    const [rejected, word] = await Promise.all([this.unheard(ran, timeout), said]);
    loaded.release();
    // A bundle ends by registering its handler or by reporting an error. With neither, the rejection ended the script early.
    if (rejected && word.startsWith('["missing"')) return failureWord("thrown", rejected);
    return word !== "" || !rejected ? word : failureWord("unheard", rejected);
  }

  private queued<T>(entry: Promise<T>): Promise<T> {
    this.behind = Promise.allSettled([entry]);
    return entry;
  }

  /** Signals that events are available. They are taken as soon as possible. */
  invite(): void {
    this.turn();
  }

  /** Makes a call to the parent while the guest's code is blocked. Without an answer, it stays pending until the isolate ends. */
  ask(call: number, no: number, operation: string, args: string): Promise<string> {
    return new Promise((resolve) => {
      this.asked.set(call, resolve);
      this.reports.asking(call, no, operation, args);
    });
  }

  /** Answers a call, if its event still waits for it. */
  reply(call: number, ok: 0 | 1, text: string): void {
    const standing = this.asked.get(call);
    if (standing) {
      this.asked.delete(call);
      standing(`${ok}${text}`);
      return;
    }
    const no = this.calls.get(call);
    if (no === undefined) return;
    this.calls.delete(call);
    this.push(replyItem(no, call, ok, text));
  }

  /** Ends the isolate and stops its code. Reports `reason` and the charged events. */
  end(reason: EndReason, stack = "", culprits?: readonly number[]): void {
    if (this.over) return;
    this.over = true;
    const inside = this.entry?.events ?? [];
    // With several events inside, the one at fault is unknown. All run again, one at a time.
    const charged = culprits ?? (inside.length === 1 ? inside : []);
    const interrupted = [...this.pending.keys()].filter((no) => !charged.includes(no));
    this.close();
    this.reports.ended(reason, charged, interrupted, stack, this.entry !== undefined);
  }

  /** Closes the isolate without a report. No event may be pending. */
  dispose(): void {
    if (this.over) return;
    this.over = true;
    this.close();
  }

  check(now: number): void {
    const { entry } = this;
    if (entry) this.checkEntry(entry, now);
    else this.abortLate(now);
  }

  private checkEntry(entry: RunningEntry, now: number): void {
    entry.seen ??= { at: now, processMs: processMs() };
    if (!entry.lent && now - entry.startedAt >= lendMs) entry.lent = this.slots.lend();
    const overMs = this.usedMs(entry) - entry.budgetMs;
    const lateMs =
      Math.max(...entry.events.map((no) => now - (this.pending.get(no)?.deadline ?? now))) - deadlineGraceMs;
    if (overMs >= entry.leadMs) this.end("cpu", entry.stack);
    else if (lateMs >= entry.leadMs) this.end("deadline", entry.stack);
  }

  /**
   * Returns the CPU time of a running entry. Until it ends, isolated-vm counts wall time, which would charge a thread for waiting
   * for a core. The process' real CPU time, divided among the running isolates, is an upper bound.
   */
  private usedMs(entry: RunningEntry): number {
    const wallMs = this.cpuMs() - entry.startCpuMs;
    if (wallMs < entry.budgetMs) return wallMs;
    const { at, processMs: before } = entry.seen ?? { at: entry.startedAt, processMs: processMs() };
    return Math.min(wallMs, at - entry.startedAt + (processMs() - before) / Math.max(1, this.slots.used));
  }

  private abortLate(now: number): void {
    for (const [no, event] of this.pending) if (now >= event.deadline) this.abort(no, event, "deadline");
  }

  private abort(no: number, event: PendingEvent, why: "deadline" | "cpu"): void {
    if (event.aborted) return;
    event.aborted = true;
    this.push(abortItem(no, why));
  }

  private push(item: BatchItem): void {
    this.inbox.push(item);
    this.turn();
  }

  /** Enters the isolate as long as there is work. */
  private async turn(): Promise<void> {
    if (this.turning) return;
    this.turning = true;
    try {
      // Items that arrive in the same turn of the event loop are sent together.
      await undefined;
      while (this.hasWork) await this.once();
    } finally {
      this.turning = false;
    }
  }

  private get hasWork(): boolean {
    return !this.over && (this.inbox.length > 0 || this.wakeDue || this.intake.hasWork);
  }

  /** Starts the deadlines of events that were taken. */
  private expect(taken: readonly QueuedEvent[]): void {
    const now = performance.now();
    for (const { no, timeoutMs } of taken) {
      this.pending.set(no, { deadline: now + timeoutMs, cpuMs: 0, aborted: false });
    }
  }

  private async once(): Promise<void> {
    await this.slots.take();
    if (!this.hasWork) {
      this.slots.give();
      return;
    }
    // Overdue timers of earlier events run first and are charged to the next event, since no other event is inside.
    const { intake } = this;
    if (this.pending.size === 0 && intake.room > 0 && performance.now() >= this.lateAt) {
      this.wakeDue = true;
      this.expect(intake.carry());
    }
    const most = this.pending.size + intake.room;
    // Timers get a separate entry, so that their unhandled rejections are not charged to an event that runs in the same entry.
    const timers = this.wakeDue;
    const answers = timers ? [] : this.inbox.splice(0, intake.items);
    const taken = timers ? [] : this.take(intake.items - answers.length);
    const items: readonly BatchItem[] = answers.length === 0 ? taken : [...answers, ...taken];
    this.wakeDue = false;
    clearTimeout(this.wake);
    // A timer may belong to any pending event.
    const events = timers ? [...this.pending.keys()] : [...new Set(items.map((item) => item.no))];
    const only = events.length === 1 ? this.pending.get(events[0] as number) : undefined;
    const startCpuMs = this.cpuMs();
    const outbox = await this.enter(events, this.budgetMs - (only?.cpuMs ?? 0), (timeout) => {
      const now = performance.now();
      const seed = now - this.seededAt < reseedMs ? "" : randomBytes(32).toString("hex");
      if (seed !== "") this.seededAt = now;
      const { pump, drain } = this.doors;
      const pumped = pump.apply(undefined, composeBatch(Math.floor(now - this.bornAt), seed, most, items), timeout);
      // A rejection that a finalizer raises in the same entry replaces the result, so the drain is asked for again.
      const drained = drain.apply(undefined, [false]).catch((error) => {
        if (this.doors.isolate.isDisposed) throw error;
        return drain.apply(undefined, [true]);
      });
      if (now - this.weighedAt >= weighMs || this.intake.taken - this.weighedTaken >= weighEvents) this.weigh(now);
      return Promise.all([this.unheard(pumped, timeout), this.queued(drained)]).then(([rejected, text]) =>
        rejected ? this.blamed(rejected, text as string) : (text as string),
      );
    });
    if (outbox === undefined || this.over) return;
    const usedMs = this.cpuMs() - startCpuMs;
    const summary = summarise(outbox);
    const left = summary && intake.took(items.length, usedMs, summary.left);
    if (!summary || !left) {
      this.end("output");
      return;
    }
    for (const { no } of left) this.pending.delete(no);
    this.settle(outbox, summary, events.slice(0, events.length - left.length), usedMs);
  }

  private take(items: number): readonly QueuedEvent[] {
    const { events, fresh } = this.intake.take(items);
    this.expect(fresh);
    return events;
  }

  /**
   * Waits for an entry's end. Returns an unhandled rejection, because of which isolated-vm fails an entry that otherwise
   * succeeded. Throws errors that ended the isolate. The error's text is no proof: the handler could have written it.
   */
  private async unheard(ended: Promise<unknown> | undefined, timeout: Timeout): Promise<Rejection | undefined> {
    const startedAt = this.entry?.startedAt ?? 0;
    try {
      await ended;
      return undefined;
    } catch (error) {
      if (this.doors.isolate.isDisposed || isTimeout(error, timeout, startedAt)) throw error;
      return rejectionOf(error);
    }
  }

  /** Charges a rejection to the event that caused it. Returns the updated outbox. */
  private async blamed(rejected: Rejection, outbox: string): Promise<string> {
    const { name, message, stack } = rejected;
    const word = (await this.doors.blame.apply(undefined, [name, message, stack])) as string;
    if (word === "stray") return withStray(outbox, rejected);
    if (word === "?") this.end("killed", "", []);
    return word === "" || word === "?" ? outbox : withFailure(outbox, Number(word), rejected);
  }

  /** Queries the heap's size after the running code. The result is used after a later drain. */
  private weigh(now: number): void {
    this.weighedAt = now;
    this.weighedTaken = this.intake.taken;
    const { isolate } = this.doors;
    isolate.getHeapStatistics().then(
      ({ used_heap_size: used, heap_size_limit: limit }) => {
        this.heapBytes = used;
        this.isHeavy = used > wornShare * limit;
      },
      () => undefined, // disposed meanwhile
    );
  }

  private settle(outbox: string, summary: OutboxSummary, events: readonly number[], usedMs: number): void {
    for (const { no } of summary.done) this.pending.delete(no);
    for (const { call, no } of summary.calls) this.calls.set(call, no);
    const shareUs = Math.max(0, Math.round((usedMs * 1000) / Math.max(1, events.length)));
    this.reports.drained(outbox, summary, [shareUs, this.heapBytes]);
    for (const no of events) {
      const event = this.pending.get(no);
      if (!event) continue;
      event.cpuMs += usedMs / events.length;
      if (event.cpuMs >= this.budgetMs) this.abort(no, event, "cpu");
    }
    const { wakeMs } = summary;
    // While no event is pending, the isolate does not run, and neither do its timers.
    if (this.pending.size === 0) {
      this.calls.clear();
      this.watchdog.remove(this);
      this.lateAt = wakeMs < 0 ? Number.POSITIVE_INFINITY : performance.now() + wakeMs;
    } else if (wakeMs === 0) this.wakeDue = true;
    else if (wakeMs > 0) {
      this.wake = setTimeout(() => {
        this.wakeDue = true;
        this.turn();
      }, wakeMs);
    }
  }

  /** Makes one entry without events. */
  private async enterAlone(budgetMs: number, work: (timeout: Timeout) => Promise<string>): Promise<string | undefined> {
    await this.slots.take();
    if (!this.over) return this.enter([], budgetMs, work);
    this.slots.give();
    return undefined;
  }

  /**
   * Makes one entry, for which a slot has been taken. Reports it first, so that the parent knows of it if this process dies.
   * Resolves to `undefined` if the isolate ended meanwhile.
   */
  private async enter(
    events: readonly number[],
    budgetMs: number,
    work: (timeout: Timeout) => Promise<string>,
  ): Promise<string | undefined> {
    this.reports.entering(events);
    const startCpuMs = this.cpuMs();
    const timeout = this.timeoutOf(events, budgetMs);
    const startedAt = performance.now();
    const leadMs = timeout ? timeoutLeadMs : 0;
    const entry: RunningEntry = {
      events,
      startedAt,
      startCpuMs,
      seen: undefined,
      budgetMs,
      leadMs,
      lent: false,
      stack: "",
    };
    this.entry = entry;
    this.watchdog.add(this);
    try {
      return await work(timeout);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      if (isTimeout(error, timeout, startedAt))
        await this.timedOut(events, this.cpuMs() - startCpuMs >= realShare * budgetMs, ownStack(failure));
      else this.end(this.doors.isolate.isDisposed ? "memory" : "killed");
      // Calls queued behind it may run work that the handler's code left pending, so the thread has not stopped before they
      // settle.
      await this.behind;
      return undefined;
    } finally {
      this.entry = undefined;
      this.slots.give(entry.lent);
      if (this.over) this.reports.left();
    }
  }

  /** Handles an entry that V8's timeout ended. If the thread only waited for a core, no event is charged. */
  private async timedOut(events: readonly number[], wasReal: boolean, stack: string): Promise<void> {
    const now = performance.now();
    const late = events.some((no) => now > (this.pending.get(no)?.deadline ?? Number.POSITIVE_INFINITY));
    if (!wasReal && !late) this.end("cpu", stack, []);
    else {
      if (this.entry) this.entry.stack = stack;
      if (events.length > 0) await this.salvage(events);
      this.end(wasReal ? "cpu" : "deadline", stack);
    }
  }

  /**
   * Reports what an entry had written before V8 ended it, because its isolate can still be entered. The watchdog stays active.
   */
  private async salvage(events: readonly number[]): Promise<void> {
    await this.behind;
    try {
      const outbox = (await this.queued(this.doors.drain.apply(undefined, [false, true]))) as string;
      if (this.over || !summarise(outbox) || !isWhole(outbox)) return;
      this.reports.salvaged(outbox);
      this.reports.entering(events);
    } catch {
      // The isolate was ended first.
    }
  }

  /** Returns V8's timeout for an entry, or `undefined` if the previous one is too recent or the entry has several events. */
  private timeoutOf(events: readonly number[], budgetMs: number): Timeout {
    const now = performance.now();
    if (now - this.timedAt < timedEntryMs || events.length > 1) return undefined;
    // A load does not count: the first event after it is the likeliest to break a limit.
    if (events.length === 1) this.timedAt = now;
    const deadline = this.pending.get(events[0] ?? -1)?.deadline ?? Number.POSITIVE_INFINITY;
    return { timeout: Math.max(1, Math.ceil(Math.min(budgetMs, deadline + deadlineGraceMs - now))) };
  }

  private close(): void {
    clearTimeout(this.wake);
    this.watchdog.remove(this);
    this.pending.clear();
    this.inbox.length = 0;
    disposeOf(this.doors.isolate);
    if (!this.entry) return;
    const { entry } = this;
    setTimeout(() => {
      if (this.entry === entry) this.reports.unstoppable();
    }, unstoppableMs);
  }

  private cpuMs(): number {
    return cpuMsOf(this.doors.isolate);
  }
}

/** V8's own timeout for an entry, in milliseconds; `undefined` if it has no timeout. */
type Timeout = { readonly timeout: number } | undefined;

/**
 * Whether V8's timeout ended what began at `startedAt`. The elapsed time is checked too, because the handler can throw an error
 * with the same message.
 */
const isTimeout = (error: unknown, timeout: Timeout, startedAt: number): boolean =>
  timeout !== undefined &&
  performance.now() - startedAt >= timeout.timeout - 1 &&
  error instanceof Error &&
  /timed out/.test(error.message);
