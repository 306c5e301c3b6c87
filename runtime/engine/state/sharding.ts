import { z } from "zod";
import type { FunctionManifest } from "../../manifest/function.ts";
import { shardOf, shardOfNamespace, slotsOf } from "../../slots/rendezvous.ts";
import type { Shard } from "./shard.ts";

/** How the keys of a function are spread over slots. */
export interface Sharding {
  readonly shards: number;
  /**
   * The part of a key that decides its shard. It is the namespace where the manifest says so, and in mode Reconcile otherwise
   * the name: there a trigger's `key` may give a namespace for an object without one.
   */
  readonly by: "key" | "name" | "namespace";
}

/** Not spread at all. */
export const whole: Sharding = { shards: 1, by: "key" };

/** As a manifest asks for it. */
export const spreadOf = ({
  delivery: { shards = 1, shardBy, mode },
}: Pick<FunctionManifest, "delivery">): Sharding => ({
  shards,
  by: shardBy === "Namespace" ? "namespace" : mode === "Reconcile" ? "name" : "key",
});

/**
 * Whether a function that is spread as `runs` will do as asked. By name serves where by key is asked for, and not the other
 * way round. In mode Reconcile a key and its object may differ in the namespace, and would be in two shards.
 */
export const isAsAsked = (asked: Sharding, runs: Sharding): boolean =>
  asked.shards === runs.shards &&
  (asked.shards === 1 || asked.by === runs.by || (asked.by === "key" && runs.by === "name"));

/** On record, such as `8 by key`. */
export const wordsOf = ({ shards, by }: Sharding): string => `${shards} by ${by}`;

/** Reads such words; `undefined` for any others. */
export function readSpread(words: unknown): Sharding | undefined {
  const [, shards, by] = /^(\d{1,4}) by (key|name|namespace)$/.exec(String(words)) ?? [];
  return shards === undefined ? undefined : { shards: Number(shards), by: by as Sharding["by"] };
}

/** The part of a function that a slot has: `whole` where it is not spread, undefined where the slot has nothing of it. */
export function shardIn(slot: number, name: string, spread: Sharding, slots: number): Shard | "whole" | undefined {
  const places = slotsOf(name, spread.shards, slots);
  const number = places.indexOf(slot);
  if (number < 0) return undefined;
  if (spread.shards === 1) return "whole";
  const shardOfKey = ways[spread.by];
  return {
    number,
    spread: wordsOf(spread),
    isFirst: number === 0,
    owns: (key) => shardOfKey(key, places.length) === number,
    mayOwnIn: (namespace) => spread.by !== "namespace" || shardOfNamespace(namespace, places.length) === number,
  };
}

/** Which of so many shards has a key. */
const ways: Readonly<Record<Sharding["by"], (key: string, shards: number) => number>> = {
  key: shardOf,
  name: (key, shards) => shardOf(key.slice(key.indexOf("/") + 1), shards),
  namespace: (key, shards) => shardOfNamespace(key.slice(0, key.indexOf("/")), shards),
};

/** A position's selection with another sharding in it. A text that is no selection of a watch stays the same. */
export function respread(selection: string, spread: Sharding): string {
  const parts = partsOf(selection);
  if (!parts) return selection;
  const [labels, fields] = parts;
  return selectionOf(labels, fields, spread.shards === 1 ? undefined : wordsOf(spread));
}

/** How a position says that its function is spread; undefined where it does not. */
export const spreadIn = (selection: string): Sharding | undefined => readSpread(partsOf(selection)?.[2]);

/** Stands for what a source selects, and for the part of it that a shard takes. */
export const selectionOf = (labels: string, fields: string, spread: string | undefined): string =>
  JSON.stringify([labels, fields, ...(spread === undefined ? [] : [spread])]);

const selectionSchema = z.tuple([z.string(), z.string()]).rest(z.unknown());

function partsOf(selection: string): z.infer<typeof selectionSchema> | undefined {
  if (!selection.startsWith("[")) return undefined;
  return selectionSchema.safeParse(JSON.parse(selection)).data;
}
