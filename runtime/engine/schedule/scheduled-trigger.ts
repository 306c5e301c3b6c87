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
  readonly objects: KnownObjects;
  /** The checkpoint in the store; `undefined` for a new schedule. */
  readonly cursor: Cursor | undefined;
  /** Whether the last writes before the start may be missing. */
  readonly lostWrites: boolean;
  readonly nextSequence: () => number;
  readonly commits: Pick<Commits, "cursorMoved">;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** Is charged for the event loop's time that emitting runs takes. */
  readonly time: Pick<LoopAccount, "measure">;
  readonly queue: { acceptSpilled(event: SpilledEvent): void };
}

/** The number of missed times that get a run each, if the manifest asks for all of them. */
const mostMissed = 100;

/** The delay after which a run counts as missed, in milliseconds. */
const lateMs = 60_000;

/** The longest time between two reads of the wall clock, in milliseconds: the clock may be set. */
const lookMs = 30_000;

/** The time between two checks whether the previous run has ended, in milliseconds. */
const busyMs = 1_000;

/**
 * The largest step back of the wall clock, in milliseconds, after which the schedule waits until its checkpoint is reached again,
 * so that no time runs twice. After a larger one the checkpoint is taken for a mistake, and the schedule starts over.
 */
const believedBackMs = 3_600_000;

const flagsOf = (time: number, missed: boolean): EventFlags => ({
  scheduledFor: new Date(time).toISOString(),
  ...(missed && { missed: true }),
});

/** A scheduled event has no object. */
const noBody = Buffer.from("null");

/**
 * A trigger that runs by the clock. Its checkpoint is the last time that was emitted or skipped. A time is on disk with the
 * checkpoint, in one commit, so it is neither lost nor emitted twice. From there on it is an event in a lane of the trigger's.
 */
export class ScheduledTrigger {
  private readonly parts: ScheduledTriggerParts;
  private readonly timetable: Timetable;
  private readonly selection: string;
  private readonly uid: string;
  /** The wall time of construction. */
  private readonly madeAt: number;
  /** The lowest wall time seen since construction: runs that were due before it were missed. */
  private since: number;
  /** All times up to here were emitted or skipped. */
  private position: number;
  private epoch: number;
  private timer: Timer | undefined;
  /** The last run that a user requested, in epoch milliseconds. */
  private askedFor = 0;

  constructor(parts: ScheduledTriggerParts) {
    const { schedule, objects, cursor, clock, commits } = parts;
    this.parts = parts;
    this.uid = `${objects.functionName}.${objects.identity}`;
    this.timetable = new Timetable(schedule, this.uid);
    this.selection = JSON.stringify([schedule.times, schedule.jitterMs]);
    this.madeAt = clock.now();
    this.since = this.madeAt;
    const goesOn = cursor?.selection === this.selection && cursor.lowWaterMark !== undefined;
    this.position = goesOn ? Number(cursor.lowWaterMark) : this.since;
    // Another schedule may have a time that this one emitted.
    this.epoch = goesOn || !cursor ? (cursor?.epoch ?? 0) : cursor.epoch + 1;
    if (!goesOn) commits.cursorMoved(this);
  }

  /** Emits the due runs, now and from then on. */
  begin(): void {
    this.look();
  }

  get trigger(): string {
    return this.parts.schedule.name;
  }

  /** The begin of the next run, in epoch milliseconds by the current wall clock; `undefined` if there is no next run. */
  get next(): number | undefined {
    const time = this.timetable.next(this.position);
    return time === undefined ? undefined : this.timetable.beginOf(time);
  }

  /** Whether a run waits, or is in progress. */
  get isBusy(): boolean {
    return !this.parts.objects.isIdle(this.key);
  }

