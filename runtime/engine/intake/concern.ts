import { type Change, objectKey } from "../../informer/scan/change.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { KeyOf } from "../filter/key-rule.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/shard.ts";

/** Whether a change concerns a shard. Asked first of all: nothing is kept of what does not. */
export type Concern = (change: Pick<Change, "meta" | "body">) => boolean;

/**
 * @param shard undefined: all there is
 * @param time on which goes what a `key` takes: it is asked of each change, before anything can wait
 */
export function concernOf(view: KnownObjects, shard: Shard | undefined, time: LoopAccount): Concern {
  if (!shard) return () => true;
  const { key: given } = view.trigger;
  if (!given) return ({ meta }) => shard.owns(objectKey(meta));
  const rule = new KeyOf(given, time);
  return ({ meta, body }) => {
    const own = objectKey(meta);
    // It woke a key of this shard before: that key is to hear of it, be it on its way to another shard.
    if (view.standing(own) ?? view.alive(own)) return true;
    const wakes = rule.of({ namespace: meta.namespace, body });
    // What wakes nobody is counted once.
    return "keys" in wakes ? wakes.keys.some((key) => shard.owns(key)) : shard.owns(own);
  };
}
