import { randomBytes } from "node:crypto";
import type { EndReason } from "../messages.ts";
import { abortItem, type BatchItem, composeBatch, type QueuedEvent, replyItem } from "./batch.ts";
import { type EventSource, RealmIntake } from "./intake.ts";
import { cpuMsOf, disposeOf, type GuestDoors, type GuestScript, processMs } from "./isolate.ts";
import { isWhole, type OutboxSummary, summarise, withFailure, withStray } from "./outbox.ts";
import type { RealmReports } from "./realm-reports.ts";
import { failureWord, ownStack, type Rejection, rejectionOf } from "./rejection.ts";
import type { IsolateSlots } from "./slots.ts";
import { isTimeout, type Timeout } from "./timeout.ts";
import type { Watchdog, Watched } from "./watchdog.ts";

/**
 * Milliseconds between two entries that V8 itself times, in one isolate. Its timeouts alone tell where the code was.
 * But isolated-vm keeps a timer for each until it falls due, and crashes when 200,000 do so together. It lets one stuck
 * isolate hold up the timeouts of all others. So they are few, and the watchdog is what the limits rest on.
 */
const timedEntryMs = 1000;
/** How much later than V8's timeout the watchdog acts: on a busy machine V8's timer thread comes late. Milliseconds. */
const timeoutLeadMs = 100;
/** Share of the budget that must really have been used when V8's timeout, which counts wall time, ends an entry. */
const realShare = 0.8;
/** An entry that goes on for so long lends its slot to whoever waits for one: most take less than a batch's 25. Milliseconds. */
const lendMs = 30;
/** An entry that outlives its isolate by this much cannot be stopped by any means. Milliseconds. */
const unstoppableMs = 1000;
/** Time that an event's own entry may overrun the event's deadline, before it is cut off. Milliseconds. */
const deadlineGraceMs = 20;
/** Milliseconds between two keys for the guest's random numbers. */
const reseedMs = 1000;
/** Between two looks at the guest's heap: milliseconds, or events. A look takes its thread 2 us. */
const weighMs = 1000;
const weighEvents = 64;
/** Share of the memory limit from which an isolate is replaced before an event is charged with its predecessors' leavings. */
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
  /** When it was first looked at, and the process' CPU time then: most entries are over before. */
  seen: { readonly at: number; readonly processMs: number } | undefined;
  readonly budgetMs: number;
  /** Milliseconds that V8 has to end it by itself once a limit is reached. */
  readonly leadMs: number;
  /** Whether it has lent its slot. */
  lent: boolean;
  /** Where V8 ended it, once it has. */
  stack: string;
}

/** What a realm is made of. */
interface RealmParts {
  readonly id: number;
  readonly doors: GuestDoors;
  /** CPU time of an entry, in milliseconds. */
  readonly budgetMs: number;
  readonly watchdog: Watchdog;
  readonly slots: IsolateSlots;
  /** Whether V8 may time the first entry. */
  readonly timed: boolean;
  /** Whether its script is to run again in fresh contexts. */
  readonly renews: boolean;
  /** Its events, of what it may take. */
  readonly source: (realm: Realm) => EventSource;
  readonly reports: RealmReports;
}

/** One isolate with a function's code, and its limits. At most one entry is in it at any time. */
export class Realm implements Watched {
  /** By which answers to its calls find it. */
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
  /** Calls that the guest's code stands still for. */
  private readonly asked = new Map<number, (answer: string) => void>();
  private entry: RunningEntry | undefined;
  private turning = false;
  private wake: NodeJS.Timeout | undefined;
  private wakeDue = false;
  /** When the first timer was due that is left while it stands still. */
  private lateAt = Number.POSITIVE_INFINITY;
  private seededAt = Number.NEGATIVE_INFINITY;
  private timedAt = Number.NEGATIVE_INFINITY;
  private compiled: GuestScript | undefined;
  private weighedAt = performance.now();
  private weighedTaken = 0;
  private isHeavy = false;
  private over = false;
  /** What was queued last behind the handler's code, settled. */
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

