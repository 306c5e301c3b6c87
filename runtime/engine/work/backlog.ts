import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { EngineLog, EngineObserver } from "../delivery/observer.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { type LaneEvent, letGo } from "./event.ts";
import type { EventLane } from "./event-lane.ts";
import type { Spill } from "./spill.ts";

/** A function's collapsed events are logged so often at most, in milliseconds: a stuck object collapses again and again. */
const logEveryMs = 60_000;

/** Why a synthetic event may give way itself: its gap is a part of the new one. Others say what an edit or a restored cluster did. */
const ordinary: ReadonlySet<string | undefined> = new Set([undefined, "relist", "backlog"]);

/** Waiting events of one object that give way to the newest. */
interface CollapsedEvents {
  /** Oldest first. */
  readonly gone: readonly LaneEvent[];
  readonly standIn: LaneEvent;
  /** The event before them in the lane, of the same trigger. */
  readonly before: LaneEvent | undefined;
}

/**
 * Whether a waiting event may give way to a newer one. Both are changes of one object for one trigger, and no handler has begun with
 * the older one. An Added or a Deleted gives way to nothing, so the lives of two objects of one name stay apart.
 */
export function givesWay(event: LaneEvent, next: LaneEvent): boolean {
  if (event.type !== "Modified" || next.type !== "Modified") return false;
  // A dead letter that comes back is of an older state than what waits, and was counted once.
  if (event.replayed || next.replayed) return false;
  if (event.view !== next.view || event.meta.uid !== next.meta.uid) return false;
  return hasNotBegun(event);
}

const hasNotBegun = ({ attempts, interruptions, notBefore }: LaneEvent): boolean =>
  attempts === 0 && interruptions === 0 && notBefore === undefined;

/** Whether an event may be a part of a run, by itself. */
const isPlain = (event: LaneEvent): boolean => event.body !== undefined && isOrdinary(event);

const isOrdinary = (event: LaneEvent): boolean =>
  hasNotBegun(event) &&
  event.type === "Modified" &&
  !event.replayed &&
  !event.isUnselected &&
  ordinary.has(event.flags.reason);

/** Whether two events of a run may become one: their resourceVersions count in one epoch, and they hold the same position. */
const joins = (event: LaneEvent, next: LaneEvent): boolean =>
  givesWay(event, next) &&
  event.epoch === next.epoch &&
  (!event.mark || !next.mark || event.mark.owner === next.mark.owner);

/** The runs among a lane's events behind the first `kept`. Two triggers may share a lane: each has its own runs. */
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
 * Collapses what waits of an object beyond its share of the queue into the newest state. So its backlog is in no other
 * object's way. The event that stands for the others says so: `synthetic`, with the reason `backlog` and the gap.
 */
export class Backlogs {
  private readonly parts: BacklogsParts;
  private unlogged = 0;
  private loggedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: BacklogsParts) {
    this.parts = parts;
  }

  /** Leaves the first `kept` events of a lane, its head at least, and of those behind them what cannot give way. */
  collapse(lane: EventLane, kept: number): void {
    if (lane.length < kept + 2) return;
    const gone = new Set<LaneEvent>();
    for (const run of runsOf(lane, Math.max(1, kept))) for (const event of this.join(run)) gone.add(event);
    if (gone.size > 0) lane.remove(gone);
  }

  /**
   * For a lane that has more on disk than its share, where its function's room there is short. The last that was shelved gives way to
   * the event that is to be shelved behind it. Returns the state that is told before that one; undefined where nothing gave way.
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
    this.tell([event], next);
    return from;
  }

  /** Returns the events that are gone. */
  private join(run: CollapsedEvents): readonly LaneEvent[] {
    const { spill } = this.parts;
    const { standIn } = run;
    const gone = this.replaceable(run);
    const [first] = gone;
    if (!first) return [];
    const from = run.gone[run.gone.indexOf(first) - 1] ?? run.before;
    standIn.flags = { ...standIn.flags, synthetic: true, reason: "backlog", gap: gapOf(from, standIn) };
    // It has waited since the first of them came: on record it is due by that.
    standIn.receivedAt = first.receivedAt;
    holdFor(gone, standIn, spill);
    for (const event of gone) spill.left(event);
    this.tell(gone, standIn);
    return gone;
  }

  /** Says of events that they are gone. */
  private tell(gone: readonly LaneEvent[], standIn: LaneEvent): void {
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

  /** Those of a run that may go: an event on record goes only if the record has room for the one that stands for it. */
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

/** From the state that its handler is told before it, to its own. */
function gapOf(before: LaneEvent | undefined, { view, key, meta }: LaneEvent) {
  const from: ResourceVersion | null = before?.deletedBy ?? view.stands(key)?.resourceVersion ?? null;
  return { from, to: meta.resourceVersion };
}

/**
 * No position passes an event that is gone before the one that stands for it has ended, or is on record. So a kill brings all of them
 * again. On record the one takes the others' place in one commit.
 */
function holdFor(gone: readonly LaneEvent[], standIn: LaneEvent, spill: Spill): void {
  if (isOnRecord(standIn)) spill.rewrite(standIn);
  else if (gone.some(isOnRecord)) spill.write(standIn);
  const oldest = gone.find(({ mark }) => mark);
  for (const event of gone) if (event !== oldest || isOnRecord(standIn)) letGo(event);
  if (!oldest || isOnRecord(standIn)) return;
  letGo(standIn);
  standIn.mark = oldest.mark;
}
