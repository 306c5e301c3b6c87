import type { Clock, Timer } from "../../base/clock.ts";
import { resourceVersion } from "../../base/resource-version.ts";
import type { Cursor, SpilledEvent } from "../../journal/batch.ts";
import type { Schedule } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import { type EventFlags, eventId } from "../delivery/delivery.ts";
import type { EngineLog } from "../delivery/observer.ts";
import type { PastRun } from "../history/history.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { Timetable } from "./timetable.ts";

interface ScheduledTriggerParts {
  readonly schedule: Schedule;
  readonly view: KnownObjects;
  /** As the store has it; undefined of a schedule that is new. */
  readonly cursor: Cursor | undefined;
  /** The last writes before the start may be missing. */
  readonly lostWrites: boolean;
  readonly nextSequence: () => number;
  readonly commits: Pick<Commits, "cursorMoved">;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** On which goes what telling takes of the loop. */
  readonly time: Pick<LoopAccount, "measure">;
  readonly queue: { acceptSpilled(event: SpilledEvent): void };
}

/** Times that passed without a run, of which at most so many each get one, where the manifest asks for all. */
const mostMissed = 100;

/** A run that begins later than this after its time came too late, in milliseconds: it was missed. */
const lateMs = 60_000;

/** How often wall time is looked at, at least, in milliseconds: it may be set. */
const lookMs = 30_000;

/** How often it is looked whether the run before has ended, in milliseconds. */
const busyMs = 1_000;

/**
 * Wall time that is set back by no more than this, in milliseconds, brings no time again: the schedule waits until its
 * position is reached. By more, the position was a mistake, and the schedule begins anew.
 */
const believedBackMs = 3_600_000;

const flagsOf = (time: number, missed: boolean): EventFlags => ({
  scheduledFor: new Date(time).toISOString(),
  ...(missed && { missed: true }),
});

/** There is nothing to read. */
const noBody = Buffer.from("null");

/**
 * One trigger that goes by the clock. Its position is the last time that was told, or let go by. A time that is told is on
 * disk with the position, in one commit: it is neither lost nor told twice. From there it has a lane of its own.
 */
export class ScheduledTrigger {
  private readonly parts: ScheduledTriggerParts;
  private readonly timetable: Timetable;
  private readonly selection: string;
  private readonly uid: string;
  /** When it was made, wall time. */
  private readonly madeAt: number;
  /** From when on it looks, as wall time goes now: what was to run before was missed. */
  private since: number;
  /** Everything up to here was told, or let go by. */
  private position: number;
  private epoch: number;
  private timer: Timer | undefined;
  /** Epoch milliseconds of the last run that was asked for. */
  private askedFor = 0;

  constructor(parts: ScheduledTriggerParts) {
    const { schedule, view, cursor, clock, commits } = parts;
    this.parts = parts;
    this.uid = `${view.functionName}.${view.identity}`;
    this.timetable = new Timetable(schedule, this.uid);
    this.selection = JSON.stringify([schedule.times, schedule.jitterMs]);
    this.madeAt = clock.now();
    this.since = this.madeAt;
    const goesOn = cursor?.selection === this.selection && cursor.lowWaterMark !== undefined;
    this.position = goesOn ? Number(cursor.lowWaterMark) : this.since;
    // Another schedule may name a time that this one told.
    this.epoch = goesOn || !cursor ? (cursor?.epoch ?? 0) : cursor.epoch + 1;
    if (!goesOn) commits.cursorMoved(this);
  }

  /** Tells what is due, now and from then on. */
  begin(): void {
    this.look();
  }

  get trigger(): string {
    return this.parts.schedule.name;
  }

  /** When the next run begins, epoch milliseconds, as wall time goes now; undefined where there is none. */
  get next(): number | undefined {
    const time = this.timetable.next(this.position);
    return time === undefined ? undefined : this.timetable.beginOf(time);
  }

  /** Whether a run waits, or is under way. */
  get isBusy(): boolean {
    return !this.parts.view.isIdle(this.key);
  }

  /** Tells the time of a run that ended once more, flagged. Gives whether it did: not while another run waits. */
  again({ id, resourceVersion: time }: Pick<PastRun, "id" | "resourceVersion">): boolean {
    if (this.isBusy) return false;
    this.emit(Number(time), flagsOf(Number(time), false), { id, redelivered: true });
    return true;
  }

