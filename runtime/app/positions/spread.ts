import type { Shard } from "../../dispatch/position/shard.ts";
import { shardOf, shardOfNamespace, slotsOf } from "../../fleet/rendezvous.ts";
import type { FunctionManifest } from "../../manifest/function.ts";

/** How the keys of a function are spread over slots. */
export interface Spread {
  readonly shards: number;
  /**
   * What of a key says where it is: its namespace alone where the manifest says so. In mode Reconcile else its name
   * alone. There a trigger's `key` may give a namespace for an object that has none.
   */
  readonly by: "key" | "name" | "namespace";
}

/** As a manifest asks for it. */
export const spreadOf = ({ delivery: { shards = 1, shardBy, mode } }: Pick<FunctionManifest, "delivery">): Spread => ({
  shards,
  by: shardBy === "Namespace" ? "namespace" : mode === "Reconcile" ? "name" : "key",
});

/** Whether a function that is spread as `runs` is spread as asked. By key or by name is the mode's business. */
export const isAsAsked = (asked: Spread, runs: Spread): boolean =>
  asked.shards === runs.shards && (asked.shards === 1 || (asked.by === "namespace") === (runs.by === "namespace"));

/** On record, such as `8 by key`. */
export const wordsOf = ({ shards, by }: Spread): string => `${shards} by ${by}`;

/** Undefined for what is none. */
export function readSpread(words: unknown): Spread | undefined {
  const [, shards, by] = /^(\d{1,4}) by (key|name|namespace)$/.exec(String(words)) ?? [];
  return shards === undefined ? undefined : { shards: Number(shards), by: by as Spread["by"] };
}

/** The part of a function that a slot has: `whole` where it is not spread, undefined where the slot has nothing of it. */
export function shardIn(slot: number, name: string, spread: Spread, slots: number): Shard | "whole" | undefined {
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
const ways: Readonly<Record<Spread["by"], (key: string, shards: number) => number>> = {
  key: shardOf,
  name: (key, shards) => shardOf(key.slice(key.indexOf("/") + 1), shards),
  namespace: (key, shards) => shardOfNamespace(key.slice(0, key.indexOf("/")), shards),
};
