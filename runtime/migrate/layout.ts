import { isUpTo } from "../base/resource-version.ts";
import { replaceSharding, type Sharding, shardIn, whole } from "../engine/state/sharding.ts";
import type { Cursor, KnownIdentity } from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { hasNoObjects } from "../manifest/trigger-record.ts";
import { slotsOf } from "../slots/rendezvous.ts";

/** How functions are distributed over journals, one for each slot. */
export interface Layout {
  readonly slots: number;
  /** Returns how the keys of a function are spread. */
  shardingOf(name: string): Sharding;
  /** True if a trigger has a `key`, so that one object may belong to several shards. */
  isKeyed(name: string, trigger: string): boolean;
  /** True if each shard has the function's schedules, and wakes its keys by them. */
  isReconciler(name: string): boolean;
}

export function layoutOf(
  slots: number,
  shardingOf: Layout["shardingOf"],
  manifests: readonly Pick<FunctionManifest, "name" | "triggers" | "delivery">[] = [],
): Layout {
  const byName = new Map(manifests.map((manifest) => [manifest.name, manifest]));
  return {
    slots,
    shardingOf,
    isKeyed: (name, trigger) => byName.get(name)?.triggers.find((each) => each.name === trigger)?.key !== undefined,
    isReconciler: (name) => byName.get(name)?.delivery.mode === "Reconcile",
  };
}

/** All functions in one journal. */
export const alone: Layout = layoutOf(1, () => whole);

/** A move from the journal of one slot to that of another, when the layout changes. */
export interface Move {
  readonly from: Layout;
  readonly source: number;
  readonly to: Layout;
  readonly target: number;
}

/** A move of everything from one journal to another. */
export const wholeMove: Move = { from: alone, source: 0, to: alone, target: 0 };

/** The rows of one function that belong into the target. */
export interface FunctionRows {
  /**
   * True if rows of this key (`namespace/name`) belong there. `keys`: the keys that a known object belongs to, if they are
   * recorded.
   */
  has(view: ViewOf, key: string, keys: readonly string[] | undefined): boolean;
  /** Returns the cursor in the target; `undefined` if it has no cursor there. `other`: the cursor copied from another source. */
  cursor(view: ViewOf, cursor: Cursor, other: Cursor | undefined): Cursor | undefined;
}

/** The trigger that a row belongs to. */
type ViewOf = Pick<StoredView, "function" | "trigger" | "resource">;

/** Returns the slots of a function. */
export const placesOf = (
  { slots, shardingOf }: Pick<Layout, "slots" | "shardingOf">,
  name: string,
): readonly number[] => slotsOf(name, shardingOf(name).shards, slots);

/**
 * Returns the share of a function that moves from the source to the target; `undefined` if nothing does. A shard with the same
 * keys moves unchanged, and so does everything from a single journal. Shards that are combined differently have no common
 * checkpoint, because one may have delivered events beyond another's. Their known objects are compared with a list instead.
 */
export function shareOf({ from, source, to, target }: Move, name: string): FunctionRows | undefined {
  const sharding = to.shardingOf(name);
  const shard = shardIn(target, name, sharding, to.slots);
  const before = placesOf(from, name);
  const now = placesOf(to, name);
  if (!shard || !before.includes(source)) return undefined;
  const isAlike = before.length === now.length && (now.length === 1 || from.shardingOf(name).by === sharding.by);
  if (isAlike && before.indexOf(source) !== now.indexOf(target)) return undefined;
  const isReconciler = sharding.by === "name" || to.isReconciler(name);
  const former = shardIn(source, name, from.shardingOf(name), from.slots);
  const isWholeIn = (namespace: string) => from.shardingOf(name).by === "namespace" && namespace !== "";
  const has: FunctionRows["has"] = (view, key, keys) => {
    if (isAlike || shard === "whole") return true;
    if (hasNoObjects(view.resource)) return isReconciler || shard.isFirst;
    if (keys && keys.length > 0) return keys.some((each) => shard.owns(each));
    return (keys === undefined && to.isKeyed(view.function, view.trigger)) || shard.owns(key);
  };
  const cursor: FunctionRows["cursor"] = (view, one, other) => {
    if (!has(view, "", undefined) && hasNoObjects(view.resource)) return undefined;
    if (hasNoObjects(view.resource)) return other ? olderOf(one, other) : one;
    const { namespace } = one;
    const become = { ...one, selection: replaceSharding(one.selection, sharding) };
    if (isAlike) return become;
    if (shard !== "whole" && !shard.mayOwnIn(namespace) && namespace !== "") return undefined;
    if (before.length === 1) return become;
    if (!isWholeIn(namespace)) return withoutPosition(become, other);
    // The whole namespace belonged to one shard.
    return former !== "whole" && former?.mayOwnIn(namespace) ? become : undefined;
  };
  return { has, cursor };
}

/** Returns the earlier of two cursors of a schedule, so that a time that one shard has not delivered yet is delivered. */
const olderOf = (one: Cursor, other: Cursor): Cursor => ({
  ...(Number(one.lowWaterMark ?? 0) < Number(other.lowWaterMark ?? 0) ? one : other),
  epoch: Math.max(one.epoch, other.epoch),
});

/** Returns the cursor without a low-water mark. It counts as listed if any of the shards had listed. */
const withoutPosition = (one: Cursor, other: Cursor | undefined): Cursor => ({
  ...one,
  lowWaterMark: undefined,
  epoch: Math.max(one.epoch, other?.epoch ?? 0),
  initial: one.initial && (other?.initial ?? true),
});

/**
 * Decides between the states that two shards know of an object. Returns true if `one` is kept: the older state, whose change is
 * not delivered yet.
 */
export function precedes(one: KnownIdentity, other: KnownIdentity): boolean {
  return one.deleted === other.deleted ? isUpTo(one.resourceVersion, other.resourceVersion) : other.deleted;
}

/** Returns the functions with rows in the journals. `retired`: include removed ones that may be restored. */
export async function namesIn(journals: readonly Checkpoint[], { retired = false } = {}): Promise<Set<string>> {
  const names = new Set<string>();
  for (const journal of journals) {
    const views = [...(await journal.views()), ...(retired ? await journal.retiredViews() : [])];
    for (const view of views) names.add(view.function);
    for (const name of (await journal.paused()).keys()) names.add(name);
    for (const [name] of journal.journal.letterSizes()) names.add(name);
  }
  return names;
}
