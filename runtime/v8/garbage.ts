import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
import { IdleCollector } from "./idle-collector.ts";

const mebibyte = 1024 * 1024;
const lookMs = 1000;
/** At least this share of the loop's time is in use while events come as fast as they can. */
const busyShare = 0.5;
/** Garbage of a busy loop may grow to about so much, where half of a small heap is less. */
const busyMebibytes = 64;
const idlePercent = 50;
/** V8's own bound, with memory to spare. */
const mostPercent = 200;
/** The space of young objects, both halves, up to which it grows in a loop that has time to spare. In a busy one it may be twice that. */
const youngMebibytes = 16;
/** The least of so many looks is about what is in use: a look counts garbage as well. */
const looks = 10;

/**
 * How much garbage may gather until old objects are collected, in percent of those in use. As a rule it is half: 20 sources of
 * 10,000 objects take 290 MB instead of 390. They take 350 instead of 700 where all are delivered at once. Half of a small
 * heap is little. In a busy loop each collection finds the same 43 MB in use, which costs 15 us of an event's 95. So a busy
 * loop may gather more: 40 MB more while 100,000 events are delivered at once.
 * @param inUse bytes of the heap
 * @param utilization share of the loop's time that is in use, 0 to 1
 */
export function growthPercent(inUse: number, utilization: number): number {
  if (utilization < busyShare) return idlePercent;
  const percent = Math.round((busyMebibytes * mebibyte * 100) / Math.max(1, inUse));
  return Math.min(mostPercent, Math.max(idlePercent, percent));
}

/**
 * The factor by which the space of young objects grows where more than it has survive: V8's own, or none. A busy loop has
 * hundreds of events under way, and each collection copies them. With twice the space it does so half as often: 4 us of
 * an event's 65.
 * @param size bytes of that space
 */
export function youngGrowth(size: number, utilization: number): 1 | 2 {
  return utilization >= busyShare || size < youngMebibytes * mebibyte ? 2 : 1;
}

/**
 * Threads that help to collect young objects are left out: on two cores they cost 3 us of an event's 80, and save no time. So is
 * pretenuring: where most objects of one literal have survived, V8 makes all further ones old. Events do while they wait. Later
 * ones are let go of at once, and as old objects they kept their bodies. That was 50 MB more memory, and twice as many full
 * collections.
 */
export function setGarbageFlags(): void {
  setFlagsFromString("--no-parallel-scavenge");
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/**
 * Bounds the garbage of this process, by what is in use and how busy the loop is, and collects it once the loop is quiet. Called
 * after its start, whose objects stay: collecting among them costs 60 ms and finds nothing.
 * @returns ends that
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
