import { z } from "zod";
import type { FunctionManifest } from "../../manifest/function.ts";
import { shardOf, shardOfNamespace, slotsOf } from "../../slots/rendezvous.ts";

/** The part of a function that one of its instances runs, if its keys are partitioned over several. */
export interface Shard {
  /** The index among the function's shards, from 0. */
  readonly number: number;
  /** Identifies the partitioning on disk: a process that partitions the keys differently does not find this one's checkpoints. */
  readonly sharding: string;
  /** Whether it has the work that belongs to no key, such as a schedule's runs. Exactly one shard of each function does. */
  readonly isFirst: boolean;
  /** Whether a key (`namespace/name`) belongs to this shard. Exactly one shard of each function owns it. */
  owns(key: string): boolean;
  /** Whether it may ever own a key of this namespace ("" for cluster-scoped objects). */
  mayOwnIn(namespace: string): boolean;
}

/** How the keys of a function are partitioned over slots. */
export interface Sharding {
  readonly shards: number;
  /**
   * The part of a key that decides its shard: the namespace if the manifest says so; otherwise the name in mode Reconcile, where
   * a trigger's `key` may return a namespace for a cluster-scoped object; otherwise the whole key.
   */
  readonly by: "key" | "name" | "namespace";
}

/** A function that is not partitioned. */
export const whole: Sharding = { shards: 1, by: "key" };

/** The partitioning that a manifest asks for. */
export const shardingOf = ({
  delivery: { shards = 1, shardBy, mode },
}: Pick<FunctionManifest, "delivery">): Sharding => ({
  shards,
  by: shardBy === "Namespace" ? "namespace" : mode === "Reconcile" ? "name" : "key",
});

/**
 * Whether a function partitioned as `runs` satisfies what is asked for. By name satisfies a request for by key, but not the
 * reverse: in mode Reconcile a key and its object may differ in the namespace, and would be in two shards.
 */
export const isSatisfiedBy = (asked: Sharding, runs: Sharding): boolean =>
  asked.shards === runs.shards &&
  (asked.shards === 1 || asked.by === runs.by || (asked.by === "key" && runs.by === "name"));

/** The stored text of a partitioning, such as `8 by key`. */
export const formatSharding = ({ shards, by }: Sharding): string => `${shards} by ${by}`;

/** Parses such a text; `undefined` for any other. */
export function parseSharding(words: unknown): Sharding | undefined {
  const [, shards, by] = /^(\d{1,4}) by (key|name|namespace)$/.exec(String(words)) ?? [];
  return shards === undefined ? undefined : { shards: Number(shards), by: by as Sharding["by"] };
}

/**
 * The part of a function that a slot runs: `whole` if the function is not partitioned, `undefined` if the slot runs nothing of
 * it.
 */
export function shardIn(slot: number, name: string, sharding: Sharding, slots: number): Shard | "whole" | undefined {
  const places = slotsOf(name, sharding.shards, slots);
  const number = places.indexOf(slot);
  if (number < 0) return undefined;
  if (sharding.shards === 1) return "whole";
  const shardOfKey = shardFunctions[sharding.by];
  return {
    number,
    sharding: formatSharding(sharding),
    isFirst: number === 0,
    owns: (key) => shardOfKey(key, places.length) === number,
    mayOwnIn: (namespace) => sharding.by !== "namespace" || shardOfNamespace(namespace, places.length) === number,
  };
}

/** Maps a key to its shard, out of so many. */
const shardFunctions: Readonly<Record<Sharding["by"], (key: string, shards: number) => number>> = {
  key: shardOf,
  name: (key, shards) => shardOf(key.slice(key.indexOf("/") + 1), shards),
  namespace: (key, shards) => shardOfNamespace(key.slice(0, key.indexOf("/")), shards),
};

/** Replaces the partitioning in a checkpoint's selection. A text that is not a watch's selection is returned unchanged. */
export function replaceSharding(selection: string, sharding: Sharding): string {
  const parts = partsOf(selection);
  if (!parts) return selection;
  const [labels, fields] = parts;
  return selectionOf(labels, fields, sharding.shards === 1 ? undefined : formatSharding(sharding));
}

/** The partitioning that a checkpoint records; `undefined` if it is not recorded. */
export const shardingIn = (selection: string): Sharding | undefined => parseSharding(partsOf(selection)?.[2]);

/** The stored text of what a source selects, and of the part of it that a shard takes. */
export const selectionOf = (labels: string, fields: string, sharding: string | undefined): string =>
  JSON.stringify([labels, fields, ...(sharding === undefined ? [] : [sharding])]);

const selectionSchema = z.tuple([z.string(), z.string()]).rest(z.unknown());

function partsOf(selection: string): z.infer<typeof selectionSchema> | undefined {
  if (!selection.startsWith("[")) return undefined;
  return selectionSchema.safeParse(JSON.parse(selection)).data;
}
