import { MassDeletionGuard } from "../../informer/list/diff.ts";
import type { Change } from "../../informer/scan/change.ts";
import { ObjectTurns } from "../../informer/scan/object-turns.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";
import { nameOf, namespaceOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/sharding.ts";
import { type LaneEvent, withUid } from "../work/event.ts";
import { type IntakeParts, Subscription } from "./subscription.ts";

/** The properties of a source that a subscription needs. */
export interface SourceRef {
  /** Identifies the source's selectors, without its namespace. If it differs from the stored value, a list is needed. */
  readonly selection: string;
  /** "" for all namespaces. */
  readonly namespace: string;
}

interface ScopeParts extends IntakeParts {
  /** The part of the function that runs here; `undefined` for the whole function. */
  readonly shard: Shard | undefined;
  /** The positions in the store. */
  readonly cursors: readonly Cursor[];
}

/**
 * The namespace of two records of a scope of chosen namespaces: that the scope has begun, and the last epoch of namespaces of
 * which nothing else is stored. Such a scope has no source of all namespaces.
 */
const wholeScope = "";

/** An object of a namespace that left the scope, in the state that the handler knows. */
type LeavingObject = LastState & Pick<LaneEvent, "key" | "redeliveryRisk">;

/** The sources of one trigger: the namespaces that it reads, and its position in each. */
export class TriggerScope {
  readonly objects: KnownObjects;
  private readonly parts: ScopeParts;
  /** Both by namespace. A cursor is the position at which the next subscription begins. */
  private readonly open = new Map<string, Subscription>();
  private readonly cursors: Map<string, Cursor>;
  private readonly guard = new MassDeletionGuard();
  /** Delivers the objects of namespaces that left, in pieces. */
  private readonly turns: ObjectTurns;
  /** Namespaces that left, and still have objects without an event. */
  private readonly leaving = new Set<string>();
  /** True if the scope was closed before all of them were delivered. */
  private isCutOff = false;
  /** Whether objects of namespaces that are added from now on are news. */
  private begun: boolean;
  /** Whether `retain` was called, so that the namespaces are known. */
  private retained = false;

  constructor(parts: ScopeParts) {
    this.parts = parts;
    this.objects = parts.objects;
    this.turns = new ObjectTurns(parts.clock);
    this.cursors = new Map(parts.cursors.map((cursor) => [cursor.namespace, cursor]));
    this.begun = parts.cursors.some(({ initial }) => !initial);
    const { namespaces } = parts.objects.trigger;
    if (namespaces.type === "names") {
      this.retain(namespaces.names);
      if (this.readsNothing) this.begin([]);
    } else if (namespaces.type === "all") this.leaveOthers(new Set([wholeScope]), new Set());
  }

  get subscriptions(): Iterable<Subscription> {
    return this.open.values();
  }

  /**
   * The subscription that delivers objects of this namespace ("" for cluster-scoped objects); `undefined` if the namespace is not
   * read.
   */
  reads(namespace: string): Subscription | undefined {
    return this.open.get(this.parts.objects.trigger.namespaces.type === "all" ? wholeScope : namespace);
  }

  /** Whether an object belongs to this instance, and not only to another shard. */
  concerns(change: Change): boolean {
    return this.parts.concerns(withUid(change, this.objects.resource));
  }

  /** Whether the namespace's objects are all known, or the namespace is not read. */
  isSettled(namespace: string): boolean {
    const { namespaces } = this.parts.objects.trigger;
    if (namespaces.type === "names" && !namespaces.names.includes(namespace)) return true;
    if (namespaces.type === "labels" && !this.retained) return false;
    return this.reads(namespace)?.isReady ?? namespaces.type === "labels";
  }

  /** Whether all named namespaces belong to other shards. */
  get readsNothing(): boolean {
    const { objects, shard } = this.parts;
    const { namespaces } = objects.trigger;
    return shard !== undefined && namespaces.type === "names" && !namespaces.names.some((each) => shard.mayOwnIn(each));
  }

  /** Whether changes may still arrive that an earlier process handled without a record. */
  get hasUnpersistedRisk(): boolean {
    if (this.turns.busy || this.isCutOff) return true;
    // While the chosen namespaces are not known, nothing has arrived.
    if (this.parts.objects.trigger.namespaces.type === "labels" && !this.retained) return true;
    for (const { hasUnpersistedRisk } of this.open.values()) if (hasUnpersistedRisk) return true;
    return false;
  }

  /** Returns the subscriber for a source; the same one for the same source. */
  subscription({ selection, namespace }: SourceRef): Subscription {
    const existing = this.open.get(namespace);
    if (existing) return existing;
    // An object that exists again is compared with the state that its handler knows.
    if (this.leaving.has(namespace)) this.turns.finish();
    const { cursors: _, shard, ...parts } = this.parts;
    const cursor = this.beginning(this.cursors.get(namespace) ?? this.fresh(namespace, selection, !this.hasBegun));
    parts.objects.enter(namespace, cursor.epoch);
    const isWhole = shard === undefined;
    const wants = isWhole || parts.objects.trigger.key ? undefined : (each: string) => shard.mayOwnIn(each);
    const made = new Subscription({ ...parts, cursor, selection, isWhole, wants });
    this.open.set(namespace, made);
    parts.commits.cursorMoved(made);
    return made;
  }

  /**
   * Whether to trust a complete list of the namespaces, and call `retain` with it. The first list that drops most known objects,
   * as an empty answer does, is not trusted. It is once another list, 30 s later, agrees.
   */
  believes(namespaces: readonly string[]): boolean {
    const { objects, clock } = this.parts;
    const kept = new Set(namespaces);
    let [deleted, staying] = [0, 0];
    // Deletions that are being delivered were believed before.
    const goes = (namespace: string) => !kept.has(namespace) && !this.leaving.has(namespace);
    for (const namespace of objects.namespaces) if (goes(namespace)) for (const _ of objects.live(namespace)) deleted++;
    // Once half of them stay, the count of the others does not matter.
    for (const namespace of kept) {
      for (const _ of staying < deleted ? objects.live(namespace) : []) staying++;
    }
    return this.guard.believes(deleted, deleted + staying, clock.monotonic());
  }

  /**
   * Sets all namespaces that it reads. Closes subscriptions to other namespaces, and delivers their known objects as `Deleted`,
   * `unselected`. If namespaces are chosen by labels, called whenever the choice changes.
   */
  retain(namespaces: readonly string[]): void {
    const { objects, lostWrites } = this.parts;
    const kept = new Set(namespaces);
    // The last deliveries of the earlier process may not be recorded.
    const unread = lostWrites && !this.retained ? "unpersisted" : "none";
    // Namespaces that were outside before have been delivered already.
    const read = this.retained ? this.open.keys() : objects.namespaces;
    this.retained = true;
    if (objects.trigger.namespaces.type === "labels") this.begin(namespaces);
    const outside = [...read].filter((namespace) => !kept.has(namespace));
    const leaving: readonly LeavingObject[] = outside.flatMap((namespace) => {
      const source = this.open.get(namespace);
      return [...objects.live(namespace)].map(([key, object]) => {
        const redeliveryRisk = source?.redeliveryRiskOf(object.resourceVersion) ?? unread;
        return { key, ...object, redeliveryRisk };
      });
    });
    const epochs = this.leaveOthers(kept, new Set(leaving.map(({ key }) => namespaceOf(key))));
    for (const namespace of outside) this.leaving.add(namespace);
    this.turns.run(this.deletionsOf(leaving, epochs));
    this.turns.queue(() => {
      for (const namespace of outside) this.leaving.delete(namespace);
    });
  }

  /** Stops delivering. The next load delivers the known objects that are left. */
  close(): void {
    this.isCutOff = this.turns.busy !== undefined;
    this.turns.cancel();
  }

  private *deletionsOf(left: readonly LeavingObject[], epochs: ReadonlyMap<string, number>): Generator<void> {
    const { objects, maker, clock, queue } = this.parts;
    for (const { key, uid, resourceVersion, redeliveryRisk } of left) {
      const name = nameOf(key);
      const source = {
        type: "Deleted" as const,
        key,
        meta: { ...name, uid, resourceVersion },
        receivedAt: clock.monotonic(),
        flags: { synthetic: true, reason: "unselected", finalStateUnknown: true } as const,
        redeliveryRisk,
      };
      const epoch = epochs.get(name.namespace) ?? epochs.get(wholeScope) ?? 0;
      queue.accept(maker.make(source, { objects, epoch, isSelective: true }));
      yield;
    }
  }

  /**
   * Whether the first complete choice of namespaces was made. Only objects in it are initial, and only of the namespaces that it
   * names.
   */
  private get hasBegun(): boolean {
    if (!this.begun) for (const { isReady } of this.open.values()) if (isReady) this.begun = true;
    return this.begun;
  }

  /**
   * Records the first complete choice of namespaces: those in it existed when the function was deployed. It is recorded even if
   * empty, so that namespaces added later deliver news.
   */
  private begin(namespaces: readonly string[]): void {
    if (this.hasBegun) return;
    this.begun = true;
    for (const namespace of namespaces) {
      if (!this.open.has(namespace) && !this.cursors.has(namespace)) this.save(this.fresh(namespace, "", true));
    }
    this.save(this.fresh(wholeScope, "", false));
  }

  /**
   * Abandons the positions outside `kept`: the trigger learns later states from other sources, so these cannot be resumed. Keeps
   * the cursors of namespaces that had a list, or have known objects, without a position. They start with a list and a later
   * epoch, and thus use no event id twice. Once no object is known in them, one record has the last epoch of them all, because
   * namespaces are added and removed without end.
   * @returns the epochs by namespace
   */
  private leaveOthers(kept: ReadonlySet<string>, withObjects: ReadonlySet<string>): Map<string, number> {
    const { objects, commits } = this.parts;
    const epochs = new Map<string, number>();
    objects.retain(kept);
    for (const [namespace, subscription] of this.open) {
      if (kept.has(namespace)) continue;
      const cursor = subscription.leave();
      if (cursor) this.cursors.set(namespace, cursor);
      this.open.delete(namespace);
    }
    const inUse = objects.namespaces;
    let last = this.lastEpoch;
    for (const [namespace, cursor] of this.cursors) {
      if (kept.has(namespace)) continue;
      epochs.set(namespace, cursor.epoch);
      if (withObjects.has(namespace) || cursor.lowWaterMark !== undefined) {
        this.save({ ...cursor, lowWaterMark: undefined, initial: false });
      } else if (namespace !== wholeScope && cursor.epoch > 0 && !inUse.has(namespace)) {
        this.cursors.delete(namespace);
        commits.dropCursor(cursor.view, namespace);
        last = Math.max(last, cursor.epoch);
      } else if (cursor.epoch === 0 && (cursor.initial || this.isRecordedBeside(namespace))) {
        this.cursors.delete(namespace);
        commits.dropCursor(cursor.view, namespace);
      }
    }
    if (last > this.lastEpoch) this.save({ ...this.fresh(wholeScope, "", false), epoch: last });
    return epochs;
  }

  /** A position that starts from nothing continues from the last epoch in which its objects may have had ids. */
  private beginning(cursor: Cursor): Cursor {
    if (cursor.lowWaterMark !== undefined) return cursor;
    const others = cursor.namespace === wholeScope ? [...this.cursors.values()].map(({ epoch }) => epoch) : [];
    return { ...cursor, epoch: Math.max(cursor.epoch, this.lastEpoch, ...others) };
  }

  /** The last epoch of all namespaces of which nothing else is stored. */
  private get lastEpoch(): number {
    return this.cursors.get(wholeScope)?.epoch ?? 0;
  }

  /** Whether another position records that the scope has begun. */
  private isRecordedBeside(except: string): boolean {
    for (const [namespace, { initial }] of this.cursors) if (!initial && namespace !== except) return true;
    for (const { isReady } of this.open.values()) if (isReady) return true;
    return false;
  }

  private fresh(namespace: string, selection: string, initial: boolean): Cursor {
    const { lastEpoch: epoch } = this;
    return { view: this.parts.objects.id, namespace, selection, lowWaterMark: undefined, epoch, initial };
  }

  private save(cursor: Cursor): void {
    this.cursors.set(cursor.namespace, cursor);
    this.parts.commits.cursorMoved({ cursor: () => cursor });
  }
}