  /** Emits the time of an ended run again, flagged as a redelivery. Returns false, and does nothing, while another run waits. */
  again({ id, resourceVersion: time }: Pick<PastRun, "id" | "resourceVersion">): boolean {
    if (this.isBusy) return false;
    this.emit(Number(time), flagsOf(Number(time), false), { id, redelivered: true });
    return true;
  }

  /**
   * Runs it at once, for the current time; its checkpoint and its next time do not change. Returns false, and does nothing, while a
   * run waits.
   */
  now(): boolean {
    if (this.isBusy) return false;
    // Two requests within a millisecond get different IDs.
    this.askedFor = Math.max(this.parts.clock.now(), this.askedFor + 1);
    this.emit(this.askedFor, flagsOf(this.askedFor, false), { redelivered: false });
    return true;
  }

  cursor(): Cursor {
    const { selection, epoch } = this;
    const lowWaterMark = resourceVersion(String(this.position));
    return { view: this.parts.objects.id, namespace: "", selection, epoch, lowWaterMark, initial: false };
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  /** Emits what is due, and checks again when the next run is, or in half a minute. */
  private look(): void {
    this.parts.time.measure("schedules", () => this.runDue());
  }

  private runDue(): void {
    const { clock } = this.parts;
    const now = clock.now();
    // If the clock was set back, the times that it repeats were not missed.
    this.since = Math.min(this.since, now);
    if (now < this.position - believedBackMs) this.beginAnew(now);
    const { isBusy } = this;
    if (!isBusy && (this.next ?? Number.POSITIVE_INFINITY) <= now) this.deliverDue(now);
    const { next } = this;
    const waitMs = next === undefined ? lookMs : Math.min(next - now, lookMs);
    this.timer = clock.after(Math.max(waitMs, isBusy ? busyMs : 1), () => this.look());
  }

  private deliverDue(now: number): void {
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

  /** Whether a time between the two was not emitted. */
  private skips(after: number, newest: number): boolean {
    const first = this.timetable.next(after);
    return first !== undefined && first < newest;
  }

  private isMissed(time: number, now: number): boolean {
    const begin = this.timetable.beginOf(time);
    return begin < this.since || now - begin > lateMs;
  }

  /** Emits a run. `extra` marks one outside the checkpoint, and has its ID if it is a repetition. */
  private emit(time: number, flags: EventFlags, extra?: { readonly id?: string; readonly redelivered: boolean }): void {
    const { objects, clock, nextSequence, queue, lostWrites } = this.parts;
    const version = resourceVersion(String(time));
    const { uid, epoch } = this;
    const identity = {
      trigger: objects.identity,
      uid,
      resourceVersion: version,
      lastKnown: false,
      selective: false,
      epoch,
    };
    const type = "Scheduled";
    if (!extra) objects.expect({ type, key: this.key, uid, resourceVersion: version, deletedBy: version, epoch });
    queue.acceptSpilled({
      kind: "tick",
      view: objects.id,
      function: objects.functionName,
      trigger: this.trigger,
      namespace: "",
      name: objects.identity,
      uid,
      resourceVersion: version,
      type,
      id: extra?.id ?? eventId({ ...identity, type }),
      flags: { ...flags },
      deletedBy: version,
      body: noBody,
      oldBody: undefined,
      form: objects.form.ofEvents,
      receivedAt: clock.now(),
      sequence: nextSequence(),
      replayed: extra !== undefined,
      // After the machine went down, the record that the run was emitted may be lost.
      redelivered: extra?.redelivered ?? (lostWrites && time <= this.madeAt),
    });
  }

  private beginAnew(now: number): void {
    const { log, commits, objects } = this.parts;
    const [from, to] = [this.position, now].map((time) => new Date(time).toISOString());
    log.warn(
      { function: objects.functionName, trigger: this.trigger, from, to },
      "clock set back, schedule starts over",
    );
    this.position = now;
    this.epoch++;
    commits.cursorMoved(this);
  }

  private get key(): string {
    return `/${this.parts.objects.identity}`;
  }
}
