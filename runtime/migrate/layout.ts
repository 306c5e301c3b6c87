import { isUpTo } from "../base/resource-version.ts";
import { respread, type Sharding, shardIn, whole } from "../engine/state/sharding.ts";
import type { Cursor, KnownIdentity } from "../journal/batch.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { scheduleKind } from "../manifest/schedule.ts";
import { resourceOf } from "../manifest/trigger-record.ts";
import { slotsOf } from "../slots/rendezvous.ts";
import type { FunctionPart, Part, ViewOf } from "./part.ts";

/** How functions lie in stores: one for each slot. */
export interface Layout {
  readonly slots: number;
  /** How the keys of a function are spread. */
  readonly spreadOf: (name: string) => Sharding;
}

/** All in one store. */
export const alone: Layout = { slots: 1, spreadOf: () => whole };

/** What of the functions says where their rows belong. */
export interface LayoutKind {
  /** Whether a trigger tells whom its objects count for, so that one may count for several shards. */
  isKeyed(functionName: string, trigger: string): boolean;
  /** Whether each shard has the function's schedules, and wakes its own keys by them. */
  isReconciler(functionName: string): boolean;
}

/** As the manifests say it. */
export function natureOf(manifests: readonly Pick<FunctionManifest, "name" | "triggers" | "delivery">[]): LayoutKind {
  const byName = new Map(manifests.map((manifest) => [manifest.name, manifest]));
  return {
    isKeyed: (name, trigger) => byName.get(name)?.triggers.find((each) => each.name === trigger)?.key !== undefined,
    isReconciler: (name) => byName.get(name)?.delivery.mode === "Reconcile",
  };
}

/** The slots that have something of a function. */
export const placesOf = ({ slots, spreadOf }: Layout, name: string): readonly number[] =>
  slotsOf(name, spreadOf(name).shards, slots);

/**
 * What the store of slot `target` gets of the store of slot `source`, as the layout changes. A shard whose keys stay the
 * same is carried as it is, and so is what comes out of one store. Of several that become others no position holds: what
 * one of them has told lies behind what another has. There objects that are known are compared with a list.
 */
export function partOf(
  { from, source, to, target }: { from: Layout; source: number; to: Layout; target: number },
  nature: LayoutKind,
): Part {
  return {
    of(name): FunctionPart | undefined {
      const spread = to.spreadOf(name);
      const shard = shardIn(target, name, spread, to.slots);
      const before = placesOf(from, name);
      const now = placesOf(to, name);
      if (!shard || !before.includes(source)) return undefined;
      const isAlike = before.length === now.length && (now.length === 1 || from.spreadOf(name).by === spread.by);
      if (isAlike && before.indexOf(source) !== now.indexOf(target)) return undefined;
      const isReconciler = spread.by === "name" || nature.isReconciler(name);
      const former = shardIn(source, name, from.spreadOf(name), from.slots);
      const isWholeIn = (namespace: string) => from.spreadOf(name).by === "namespace" && namespace !== "";
      const has = (view: ViewOf, key: string, keys: readonly string[] | undefined) => {
        if (isAlike || shard === "whole") return true;
        if (isSchedule(view)) return isReconciler || shard.isFirst;
        if (keys && keys.length > 0) return keys.some((each) => shard.owns(each));
        return (keys === undefined && nature.isKeyed(view.function, view.trigger)) || shard.owns(key);
      };
      const cursor = (view: ViewOf, one: Cursor, other: Cursor | undefined) => {
        if (!has(view, "", undefined) && isSchedule(view)) return undefined;
        if (isSchedule(view)) return other ? olderOf(one, other) : one;
        const { namespace } = one;
        const become = { ...one, selection: respread(one.selection, spread) };
        if (isAlike) return become;
        if (shard !== "whole" && !shard.mayOwnIn(namespace) && namespace !== "") return undefined;
        if (before.length === 1) return become;
        if (!isWholeIn(namespace)) return withoutPosition(become, other);
        // All of the namespace was in one shard.
        return former !== "whole" && former?.mayOwnIn(namespace) ? become : undefined;
      };
      return { has, cursor, prefers };
    },
  };
}

const isSchedule = ({ resource }: ViewOf): boolean => resource === scheduleResource;
const scheduleResource = resourceOf(scheduleKind);

/** Of two positions of a schedule, in times: what one of them has not told yet is told. */
const olderOf = (one: Cursor, other: Cursor): Cursor => ({
  ...(Number(one.lowWaterMark ?? 0) < Number(other.lowWaterMark ?? 0) ? one : other),
  epoch: Math.max(one.epoch, other.epoch),
});

/** Its objects were listed unless none of the shards had. */
const withoutPosition = (one: Cursor, other: Cursor | undefined): Cursor => ({
  ...one,
  lowWaterMark: undefined,
  epoch: Math.max(one.epoch, other?.epoch ?? 0),
  initial: one.initial && (other?.initial ?? true),
});

/** What a shard has not told yet is told: the object that stands, and its older state. */
function prefers(other: KnownIdentity, one: KnownIdentity): boolean {
  return other.deleted === one.deleted ? isUpTo(other.resourceVersion, one.resourceVersion) : one.deleted;
}
