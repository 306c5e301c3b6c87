import type { Shard } from "../../dispatch/position/shard.ts";
import { shardOf, slotsOf } from "../../fleet/rendezvous.ts";
import type { FunctionManifest } from "../../manifest/function.ts";

/** How the keys of a function are spread over slots. */
export interface Spread {
  readonly shards: number;
  /**
   * What of a key says where it is. In mode Reconcile its name alone. There a trigger's `key` may give a namespace for
   * an object that has none.
   */
  readonly by: "key" | "name";
}

/** As a manifest asks for it. */
export const spreadOf = ({ delivery: { shards = 1, mode } }: Pick<FunctionManifest, "delivery">): Spread => ({
  shards,
  by: mode === "Reconcile" ? "name" : "key",
});

/** On record, such as `8 by key`. */
export const wordsOf = ({ shards, by }: Spread): string => `${shards} by ${by}`;

/** Undefined for what is none. */
export function readSpread(words: unknown): Spread | undefined {
  const [, shards, by] = /^(\d{1,4}) by (key|name)$/.exec(String(words)) ?? [];
  return shards === undefined ? undefined : { shards: Number(shards), by: by === "name" ? "name" : "key" };
}

/** The part of a function that a slot has: `whole` where it is not spread, undefined where the slot has nothing of it. */
export function shardIn(slot: number, name: string, spread: Spread, slots: number): Shard | "whole" | undefined {
  const places = slotsOf(name, spread.shards, slots);
  const number = places.indexOf(slot);
  if (number < 0) return undefined;
  if (spread.shards === 1) return "whole";
  const textOf = spread.by === "key" ? (key: string) => key : (key: string) => key.slice(key.indexOf("/") + 1);
  return {
    number,
    spread: wordsOf(spread),
    isFirst: number === 0,
    owns: (key) => shardOf(textOf(key), places.length) === number,
  };
}
