import type { Clock } from "../../base/clock.ts";
import { MassDeletionGuard } from "../../informer/list/diff.ts";
import { ObjectTurns } from "../../informer/scan/object-turns.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { EngineObserver } from "../delivery/observer.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";
import { nameOf, namespaceOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/shard.ts";
import type { EventMaker, LaneEvent } from "../work/event.ts";
import type { FunctionQueue } from "../work/function-queue.ts";
import type { Concern } from "./passing.ts";
import { Subscription } from "./subscription.ts";

/** What a source is to a subscription. */
export interface SourceRef {
  /** Stands for the source's selectors, without its namespace; another value than the stored one means a list. */
  readonly selection: string;
  /** "" for all namespaces. */
  readonly namespace: string;
}

interface ScopeParts {
  readonly view: KnownObjects;
  readonly concerns: Concern;
  /** The part of the function that this is; undefined: all of it. */
  readonly shard: Shard | undefined;
  /** As the store has them. */
  readonly cursors: readonly Cursor[];
  readonly queue: FunctionQueue;
  readonly maker: EventMaker;
  readonly commits: Commits;
  /** On which goes what lists take of the loop. */
  readonly time: Pick<LoopAccount, "charge">;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  /** Bodies of a list that may wait for its end, in bytes. */
  readonly listLimit: number;
  /** The last writes before the start may be missing. */
  readonly lostWrites: boolean;
}

/**
 * Where the record is kept that a scope of chosen namespaces has begun, and the last epoch of those of which nothing else is
 * kept. No source of it is of all namespaces.
 */
const wholeScope = "";

/** An object of a namespace that left, as its handler knows it. */
type LeavingObject = LastState & Pick<LaneEvent, "key" | "doubt">;

/** One trigger's sources: which namespaces it reads, and where it stands in each. */
export class TriggerScope {
  private readonly parts: ScopeParts;
  /** Both by namespace; a cursor is where the next subscription begins. */
  private readonly open = new Map<string, Subscription>();
  private readonly cursors: Map<string, Cursor>;
  private readonly guard = new MassDeletionGuard();
  /** In which it tells of namespaces that left. */
  private readonly turns: ObjectTurns;
  /** Namespaces that left, some of whose objects have no event yet. */
  private readonly leaving = new Set<string>();
  /** It was closed before all of them were delivered. */
  private isCutOff = false;
  /** Objects of a namespace that comes from now on are news. */
  private begun: boolean;
  /** It was said which namespaces it reads. */
  private retained = false;

  constructor(parts: ScopeParts) {
    this.parts = parts;
    this.turns = new ObjectTurns(parts.clock);
    this.cursors = new Map(parts.cursors.map((cursor) => [cursor.namespace, cursor]));
    this.begun = parts.cursors.some(({ initial }) => !initial);
    const { namespaces } = parts.view.trigger;
    if (namespaces.type === "names") {
      this.retain(namespaces.names);
      if (this.readsNothing) this.begin([]);
    } else if (namespaces.type === "all") this.leaveOthers(new Set([wholeScope]), new Set());
  }

  get subscriptions(): Iterable<Subscription> {
    return this.open.values();
  }

  /** The subscription that an object of this namespace ("" of none) comes from; undefined where the namespace is not read. */
  reads(namespace: string): Subscription | undefined {
    return this.open.get(this.parts.view.trigger.namespaces.type === "all" ? wholeScope : namespace);
  }

  /** Whether it knows which objects of a namespace there are, or reads none of it. */
  isSettled(namespace: string): boolean {
    const { namespaces } = this.parts.view.trigger;
    if (namespaces.type === "names" && !namespaces.names.includes(namespace)) return true;
    if (namespaces.type === "labels" && !this.retained) return false;
    return this.reads(namespace)?.isReady ?? namespaces.type === "labels";
  }

  /** All the namespaces that are named are other shards'. */
  get readsNothing(): boolean {
    const { view, shard } = this.parts;
    const { namespaces } = view.trigger;
    return shard !== undefined && namespaces.type === "names" && !namespaces.names.some((each) => shard.mayOwnIn(each));
  }

  /** Whether something that may have been handled without a record of it is still to come. */
  get isInDoubt(): boolean {
    if (this.turns.busy || this.isCutOff) return true;
    // Of a choice of namespaces that is not known yet, nothing has come.
    if (this.parts.view.trigger.namespaces.type === "labels" && !this.retained) return true;
    for (const { isInDoubt } of this.open.values()) if (isInDoubt) return true;
    return false;
  }

  /** The subscriber for one of its sources; the same one for the same source. */
  subscription({ selection, namespace }: SourceRef): Subscription {
    const existing = this.open.get(namespace);
    if (existing) return existing;
    // An object that is there again is compared with the state that its handler knows.
    if (this.leaving.has(namespace)) this.turns.finish();
    const { cursors: _, shard, ...parts } = this.parts;
    const cursor = this.beginning(this.cursors.get(namespace) ?? this.fresh(namespace, selection, !this.hasBegun));
    parts.view.enter(namespace, cursor.epoch);
    const wants = (each: string) => parts.view.trigger.key !== undefined || (shard?.mayOwnIn(each) ?? true);
    const made = new Subscription({ ...parts, cursor, selection, isWhole: shard === undefined, wants });
    this.open.set(namespace, made);
    parts.commits.cursorMoved(made);
    return made;
  }

  /**
   * Whether a complete list of the namespaces is to be believed, and `retain` called with it. The first list that
   * leaves out most of the objects known, as an empty answer does, is not. It is once another one 30 s later says so
   * too.
   */
  believes(namespaces: readonly string[]): boolean {
    const { view, clock } = this.parts;
    const kept = new Set(namespaces);
    let [deleted, staying] = [0, 0];
    // Deletions that are being delivered were believed before.
    const goes = (namespace: string) => !kept.has(namespace) && !this.leaving.has(namespace);
    for (const namespace of view.namespaces) if (goes(namespace)) for (const _ of view.live(namespace)) deleted++;
    // Once half of them stay, it does not matter how many more do.
    for (const namespace of kept) {
      for (const _ of staying < deleted ? view.live(namespace) : []) staying++;
    }
    return this.guard.believes(deleted, deleted + staying, clock.monotonic());
  }

  /**
   * Says which namespaces it reads, all of them. Subscriptions to others are closed, and objects known in others told of as
   * Deleted, `unselected`. For namespaces chosen by labels, called whenever the choice changes.
   */
  retain(namespaces: readonly string[]): void {
    const { view, lostWrites } = this.parts;
    const kept = new Set(namespaces);
    // What the runtime before told last may not be on record.
    const unread = lostWrites && !this.retained ? "unnoted" : "none";
    // What was outside before has been told of.
    const read = this.retained ? this.open.keys() : view.namespaces;
    this.retained = true;
    if (view.trigger.namespaces.type === "labels") this.begin(namespaces);
    const outside = [...read].filter((namespace) => !kept.has(namespace));
    const leaving: readonly LeavingObject[] = outside.flatMap((namespace) => {
      const source = this.open.get(namespace);
      return [...view.live(namespace)].map(([key, object]) => {
        const doubt = source?.doubtOf(object.resourceVersion) ?? unread;
        return { key, ...object, doubt };
      });
    });
    const epochs = this.leaveOthers(kept, new Set(leaving.map(({ key }) => namespaceOf(key))));
    for (const namespace of outside) this.leaving.add(namespace);
    this.turns.run(this.tellOf(leaving, epochs));
    this.turns.queue(() => {
      for (const namespace of outside) this.leaving.delete(namespace);
    });
  }

  /** Tells nothing any more: the next load does, of what is known. */
  close(): void {
    this.isCutOff = this.turns.busy !== undefined;
    this.turns.cancel();
  }

  private *tellOf(objects: readonly LeavingObject[], epochs: ReadonlyMap<string, number>): Generator<void> {
    const { view, maker, clock, queue } = this.parts;
    for (const { key, uid, resourceVersion, doubt } of objects) {
      const name = nameOf(key);
      const source = {
        type: "Deleted" as const,
        key,
        meta: { ...name, uid, resourceVersion },
        receivedAt: clock.monotonic(),
        flags: { synthetic: true, reason: "unselected", finalStateUnknown: true } as const,
        doubt,
      };
      const epoch = epochs.get(name.namespace) ?? epochs.get(wholeScope) ?? 0;
      queue.accept(maker.make(source, { view, epoch, isSelective: true }));
      yield;
    }
  }

  /** Only objects from before the first complete choice of namespaces are initial, and of those the ones that it names. */
  private get hasBegun(): boolean {
    if (!this.begun) for (const { isReady } of this.open.values()) if (isReady) this.begun = true;
    return this.begun;
  }

  /**
   * The first complete choice of namespaces: those in it were there when the function was deployed. That is put on record
   * even where it is empty, so that those which come later bring news.
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
   * Lets go of positions outside `kept`: what the view learns from now on, it learns of other sources, so none can be
   * resumed. It keeps those that had listed, and those of namespaces where objects are known. They begin anew and count
   * their epoch on, so that no event id is used again. Once nothing is known there, one record has the epoch of all of
   * them: namespaces come and go without end. Gives the epochs by namespace.
   */
  private leaveOthers(kept: ReadonlySet<string>, withObjects: ReadonlySet<string>): Map<string, number> {
    const { view, commits } = this.parts;
    const epochs = new Map<string, number>();
    view.retain(kept);
    for (const [namespace, subscription] of this.open) {
      if (kept.has(namespace)) continue;
      const cursor = subscription.leave();
      if (cursor) this.cursors.set(namespace, cursor);
      this.open.delete(namespace);
    }
    const inUse = view.namespaces;
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

  /** A position that begins anew counts on from every epoch in which its objects may have had ids. */
  private beginning(cursor: Cursor): Cursor {
    if (cursor.lowWaterMark !== undefined) return cursor;
    const others = cursor.namespace === wholeScope ? [...this.cursors.values()].map(({ epoch }) => epoch) : [];
    return { ...cursor, epoch: Math.max(cursor.epoch, this.lastEpoch, ...others) };
  }

  /** Of all namespaces of which nothing else is kept. */
  private get lastEpoch(): number {
    return this.cursors.get(wholeScope)?.epoch ?? 0;
  }

  /** Whether another position says that the scope has begun. */
  private isRecordedBeside(except: string): boolean {
    for (const [namespace, { initial }] of this.cursors) if (!initial && namespace !== except) return true;
    for (const { isReady } of this.open.values()) if (isReady) return true;
    return false;
  }

  private fresh(namespace: string, selection: string, initial: boolean): Cursor {
    const { lastEpoch: epoch } = this;
    return { view: this.parts.view.id, namespace, selection, lowWaterMark: undefined, epoch, initial };
  }

  private save(cursor: Cursor): void {
    this.cursors.set(cursor.namespace, cursor);
    this.parts.commits.cursorMoved({ cursor: () => cursor });
  }
}
