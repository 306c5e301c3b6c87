import { randomBytes } from "node:crypto";
import type { EndReason } from "../messages.ts";
import { abortItem, BatchSize, composeBatch, eventItem, type Item, replyItem } from "./batch.ts";
import type { GuestDoors } from "./isolate.ts";
import { type OutboxSummary, summarise } from "./outbox.ts";
import { Position } from "./position.ts";
import type { Slots } from "./slots.ts";
import type { Watchdog, Watched } from "./watchdog.ts";

/** CPU time of one entry after which its position is first looked up; doubled each time. Milliseconds. */
const firstLookMs = 40;
/** How long a position may take to come before the isolate is ended without. Milliseconds. */
const lookMs = 15;
/** An entry that outlives its isolate by this much cannot be stopped by any means. Milliseconds. */
const unstoppableMs = 1000;
/** Time that an event's own entry may overrun the event's deadline, before it is cut off. Milliseconds. */
const deadlineGraceMs = 20;
/** Milliseconds between two keys for the guest's random numbers. */
const reseedMs = 1000;

/** An event as it comes from the parent. */
export interface QueuedEvent {
  readonly no: number;
  readonly timeoutMs: number;
  readonly text: string;
  readonly oldText: string | undefined;
}

/** What a realm tells its owner. */
export interface RealmReports {
  entering(events: readonly number[]): void;
  drained(outbox: string, summary: OutboxSummary): void;
  sample(stack: string): void;
  /** The isolate is gone. */
  ended(reason: EndReason, charged: readonly number[], interrupted: readonly number[], stack: string): void;
  /** Disposed of, and still running. */
  unstoppable(): void;
}

interface PendingEvent {
  readonly deadline: number;
  cpuMs: number;
  aborted: boolean;
}

interface Entry {
  readonly events: readonly number[];
  readonly startCpuMs: number;
  readonly budgetMs: number;
  lookAtMs: number;
  /** Set once a limit is broken: the end comes when the position is known, or at this time. */
  ending: { readonly reason: EndReason; readonly at: number } | undefined;
}

/** One isolate with a function's code, and its limits. At most one entry is in it at any time. */
export class Realm implements Watched {
  private readonly doors: GuestDoors;
  private readonly watchdog: Watchdog;
  private readonly slots: Slots;
  private readonly reports: RealmReports;
  private readonly budgetMs: number;
  private readonly position: Position;
  private readonly bornAt = performance.now();
  private readonly inbox: Item[] = [];
  private readonly pending = new Map<number, PendingEvent>();
  private readonly calls = new Map<number, number>();
  private readonly batch = new BatchSize();
  private entry: Entry | undefined;
  private turning = false;
  private wake: NodeJS.Timeout | undefined;
  private wakeDue = false;
  private seededAt = Number.NEGATIVE_INFINITY;
  private stack = "";
  private over = false;

  constructor(doors: GuestDoors, budgetMs: number, watchdog: Watchdog, slots: Slots, reports: RealmReports) {
    this.doors = doors;
    this.budgetMs = budgetMs;
    this.watchdog = watchdog;
    this.slots = slots;
    this.reports = reports;
    this.position = new Position(doors.isolate, (stack) => this.located(stack));
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
    return this.enter([], budgetMs, async () => {
      const { isolate, context, loaded } = this.doors;
      const compiled = await isolate.compileScript(script, { filename });
      await compiled.run(context, { release: true });
      const word = await loaded.apply(undefined, []);
      loaded.release();
      return word as string;
    });
  }

  /** Takes an event; its time starts now. */
  add(event: QueuedEvent): void {
    this.pending.set(event.no, { deadline: performance.now() + event.timeoutMs, cpuMs: 0, aborted: false });
    this.watchdog.add(this);
    this.push(eventItem(event.no, event.text, event.oldText));
  }

  /** Answers a call, if its event still waits for it. */
  reply(call: number, ok: 0 | 1, text: string): void {
    const no = this.calls.get(call);
    if (no === undefined) return;
    this.calls.delete(call);
    this.push(replyItem(no, call, ok, text));
  }

