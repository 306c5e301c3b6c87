import type { Cursor, DeadLetter } from "../checkpoint/batch.ts";
import { replayedEvent } from "../checkpoint/dead-letters.ts";
import type { Clock } from "../clock.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { ResourceVersion } from "../resource-version.ts";
import { MassDeletionGuard } from "../watch/diff.ts";
import type { Commits } from "./commits.ts";
import type { EventMaker } from "./event-maker.ts";
import type { FunctionQueue } from "./function-queue.ts";
import type { Observer } from "./observer.ts";
import { nameOf, Subscription } from "./subscription.ts";
import type { View } from "./view.ts";

/** What a source is to a subscription. */
export interface SourceRef {
  /** Stands for the source's selectors, without its namespace; another value than the stored one means a list. */
  readonly selection: string;
  /** "" for all namespaces. */
  readonly namespace: string;
}

/** How a function does; times are epoch milliseconds. */
export interface FunctionStatus {
  readonly function: string;
  /** Every source it reads has listed or resumed. */
  readonly ready: boolean;
  /** Age of the oldest unfinished event in seconds; 0 when there is none. */
  readonly lagSeconds: number;
  /** Events that wait in memory, those in handlers, and those on disk. */
  readonly queued: number;
  readonly inFlight: number;
  readonly spilled: number;
  /** Lanes held by an event that is out of attempts, as the manifest asks. */
  readonly blockedLanes: number;
  /** When an attempt last ended. */
  readonly lastEvent: number | undefined;
  readonly deadLetters: number;
  /** Failed attempts since the start. */
  readonly failures: number;
  readonly subscriptions: readonly { readonly id: string; readonly lowWaterMark: ResourceVersion | undefined }[];
}

export interface FunctionParts {
  readonly manifest: FunctionManifest;
  /** By trigger. */
  readonly views: ReadonlyMap<string, View>;
  readonly cursors: readonly Cursor[];
  readonly queue: FunctionQueue;
  readonly maker: EventMaker;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly observer: Observer;
  /** The last writes before the start may be missing. */
  readonly suspect: boolean;
  readonly deadLetters: number;
  /** Takes a letter out of the store. */
  readonly drop: (letter: DeadLetter) => Promise<void>;
}

/** One loaded function. */
export class FunctionDispatch {
  readonly name: string;
  private readonly parts: FunctionParts;
  private readonly subscriptions = new Map<string, Subscription>();
  /** Where subscriptions begin, by `view/namespace`. */
  private readonly cursors: Map<string, Cursor>;
  private deadLetters: number;
  /** Triggers of which it was said which namespaces they read. */
  private readonly retained = new Set<string>();
  /** By trigger whose namespaces are chosen by labels. */
  private readonly guards = new Map<string, MassDeletionGuard>();

  constructor(parts: FunctionParts) {
    this.name = parts.manifest.name;
    this.parts = parts;
    this.cursors = new Map(parts.cursors.map((cursor) => [`${cursor.view}/${cursor.namespace}`, cursor]));
    this.deadLetters = parts.deadLetters;
    parts.queue.start();
    for (const { name, namespaces } of parts.manifest.triggers) {
      if (namespaces.type === "names") this.retain(name, namespaces.names);
      else if (namespaces.type === "all") this.leave(this.view(name), new Set([""]), new Set());
    }
  }

  /** The subscriber for one of a trigger's sources; the same one for the same source. */
  subscription(trigger: string, { selection, namespace }: SourceRef): Subscription {
    const { maker, commits, clock, observer, suspect, queue } = this.parts;
    const view = this.view(trigger);
    const key = `${view.id}/${namespace}`;
    const existing = this.subscriptions.get(key);
    if (existing) return existing;
    const initial = !this.hasListed(view);
    const fresh = { view: view.id, namespace, selection, lowWaterMark: undefined, epoch: 0, initial };
    const cursor = this.cursors.get(key) ?? fresh;
    view.enter(namespace, cursor.epoch);
    const made = new Subscription({ view, cursor, selection, suspect, maker, commits, clock, observer, queue });
    this.subscriptions.set(key, made);
    commits.cursorMoved(made);
    return made;
  }

  /**
   * Whether a complete list of a trigger's namespaces is to be believed, and `retain` called with it: not the first that
   * leaves out most of the objects known, as an empty answer does, until another one 30 s later says so too.
   */
  believes(trigger: string, namespaces: readonly string[]): boolean {
    const kept = new Set(namespaces);
    let [known, deleted] = [0, 0];
    for (const [key] of this.view(trigger).live("")) {
      known++;
      if (!kept.has(nameOf(key).namespace)) deleted++;
    }
    const guard = this.guards.get(trigger) ?? new MassDeletionGuard();
    this.guards.set(trigger, guard);
    return guard.believes(deleted, known, this.parts.clock.monotonic());
  }

  /**
   * Says which namespaces a trigger reads, all of them. Subscriptions to others are closed, and objects known in others
   * told of as Deleted, `unselected`. For namespaces chosen by labels, called whenever the choice changes.
   */
  retain(trigger: string, namespaces: readonly string[]): void {
    const { maker, clock, queue } = this.parts;
    const view = this.view(trigger);
    const kept = new Set(namespaces);
    // What the runtime before told last may not be on record.
    const doubted = this.parts.suspect && !this.retained.has(trigger);
    this.retained.add(trigger);
    const leaving = [...view.live("")].filter(([key]) => !kept.has(nameOf(key).namespace));
    const epochs = this.leave(view, kept, new Set(leaving.map(([key]) => nameOf(key).namespace)));
    for (const [key, { uid, resourceVersion }] of leaving) {
      const name = nameOf(key);
      const event = maker.make({
        view,
        type: "Deleted",
        key,
        meta: { ...name, uid, resourceVersion },
        receivedAt: clock.monotonic(),
        epoch: epochs.get(name.namespace) ?? epochs.get("") ?? 0,
        selective: true,
        flags: { synthetic: true, reason: "unselected", finalStateUnknown: true },
        redelivered: doubted,
      });
      queue.accept(event);
    }
  }

