import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { PassedCounter } from "../../informer/fanout/subscriber.ts";
import { type Change, type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { EngineObserver } from "../delivery/observer.ts";
import { KeyOf } from "../filter/key-rule.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/shard.ts";

/**
 * Changes of objects that a trigger knows nothing of, and that lack what its conditions demand. Where many functions share
 * a source, most of its changes are such to most of them. So they are counted, and accounted for together. The observer is told of
 * them more rarely, since that costs as much as all the rest.
 */
export class Passing {
  private readonly view: KnownObjects;
  private readonly observer: EngineObserver;
  private readonly clock: Clock;
  /** Those that the observer has not been told of, and how many of them have been accounted for. */
  private readonly counts: Record<ChangeType, number> = { Added: 0, Modified: 0, Deleted: 0 };
  private settled = 0;
  /** What has passed at the source, without a call. */
  private tally: PassedCounter | undefined;
  /** Of the last one. */
  private type: ChangeType = "Modified";
  private meta: ObjectMeta | undefined;

  constructor(view: KnownObjects, observer: EngineObserver, clock: Clock) {
    this.view = view;
    this.observer = observer;
    this.clock = clock;
  }

  /** Counts such a change. @returns whether it is the first one that is to be accounted for */
  count({ type, meta }: Pick<Change, "type" | "meta">): boolean {
    this.collect();
    const isFirst = this.meta === undefined;
    this.counts[type]++;
    this.type = type;
    this.meta = meta;
    return isFirst;
  }

  /** Changes pass at the source from now on, where they are counted. */
  standBy(tally: PassedCounter): void {
    this.collect();
    this.tally = tally;
  }

  /** What passes at the source from now on is not to be accounted for. */
  end(): void {
    this.collect();
    this.tally?.end();
    this.tally = undefined;
  }

  private collect(): void {
    const passed = this.tally?.take();
    if (!passed) return;
    const { counts, last } = passed;
    for (const type of ["Added", "Modified", "Deleted"] as const) this.counts[type] += counts[type];
    this.type = last.type;
    this.meta = last.meta;
  }

  /** Accounts for them. @returns the last one's resourceVersion; undefined where none has passed. */
  settle(): ResourceVersion | undefined {
    this.collect();
    const { view, counts, settled, type, meta } = this;
    if (!meta) return undefined;
    this.meta = undefined;
    this.settled = counts.Added + counts.Modified + counts.Deleted;
    const event = { view, key: objectKey(meta), type, meta };
    view.history.held(event, view.whyPassed(type), this.clock.now(), this.settled - settled);
    return meta.resourceVersion;
  }

  /** Tells the observer of all that have been accounted for. */
  tell(): void {
    const { view, observer, counts } = this;
    if (this.settled === 0) return;
    this.settled = 0;
    for (const type of ["Added", "Modified", "Deleted"] as const) {
      if (counts[type] > 0) observer.event?.(view.functionName, view.trigger.name, type, "filtered", counts[type]);
      counts[type] = 0;
    }
  }
}

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