  /** Events that are not over. */
  get size(): number {
    return this.pending.size;
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Runs the function's script, within `budgetMs` of CPU. Gives the guest's word: empty, or why there is no handler. */
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

  /** Runs the function's script again in a fresh context, which `renewed` makes; as `load` otherwise. Nothing may be pending. */
  async renew(renewed: (old: GuestDoors) => Promise<GuestDoors>, budgetMs: number): Promise<string | undefined> {
    return this.enterAlone(budgetMs, async () => {
      this.doors = await renewed(this.doors);
      this.lateAt = Number.POSITIVE_INFINITY;
      this.seededAt = Number.NEGATIVE_INFINITY;
      return this.word(this.compiled?.run(this.doors.context), undefined);
    });
  }

  /** Whether it should make room for a new one: by its events, or by what they left in its heap. */
  isWorn(maxEvents: number): boolean {
    return this.isHeavy || this.intake.taken >= maxEvents;
  }

  /** The guest's word on a run of the function's script. It is queued behind that: each way into the isolate wakes a thread. */
  private async word(ran: Promise<unknown> | undefined, timeout: Timeout): Promise<string> {
    const { loaded } = this.doors;
    const said = this.queued(loaded.apply(undefined, []) as Promise<string>);
    const [rejected, word] = await Promise.all([this.unheard(ran, timeout), said]);
    loaded.release();
    // A bundle ends with its handler, or a word of its own: one without either did not get so far.
    if (rejected && word.startsWith('["missing"')) return failureWord("thrown", rejected);
    return word !== "" || !rejected ? word : failureWord("unheard", rejected);
  }

  private queued<T>(entry: Promise<T>): Promise<T> {
    this.behind = Promise.allSettled([entry]);
    return entry;
  }

  /** There are events for it: it takes them as soon as it can. */
  invite(): void {
    this.turn();
  }

  /** Asks for the guest's code, which stands still meanwhile; it ends with its isolate where no answer comes. */
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

  /** Ends the isolate. Its code stops where it is; `reason` and the culprits are reported, unless there was no event. */
  end(reason: EndReason, stack = "", culprits?: readonly number[]): void {
    if (this.over) return;
    this.over = true;
    const inside = this.entry?.events ?? [];
    // With several events inside, nobody can tell whose code it was: all run again, one by one.
    const charged = culprits ?? (inside.length === 1 ? inside : []);
    const interrupted = [...this.pending.keys()].filter((no) => !charged.includes(no));
    this.close();
    this.reports.ended(reason, charged, interrupted, stack, this.entry !== undefined);
  }

  /** Lets go of the isolate without a word; nothing may be pending. */
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
   * CPU time of a running entry. Until it ends, isolated-vm counts wall time, and a thread that waits for a core would
   * be charged for its waiting. The process' real CPU time, shared among those that run, bounds it.
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
      // What arrives in the same turn of the loop travels together.
      await undefined;
      while (this.hasWork) await this.once();
    } finally {
      this.turning = false;
    }
  }

  private get hasWork(): boolean {
    return !this.over && (this.inbox.length > 0 || this.wakeDue || this.intake.hasWork);
  }

  /** The time of events that were taken starts. */
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
    // What earlier events left goes first, and is the next event's harm: nobody else is there who could be charged.
    const { intake } = this;
    if (this.pending.size === 0 && intake.room > 0 && performance.now() >= this.lateAt) {
      this.wakeDue = true;
      this.expect(intake.carry());
    }
    const most = this.pending.size + intake.room;
    // Timers have an entry of their own: what they leave unheard is not that of an event beside them.
    const timers = this.wakeDue;
    const answers = timers ? [] : this.inbox.splice(0, intake.items);
    const taken = timers ? [] : this.take(intake.items - answers.length);
    const items: readonly BatchItem[] = answers.length === 0 ? taken : [...answers, ...taken];
    this.wakeDue = false;
    clearTimeout(this.wake);
    // A timer may be anyone's.
    const events = timers ? [...this.pending.keys()] : [...new Set(items.map((item) => item.no))];
    const only = events.length === 1 ? this.pending.get(events[0] as number) : undefined;
    const startCpuMs = this.cpuMs();
    const outbox = await this.enter(events, this.budgetMs - (only?.cpuMs ?? 0), (timeout) => {
      const now = performance.now();
      const seed = now - this.seededAt < reseedMs ? "" : randomBytes(32).toString("hex");
      if (seed !== "") this.seededAt = now;
      const { pump, drain } = this.doors;
      const pumped = pump.apply(undefined, composeBatch(Math.floor(now - this.bornAt), seed, most, items), timeout);
      // A rejection that comes to light with it, from a finalizer, takes its word away: it is asked once more.
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
   * Waits for an entry's end. Gives a rejection that nobody in it heard, as which isolated-vm lets an entry fail that was
   * otherwise good; throws what ended the isolate. A text proves nothing: the handler could have written it.
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

  /** Charges a rejection to the event that left it; gives the outbox as it is then. */
  private async blamed(rejected: Rejection, outbox: string): Promise<string> {
    const { name, message, stack } = rejected;
    const word = (await this.doors.blame.apply(undefined, [name, message, stack])) as string;
    if (word === "stray") return withStray(outbox, rejected);
    if (word === "?") this.end("killed", "", []);
    return word === "" || word === "?" ? outbox : withFailure(outbox, Number(word), rejected);
  }

  /** Asks for the heap's size behind what runs; the next drain's owner gets to know. */
  private weigh(now: number): void {
    this.weighedAt = now;
    this.weighedTaken = this.intake.taken;
    const { isolate } = this.doors;
    isolate.getHeapStatistics().then(
      ({ used_heap_size: used, heap_size_limit: limit }) => (this.isHeavy = used > wornShare * limit),
      () => undefined, // disposed of meanwhile
    );
  }

  private settle(outbox: string, summary: OutboxSummary, events: readonly number[], usedMs: number): void {
    for (const { no } of summary.done) this.pending.delete(no);
    for (const { call, no } of summary.calls) this.calls.set(call, no);
    this.reports.drained(outbox, summary);
    for (const no of events) {
      const event = this.pending.get(no);
      if (!event) continue;
      event.cpuMs += usedMs / events.length;
      if (event.cpuMs >= this.budgetMs) this.abort(no, event, "cpu");
    }
    const { wakeMs } = summary;
    // Between events an isolate stands still, its timers too.
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

  /** An entry of its own, without events. */
  private async enterAlone(budgetMs: number, work: (timeout: Timeout) => Promise<string>): Promise<string | undefined> {
    await this.slots.take();
    if (!this.over) return this.enter([], budgetMs, work);
    this.slots.give();
    return undefined;
  }

  /**
   * One entry, with a slot that was taken: says so first, so that the word survives this process. Undefined if the isolate
   * ended meanwhile.
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
      // What was queued behind may run what the handler's code had left for later: its thread has not stopped before.
      await this.behind;
      return undefined;
    } finally {
      this.entry = undefined;
      this.slots.give(entry.lent);
      if (this.over) this.reports.left();
    }
  }

  /** V8's timeout ended an entry. Where the thread merely waited for a core, nobody is charged. */
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

  /** Tells what an entry wrote before V8 ended it: its isolate can still be asked. The watchdog goes on meanwhile. */
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

  /** V8's own timeout for an entry, where the last one is long enough ago. */
  private timeoutOf(events: readonly number[], budgetMs: number): Timeout {
    const now = performance.now();
    if (now - this.timedAt < timedEntryMs || events.length > 1) return undefined;
    // The load does not count: the first event after it is the likeliest to break a limit.
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