  /**
   * Once the attempts that run have ended, on the old code, `swap` puts the new in place; none begins meanwhile. Where
   * `swap` fails, so does this, and the old code goes on.
   */
  async replace(manifest: FunctionManifest, usesOldObject: boolean, swap: () => Promise<void>): Promise<void> {
    const { queue } = this.parts;
    await queue.pause();
    try {
      await swap();
    } catch (error) {
      queue.resume();
      throw error;
    }
    queue.resumeWith(manifest, usesOldObject);
  }

  /** Until `release` events are taken and kept, and no attempt begins. */
  hold(): void {
    this.parts.queue.hold();
  }

  /** Goes on; what waits for a retry is tried at once. */
  release(): void {
    this.parts.queue.release();
  }

  /** Whether something that may have been handled without a record of it is still to come, or waits for its turn. */
  get isSuspect(): boolean {
    const { suspect, queue, maker, manifest } = this.parts;
    if (!suspect) return false;
    const subscriptions = [...this.subscriptions.values()];
    if (subscriptions.length === 0 || subscriptions.some(({ isSuspect }) => isSuspect)) return true;
    // Of a choice of namespaces that is not known yet, nothing has come.
    if (manifest.triggers.some(({ name, namespaces: { type } }) => type === "labels" && !this.retained.has(name)))
      return true;
    return queue.holdsDoubted(maker.firstSequence);
  }

  /** Takes nothing any more, and begins nothing. Resolves when nothing runs. */
  async stop(): Promise<void> {
    for (const subscription of this.subscriptions.values()) subscription.close();
    await this.parts.queue.stop();
  }

  /** Puts a dead letter of this function back at the end of its lane. */
  async replay(letter: DeadLetter): Promise<void> {
    const { queue, maker, commits } = this.parts;
    commits.dropDeadLetter(letter.letter);
    queue.acceptSpilled(replayedEvent(letter, maker.nextSequence()));
    this.deadLetters--;
    await commits.sync();
  }

  /** Past what waits for a commit: a store that is full takes nothing else, and this is what makes room in it. */
  async drop(letter: DeadLetter): Promise<void> {
    await this.parts.drop(letter);
    this.deadLetters--;
  }

  status(): FunctionStatus {
    const { clock, queue } = this.parts;
    const { oldestAt, blocked, letters, lastEventAt, ...counts } = queue.counts();
    const subscriptions = [...this.subscriptions.values()];
    return {
      function: this.name,
      ready: subscriptions.length > 0 && subscriptions.every(({ isReady }) => isReady),
      lagSeconds: oldestAt === undefined ? 0 : Math.max(0, clock.now() - oldestAt) / 1000,
      ...counts,
      blockedLanes: blocked,
      lastEvent: lastEventAt,
      deadLetters: this.deadLetters + letters,
      subscriptions: subscriptions.map(({ id, lowWaterMark }) => ({ id, lowWaterMark })),
    };
  }

  /** Only objects from before the trigger's first complete list are initial; a namespace that joins later brings news. */
  private hasListed(view: View, except?: string): boolean {
    for (const [key, cursor] of this.cursors) {
      if (cursor.view === view.id && !cursor.initial && key !== except) return true;
    }
    for (const [key, { isReady }] of this.subscriptions) if (isReady && key.startsWith(`${view.id}/`)) return true;
    return false;
  }

  /**
   * Lets go of a view's positions outside `kept`: what the view learns from now on, it learns of other sources, so none
   * can be resumed. It keeps those that had listed, and those of namespaces where objects are known, to begin anew and
   * count their epoch on, so that no event id is used again. Gives the epochs by namespace.
   */
  private leave(view: View, kept: ReadonlySet<string>, withObjects: ReadonlySet<string>): Map<string, number> {
    const { commits } = this.parts;
    const epochs = new Map<string, number>();
    view.retain(kept);
    for (const [key, subscription] of this.subscriptions) {
      if (!key.startsWith(`${view.id}/`) || kept.has(subscription.namespace)) continue;
      const cursor = subscription.leave();
      if (cursor) this.cursors.set(key, cursor);
      this.subscriptions.delete(key);
    }
    for (const [key, cursor] of this.cursors) {
      if (cursor.view !== view.id || kept.has(cursor.namespace)) continue;
      epochs.set(cursor.namespace, cursor.epoch);
      if (withObjects.has(cursor.namespace) || cursor.lowWaterMark !== undefined) {
        const anew = { ...cursor, lowWaterMark: undefined, initial: false };
        this.cursors.set(key, anew);
        commits.cursorMoved({ cursor: () => anew });
      } else if (cursor.epoch === 0 && this.hasListed(view, key)) {
        this.cursors.delete(key);
        commits.dropCursor(cursor.view, cursor.namespace);
      }
    }
    return epochs;
  }

  private view(trigger: string): View {
    const view = this.parts.views.get(trigger);
    if (!view) throw new TypeError(`function ${this.name} has no trigger ${trigger}`);
    return view;
  }
}