  /** Runs it at once, for this moment; its position and its next time stay. Returns whether it did: not while a run waits. */
  now(): boolean {
    if (this.isBusy) return false;
    // Two that are asked for within a millisecond have different IDs.
    this.askedFor = Math.max(this.parts.clock.now(), this.askedFor + 1);
    this.emit(this.askedFor, flagsOf(this.askedFor, false), { redelivered: false });
    return true;
  }

  cursor(): Cursor {
    const { selection, epoch } = this;
    const lowWaterMark = resourceVersion(String(this.position));
    return { view: this.parts.view.id, namespace: "", selection, epoch, lowWaterMark, initial: false };
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  /** Tells what is due, and looks again when the next is, or in half a minute. */
  private look(): void {
    this.parts.time.measure("schedules", () => this.tellDue());
  }

  private tellDue(): void {
    const { clock } = this.parts;
    const now = clock.now();
    // It was set back: what comes again of it is no time at which nobody was up.
    this.since = Math.min(this.since, now);
    if (now < this.position - believedBackMs) this.beginAnew(now);
    const { isBusy } = this;
    if (!isBusy && (this.next ?? Number.POSITIVE_INFINITY) <= now) this.tell(now);
    const { next } = this;
    const waitMs = next === undefined ? lookMs : Math.min(next - now, lookMs);
    this.timer = clock.after(Math.max(waitMs, isBusy ? busyMs : 1), () => this.look());
  }

  private tell(now: number): void {
    const { schedule, commits } = this.parts;
    const due = this.timetable.due(this.position, now, mostMissed + 1);
    const newest = due.at(-1);
    if (newest === undefined) return;
    const after = this.position;
    this.position = newest;
    commits.cursorMoved(this);
    if (schedule.missed === "All") {
      for (const time of due.slice(-mostMissed)) this.emit(time, flagsOf(time, this.isMissed(time, now)));
      return;
    }
    const isLate = this.isMissed(newest, now);
    if (schedule.missed === "Once") this.emit(newest, flagsOf(newest, isLate || this.skips(after, newest)));
    else if (!isLate) this.emit(newest, flagsOf(newest, false));
  }

  /** Whether a time lies between the two that was not told. */
  private skips(after: number, newest: number): boolean {
    const first = this.timetable.next(after);
    return first !== undefined && first < newest;
  }

  private isMissed(time: number, now: number): boolean {
    const begin = this.timetable.beginOf(time);
    return begin < this.since || now - begin > lateMs;
  }

  /** `extra`: a run that the position does not stand for, with its ID if it has one. */
  private emit(time: number, flags: EventFlags, extra?: { readonly id?: string; readonly redelivered: boolean }): void {
    const { view, clock, nextSequence, queue, lostWrites } = this.parts;
    const version = resourceVersion(String(time));
    const { uid, epoch } = this;
    const identity = {
      trigger: view.identity,
      uid,
      resourceVersion: version,
      lastKnown: false,
      selective: false,
      epoch,
    };
    const type = "Scheduled";
    if (!extra) view.expect({ type, key: this.key, uid, resourceVersion: version, deletedBy: version, epoch });
    queue.acceptSpilled({
      kind: "tick",
      view: view.id,
      function: view.functionName,
      trigger: this.trigger,
      namespace: "",
      name: view.identity,
      uid,
      resourceVersion: version,
      type,
      id: extra?.id ?? eventId({ ...identity, type }),
      flags: { ...flags },
      deletedBy: version,
      body: noBody,
      oldBody: undefined,
      form: view.form.ofEvents,
      receivedAt: clock.now(),
      sequence: nextSequence(),
      replayed: extra !== undefined,
      // The machine went down: the record that it was told may be lost.
      redelivered: extra?.redelivered ?? (lostWrites && time <= this.madeAt),
    });
  }

  private beginAnew(now: number): void {
    const { log, commits, view } = this.parts;
    const [from, to] = [this.position, now].map((time) => new Date(time).toISOString());
    log.warn({ function: view.functionName, trigger: this.trigger, from, to }, "clock set back, schedule begins anew");
    this.position = now;
    this.epoch++;
    commits.cursorMoved(this);
  }

  private get key(): string {
    return `/${this.parts.view.identity}`;
  }
}
