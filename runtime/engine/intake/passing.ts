import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { PassedCounter } from "../../informer/fanout/subscriber.ts";
import { type Change, type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { EngineObserver } from "../delivery/observer.ts";
import { KeyOf } from "../filter/key-rule.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/sharding.ts";

/**
 * Counts changes that a trigger skips: nothing is known of their objects, and they lack the text that its conditions require. If
 * many functions share a source, most of its changes are skipped by most of them. So they are counted, and accounted for
 * together. The observer is notified less often, since notifying costs as much as everything else.
 */
export class Passing {
  private readonly objects: KnownObjects;
  private readonly observer: EngineObserver;
  private readonly clock: Clock;
  /** Changes that the observer has not been notified of. `settled` is how many of them have been accounted for. */
  private readonly counts: Record<ChangeType, number> = { Added: 0, Modified: 0, Deleted: 0 };
  private settled = 0;
  /** The counter of changes that the source skips without a call. */
  private tally: PassedCounter | undefined;
  /** The type and metadata of the last one. */
  private type: ChangeType = "Modified";
  private meta: ObjectMeta | undefined;

  constructor(objects: KnownObjects, observer: EngineObserver, clock: Clock) {
    this.objects = objects;
    this.observer = observer;
    this.clock = clock;
  }

  /** Counts a skipped change. Returns whether it is the first that is not accounted for. */
  count({ type, meta }: Pick<Change, "type" | "meta">): boolean {
    this.collect();
    const isFirst = this.meta === undefined;
    this.counts[type]++;
    this.type = type;
    this.meta = meta;
    return isFirst;
  }

  /** Starts skipping at the source, which counts in `tally`. */
  standBy(tally: PassedCounter): void {
    this.collect();
    this.tally = tally;
  }

  /** Stops skipping at the source. */
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

  /** Accounts for the skipped changes. Returns the last one's resourceVersion; `undefined` if nothing was skipped. */
  settle(): ResourceVersion | undefined {
    this.collect();
    const { objects, counts, settled, type, meta } = this;
    if (!meta) return undefined;
    this.meta = undefined;
    this.settled = counts.Added + counts.Modified + counts.Deleted;
    const event = { objects, key: objectKey(meta), type, meta };
    objects.history.held(event, objects.skipReason(type), this.clock.now(), this.settled - settled);
    return meta.resourceVersion;
  }

  /** Notifies the observer of all changes that have been accounted for. */
  notify(): void {
    const { objects, observer, counts } = this;
    if (this.settled === 0) return;
    this.settled = 0;
    for (const type of ["Added", "Modified", "Deleted"] as const) {
      if (counts[type] > 0)
        observer.event?.(objects.functionName, objects.trigger.name, type, "filtered", counts[type]);
      counts[type] = 0;
    }
  }
}

/** Decides whether a change belongs to a shard. Called first of all: nothing is stored of a change that does not. */
export type Concern = (change: Pick<Change, "meta" | "body">) => boolean;

/**
 * Returns the rule by which changes belong to a shard.
 * @param shard `undefined` for the whole function
 * @param time is charged for evaluating the trigger's `key`, which runs for each change, before anything can wait
 */
export function concernOf(objects: KnownObjects, shard: Shard | undefined, time: LoopAccount): Concern {
  if (!shard) return () => true;
  const { key: given } = objects.trigger;
  if (!given) return ({ meta }) => shard.owns(objectKey(meta));
  if (given.type === "all") return () => true;
  const rule = new KeyOf(given, time);
  return ({ meta, body }) => {
    const own = objectKey(meta);
    // It woke a key of this shard before. That key must be woken again, even if the object moves to a key of another shard.
    if (objects.stateAfterQueue(own) ?? objects.alive(own)) return true;
    const wakes = rule.of({ namespace: meta.namespace, body });
    // A change that wakes no key is counted by one shard.
    return "keys" in wakes ? wakes.keys.some((key) => shard.owns(key)) : shard.owns(own);
  };
}