  /** Ends the isolate. Its code stops where it is; `reason` and the culprits are reported, unless there was no event. */
  end(reason: EndReason): void {
    if (this.over) return;
    this.over = true;
    const inside = this.entry?.events ?? [];
    // With several events inside, nobody can tell whose code it was: all run again, one by one.
    const charged = inside.length === 1 ? inside : [];
    const interrupted = [...this.pending.keys()].filter((no) => !charged.includes(no));
    this.close();
    this.reports.ended(reason, charged, interrupted, this.stack);
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

  private checkEntry(entry: Entry, now: number): void {
    if (entry.ending) {
      if (now >= entry.ending.at) this.end(entry.ending.reason);
      return;
    }
    const usedMs = this.cpuMs() - entry.startCpuMs;
    const late = entry.events.some((no) => now > (this.pending.get(no)?.deadline ?? now) + deadlineGraceMs);
    if (usedMs >= entry.budgetMs || late) {
      entry.ending = { reason: usedMs >= entry.budgetMs ? "cpu" : "deadline", at: now + lookMs };
      this.position.ask();
    } else if (usedMs >= entry.lookAtMs) {
      entry.lookAtMs *= 2;
      this.position.ask();
    }
  }

  private located(stack: string): void {
    if (this.over || !this.entry) return;
    this.stack = stack;
    this.reports.sample(stack);
    if (this.entry.ending) this.end(this.entry.ending.reason);
  }

  private abortLate(now: number): void {
    for (const [no, event] of this.pending) if (now >= event.deadline) this.abort(no, event, "deadline");
  }

  private abort(no: number, event: PendingEvent, why: "deadline" | "cpu"): void {
    if (event.aborted) return;
    event.aborted = true;
    this.push(abortItem(no, why));
  }

  private push(item: Item): void {
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
      while (!this.over && (this.inbox.length > 0 || this.wakeDue)) await this.once();
    } finally {
      this.turning = false;
    }
  }

  private async once(): Promise<void> {
    const items = this.inbox.splice(0, this.batch.items);
    const timers = this.wakeDue;
    this.wakeDue = false;
    clearTimeout(this.wake);
    // A timer may be anyone's.
    const events = timers ? [...this.pending.keys()] : [...new Set(items.map((item) => item.no))];
    const only = events.length === 1 ? this.pending.get(events[0] as number) : undefined;
    const startCpuMs = this.cpuMs();
    const outbox = await this.enter(events, this.budgetMs - (only?.cpuMs ?? 0), () => {
      const now = performance.now();
      const seed = now - this.seededAt < reseedMs ? "" : randomBytes(32).toString("hex");
      if (seed !== "") this.seededAt = now;
      const { pump, drain } = this.doors;
      const pumped = pump.apply(undefined, [composeBatch(Math.floor(now - this.bornAt), seed, items)]);
      const drained = drain.apply(undefined, []);
      return Promise.all([pumped, drained]).then(([, text]) => text as string);
    });
    if (outbox === undefined || this.over) return;
    const usedMs = this.cpuMs() - startCpuMs;
    this.batch.took(items.length, usedMs);
    const summary = summarise(outbox);
    if (summary) this.settle(outbox, summary, events, usedMs);
    else this.end("output");
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
    // Between events an isolate stands still, its timers too.
    if (this.pending.size === 0) {
      this.calls.clear();
      this.watchdog.remove(this);
    } else if (summary.wakeMs >= 0) {
      this.wake = setTimeout(() => {
        this.wakeDue = true;
        this.turn();
      }, summary.wakeMs);
    }
  }

  /** One entry: says so first, so that the word survives this process. Undefined if the isolate ended meanwhile. */
  private async enter(
    events: readonly number[],
    budgetMs: number,
    work: () => Promise<string>,
  ): Promise<string | undefined> {
    await this.slots.take();
    if (this.over) {
      this.slots.give();
      return undefined;
    }
    this.reports.entering(events);
    const startCpuMs = this.cpuMs();
    this.entry = { events, startCpuMs, budgetMs, lookAtMs: firstLookMs, ending: undefined };
    this.watchdog.add(this);
    try {
      return await work();
    } catch (error) {
      const message = error instanceof Error ? error.message : "";
      this.end(/memory limit|Array buffer allocation/.test(message) ? "memory" : "killed");
      return undefined;
    } finally {
      this.entry = undefined;
      this.stack = "";
      if (!this.over) this.position.stop();
      this.slots.give();
    }
  }

  private close(): void {
    clearTimeout(this.wake);
    this.watchdog.remove(this);
    this.pending.clear();
    this.inbox.length = 0;
    this.position.drop();
    if (!this.doors.isolate.isDisposed) this.doors.isolate.dispose();
    if (!this.entry) return;
    const { entry } = this;
    setTimeout(() => {
      if (this.entry === entry) this.reports.unstoppable();
    }, unstoppableMs);
  }

  private cpuMs(): number {
    return this.doors.isolate.isDisposed ? 0 : Number(this.doors.isolate.cpuTime) / 1e6;
  }
}
