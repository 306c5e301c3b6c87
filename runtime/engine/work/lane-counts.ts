import type { EventLane } from "./event-lane.ts";

/** How a function's lanes stand, together; times are epoch milliseconds. */
interface LaneCounts {
  /** Events in memory, those that run among them. */
  readonly queued: number;
  /** Lanes whose head is out of attempts and holds them. */
  readonly blocked: number;
  /** When the oldest event came that is not done. */
  readonly oldestAt: number | undefined;
  /** The same of those that could run, and were not begun. */
  readonly dueSince: number | undefined;
}

export function countLanes(lanes: Iterable<EventLane>): LaneCounts {
  let queued = 0;
  let blocked = 0;
  let oldestAt = Number.POSITIVE_INFINITY;
  let dueSince = Number.POSITIVE_INFINITY;
  for (const lane of lanes) {
    queued += lane.length;
    if (lane.blocked) blocked++;
    const receivedAt = lane.head?.receivedWall ?? Number.POSITIVE_INFINITY;
    oldestAt = Math.min(oldestAt, receivedAt);
    if (lane.isDue) dueSince = Math.min(dueSince, receivedAt);
  }
  return { queued, blocked, oldestAt: finite(oldestAt), dueSince: finite(dueSince) };
}

/** How many events are in memory alone, by view. */
export function inMemory(lanes: Iterable<EventLane>): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const lane of lanes) {
    for (const { place, view } of lane) if (place === "memory") counts.set(view.id, (counts.get(view.id) ?? 0) + 1);
  }
  return counts;
}

const finite = (at: number): number | undefined => (Number.isFinite(at) ? at : undefined);
