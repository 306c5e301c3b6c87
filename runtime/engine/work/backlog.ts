import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { EngineLog, EngineObserver } from "../delivery/observer.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { type LaneEvent, releaseMark } from "./event.ts";
import type { EventLane } from "./event-lane.ts";
import type { Spill } from "./spill.ts";

/**
 * The least interval between logs of a function's collapsed events, in milliseconds: a stuck object collapses again and again.
 */
const logEveryMs = 60_000;

/**
 * Reasons of synthetic events that may be collapsed: their gap becomes part of the new one. Other reasons report an edit or a
 * restored cluster.
 */
const ordinary: ReadonlySet<string | undefined> = new Set([undefined, "relist", "backlog"]);

/** Waiting events of one object that the newest one replaces. */
interface CollapsedEvents {
  /** Oldest first. */
  readonly gone: readonly LaneEvent[];
  readonly standIn: LaneEvent;
  /** The event before them in the lane, of the same trigger. */
  readonly before: LaneEvent | undefined;
}

/**
 * Whether a newer event may replace a waiting one. Both must be changes of one object for one trigger, and no handler has begun
 * with the older one. An Added or a Deleted is never replaced, so the lives of two objects of one name stay separate.
 */
export function givesWay(event: LaneEvent, next: LaneEvent): boolean {
  if (event.type !== "Modified" || next.type !== "Modified") return false;
  // A replayed dead letter has an older state than the waiting events, and was counted already.
  if (event.replayed || next.replayed) return false;
  if (event.view !== next.view || event.meta.uid !== next.meta.uid) return false;
  return hasNotBegun(event);
}

const hasNotBegun = ({ attempts, interruptions, notBefore }: LaneEvent): boolean =>
  attempts === 0 && interruptions === 0 && notBefore === undefined;

/** Whether an event by itself may be part of a run. */
const isPlain = (event: LaneEvent): boolean => event.body !== undefined && isOrdinary(event);

const isOrdinary = (event: LaneEvent): boolean =>
  hasNotBegun(event) &&
  event.type === "Modified" &&
  !event.replayed &&
  !event.isUnselected &&
  ordinary.has(event.flags.reason);

/** Whether two events of a run may become one: their resourceVersions are of one epoch, and they hold the same checkpoint. */
const joins = (event: LaneEvent, next: LaneEvent): boolean =>
  givesWay(event, next) &&
  event.epoch === next.epoch &&
  (!event.mark || !next.mark || event.mark.owner === next.mark.owner);

/** Returns the runs among a lane's events behind the first `kept`. Two triggers may share a lane: each has separate runs. */
function runsOf(events: Iterable<LaneEvent>, kept: number): readonly CollapsedEvents[] {
  const found: CollapsedEvents[] = [];
  const open = new Map<KnownObjects, LaneEvent[]>();
  const before = new Map<KnownObjects, LaneEvent>();
  const close = (view: KnownObjects) => {
    const run = open.get(view);
    const standIn = run?.pop();
    open.delete(view);
    if (!run || !standIn) return;
    if (run.length > 0) found.push({ gone: run, standIn, before: before.get(view) });
    before.set(view, standIn);
  };
  let index = 0;
  for (const event of events) {
    const { view } = event;
    const isKept = index++ < kept || !isPlain(event);
    const run = open.get(view);
    const last = run?.at(-1);
    if (run && last && !isKept && joins(last, event)) {
      run.push(event);
      continue;
    }
    close(view);
    if (isKept) before.set(view, event);
    else open.set(view, [event]);
  }
  for (const view of [...open.keys()]) close(view);
  return found;
}

interface BacklogsParts {
  readonly functionName: string;
  readonly spill: Spill;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/**
 * Collapses an object's waiting events beyond its share of the queue into the newest one, so that its backlog does not block
 * other objects. The event that replaces the others says so: it is `synthetic`, with the reason `backlog` and the gap.
 */
export class Backlogs {
  private readonly parts: BacklogsParts;
  private unlogged = 0;
  private loggedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: BacklogsParts) {
    this.parts = parts;
  }

  /** Collapses a lane behind its first `kept` events, or at least its head. Events that cannot be replaced stay. */
  collapse(lane: EventLane, kept: number): void {
    if (lane.length < kept + 2) return;
    const gone = new Set<LaneEvent>();
    for (const run of runsOf(lane, Math.max(1, kept))) for (const event of this.join(run)) gone.add(event);
    if (gone.size > 0) lane.remove(gone);
  }

