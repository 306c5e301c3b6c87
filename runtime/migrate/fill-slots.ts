import type { Clock } from "../base/clock.ts";
import { isAsAsked, type Sharding, spreadOf } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import type { Nats } from "../journal/nats/connection.ts";
import type { Fence } from "../lease/elector.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { Logger } from "../observe/log.ts";
import { carryOver } from "./carry-over.ts";
import { setOf, slotName } from "./journal-location.ts";
import { type Layout, type LayoutKind, natureOf, partOf, placesOf } from "./layout.ts";
import { namesIn } from "./names-in.ts";
import { type HeldLease, openSlot, roomOfSlot } from "./open-nats.ts";
import { endOf, type PreviousLayout } from "./previous-layout.ts";
import { sweepSets } from "./sweep-sets.ts";

/** Bodies that are read from memory while a slot is filled, in bytes: each is written once. */
const cacheBytes = 1024 * 1024;

export interface FillOptions {
  readonly namespace: string;
  readonly connection: Nats;
  readonly slots: number;
  /** The cluster's uid, where it is known. */
  readonly cluster: string | undefined;
  /** Of the functions as they are to run. */
  readonly manifests: readonly FunctionManifest[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Slots with positions in them, which nobody uses yet. */
interface Filled {
  readonly set: string;
  /** By slot, its mark. */
  readonly carried: Readonly<Record<string, string>>;
  /** Of the functions that are in several slots. */
  readonly spreads: ReadonlyMap<string, Sharding>;
  /** How many functions were carried. */
  readonly functions: number;
}

/**
 * Copies positions into slots of a set that is alone this term's, which the fence names. Should this process end on
 * the way, what they were copied from stands as it was. The next to carry them sweeps this set away.
 * @throws WatchfireError; the signal's reason
 */
export async function fillSlots(
  options: FillOptions,
  former: PreviousLayout,
  fence: Fence,
  signal: AbortSignal,
): Promise<Filled> {
  const { slots, manifests } = options;
  const set = setOf(fence);
  await sweepSets(options, set, former.set);
  const names = await namesIn(former.sources.map(({ store }) => store));
  const asked = new Map(manifests.map((manifest) => [manifest.name, spreadOf(manifest)]));
  const spreadNow = (name: string): Sharding => {
    const [wanted, had] = [asked.get(name), former.layout.spreadOf(name)];
    return wanted && !isAsAsked(wanted, had) ? wanted : had;
  };
  const layout: Layout = { slots, spreadOf: spreadNow };
  const targets = new Set([...names].flatMap((name) => placesOf(layout, name)));
  const carried: Record<string, string> = {};
  const nature = natureOf(manifests);
  for (const target of targets) {
    signal.throwIfAborted();
    carried[target] = await fillSlot({ ...options, set, target, layout, nature }, former, fence, signal);
  }
  const spreads = new Map(
    [...names].map((name) => [name, layout.spreadOf(name)] as const).filter(([, { shards }]) => shards > 1),
  );
  return { set, carried, spreads, functions: names.size };
}

interface SlotParts extends FillOptions {
  readonly set: string;
  readonly target: number;
  readonly layout: Layout;
  readonly nature: LayoutKind;
}

/** Gives its mark. */
async function fillSlot(
  { set, target, layout, nature, slots, ...options }: SlotParts,
  former: PreviousLayout,
  fence: Fence,
  signal: AbortSignal,
): Promise<string> {
  let mark = "";
  const held: HeldLease = {
    fence,
    annotations: {},
    annotate: async (annotations) => {
      mark = Object.values(annotations).at(-1) ?? mark;
    },
  };
  const of = { slot: slotName(set, target), room: roomOfSlot(slots), cacheBytes, onLost: () => {} };
  const journal = await openSlot({ ...options, ...of }, held);
  const end = endOf(former.sources);
  let isDone = false;
  try {
    await journal.clear(end);
    const store = new Checkpoint(journal);
    for (const { slot, store: from } of former.sources) {
      const part = partOf({ from: former.layout, source: slot, to: layout, target }, nature);
      await carryOver(from, store, { part, signal });
    }
    await journal.sync();
    isDone = true;
  } finally {
    // Whoever opens it next learns how the last run had ended.
    await journal.close(isDone && end === "clean");
  }
  return mark;
}
