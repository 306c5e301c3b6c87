import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
import { IdleCollector } from "./idle-collector.ts";

const mebibyte = 1024 * 1024;
const lookMs = 1000;
/** Share of the event loop's time from which it counts as busy: events arrive as fast as they can be handled. */
const busyShare = 0.5;
/** Garbage that may accumulate in a busy loop, in MiB, if half of the heap is less. */
const busyMebibytes = 64;
const idlePercent = 50;
/** V8's own maximum, used with memory to spare. */
const mostPercent = 200;
/**
 * Size in MiB, both halves, up to which the space of young objects grows while the loop is not busy. In a busy loop it may be
 * twice that.
 */
const youngMebibytes = 16;
/** Number of measurements whose minimum approximates the memory in use; a single one includes garbage. */
const looks = 10;

/**
 * Returns how much garbage may accumulate before old objects are collected, in percent of those in use. Normally half: 20 sources
 * of 10,000 objects take 290 MB instead of 390, or 350 instead of 700 if all are delivered at once. Half of a small heap is
 * little: in a busy loop each collection finds the same 43 MB in use, which costs 15 us of an event's 95. So a busy loop may
 * accumulate more: 40 MB more while 100,000 events are delivered at once.
 * @param inUse bytes of the heap
 * @param utilization share of the loop's time that is in use, 0 to 1
 */
export function growthPercent(inUse: number, utilization: number): number {
  if (utilization < busyShare) return idlePercent;
  const percent = Math.round((busyMebibytes * mebibyte * 100) / Math.max(1, inUse));
  return Math.min(mostPercent, Math.max(idlePercent, percent));
}

/**
 * Returns the factor by which the space of young objects grows if more objects survive than it can hold: 2 (V8's default) or 1
 * (no growth). A busy loop has hundreds of unfinished events, and each collection copies them. With twice the space it collects
 * half as often, which saves 4 us of an event's 65.
 * @param size bytes of that space
 */
export function youngGrowth(size: number, utilization: number): 1 | 2 {
  return utilization >= busyShare || size < youngMebibytes * mebibyte ? 2 : 1;
}

/**
 * Disables parallel collection of young objects: on two cores its threads cost 3 us of an event's 80, and save no time. Also
 * disables pretenuring: if most objects of one literal survive, V8 allocates all further ones as old objects. Events do survive
 * while they wait. Later ones are released at once, but as old objects they kept their bodies alive. That took 50 MB more memory,
 * and twice as many full collections.
 */
export function setGarbageFlags(): void {
  setFlagsFromString("--no-parallel-scavenge");
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/**
 * Limits the garbage of this process, depending on the memory in use and the loop's load, and collects it once the loop is idle.
 * Called after the start, whose objects stay: collecting among them costs 60 ms and finds nothing.
 * @returns a function that stops it
 */
export function boundGarbage(): () => void {
  const used: number[] = [];
  const collection = new IdleCollector();
  let before = performance.eventLoopUtilization();
  let flags = "";
  const look = () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const inUse = getHeapStatistics().used_heap_size;
    used.push(inUse);
    if (used.length > looks) used.shift();
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
    const percent = growthPercent(Math.min(...used), utilization);
    const factor = youngGrowth(young?.space_size ?? 0, utilization);
    const next = `--heap-growing-percent=${percent} --semi-space-growth-factor=${factor}`;
    if (next !== flags) setFlagsFromString(next);
    flags = next;
    collection.look(utilization, { young: young?.physical_space_size ?? 0, used: inUse });
  };
  const looking = setInterval(look, lookMs).unref();
  return () => {
    clearInterval(looking);
    collection.end();
  };
}