  /**
   * Replaces the last shelved event by `next`, for a lane that has more on disk than its share while its function's room there is
   * short. Returns the state that is delivered before `next`; `undefined` if nothing was replaced.
   */
  collapseShelved(lane: EventLane, next: LaneEvent): ResourceVersion | undefined {
    const { spill } = this.parts;
    const last = lane.shelvedTail;
    if (!last?.from || !spill.isCrowdedBy(lane.shelved)) return undefined;
    const { event, from } = last;
    if (!isOrdinary(event) || !isPlain(next) || !joins(event, next)) return undefined;
    next.flags = { ...next.flags, synthetic: true, reason: "backlog", gap: { from, to: next.meta.resourceVersion } };
    lane.unshelve(event);
    spill.dropShelved(event);
    this.reportCollapsed([event], next);
    return from;
  }

  /** Collapses a run. Returns the events that are gone. */
  private join(run: CollapsedEvents): readonly LaneEvent[] {
    const { spill } = this.parts;
    const { standIn } = run;
    const gone = this.replaceable(run);
    const [first] = gone;
    if (!first) return [];
    const from = run.gone[run.gone.indexOf(first) - 1] ?? run.before;
    standIn.flags = { ...standIn.flags, synthetic: true, reason: "backlog", gap: gapOf(from, standIn) };
    // It has waited since the first of them arrived, and goes to disk by that time.
    standIn.receivedAt = first.receivedAt;
    holdFor(gone, standIn, spill);
    for (const event of gone) spill.left(event);
    this.reportCollapsed(gone, standIn);
    return gone;
  }

  /** Reports that events are gone. */
  private reportCollapsed(gone: readonly LaneEvent[], standIn: LaneEvent): void {
    const { observer, clock } = this.parts;
    const { view, key } = standIn;
    const last = gone.at(-1);
    for (const event of gone) {
      view.leave(key);
      observer.event?.(view.functionName, view.trigger.name, event.type, "dropped");
    }
    observer.collapsed?.(view.functionName, view.trigger.name, gone.length);
    if (last) view.history.held(last, { type: "backlog", collapsed: gone.length }, clock.now(), gone.length);
    this.log(standIn, gone.length);
  }

  /** Returns the events of a run that may be dropped. One on disk may only if there is room on disk for its replacement. */
  private replaceable({ gone, standIn }: CollapsedEvents): readonly LaneEvent[] {
    const onRecord = gone.filter(isOnRecord);
    const grows = standIn.size - onRecord.reduce((bytes, { size }) => bytes + size, 0);
    const fits = isOnRecord(standIn) || grows <= 0 || this.parts.spill.hasRoomFor(grows);
    return fits ? gone : gone.filter((event) => !isOnRecord(event));
  }

  private log({ view, key }: LaneEvent, count: number): void {
    const { functionName, clock, log } = this.parts;
    this.unlogged += count;
    const now = clock.monotonic();
    if (now - this.loggedAt < logEveryMs) return;
    const fields = { function: functionName, trigger: view.trigger.name, object: key, collapsed: this.unlogged };
    this.loggedAt = now;
    this.unlogged = 0;
    log.warn(fields, "backlog of an object collapsed");
  }
}

const isOnRecord = ({ place }: LaneEvent): boolean => place !== "memory";

/** The gap from the state that the handler receives before the event to the event's own. */
function gapOf(before: LaneEvent | undefined, { view, key, meta }: LaneEvent) {
  const from: ResourceVersion | null = before?.deletedBy ?? view.knownState(key)?.resourceVersion ?? null;
  return { from, to: meta.resourceVersion };
}

/**
 * Keeps checkpoints from passing the dropped events before their replacement has ended, or is on disk, so that after a kill all of
 * them are received again. On disk the replacement takes the place of the others in one commit.
 */
function holdFor(gone: readonly LaneEvent[], standIn: LaneEvent, spill: Spill): void {
  if (isOnRecord(standIn)) spill.rewrite(standIn);
  else if (gone.some(isOnRecord)) spill.write(standIn);
  const oldest = gone.find(({ mark }) => mark);
  for (const event of gone) if (event !== oldest || isOnRecord(standIn)) releaseMark(event);
  if (!oldest || isOnRecord(standIn)) return;
  releaseMark(standIn);
  standIn.mark = oldest.mark;
}
