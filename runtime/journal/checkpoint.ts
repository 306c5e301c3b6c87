import type { WatchfireError } from "../base/errors.ts";
import {
  type Batch,
  type Cursor,
  type DeadLetter,
  type DeadLetterSummary,
  emptyEntries,
  emptyLetter,
  type JournalEntries,
  type JournalRow,
  type KnownBody,
  type KnownIdentity,
  type Spilled,
  type SpillHeader,
  type ViewRow,
} from "./batch.ts";
import {
  type DeadLetterCut,
  type DeadLetterLimit,
  DeadLetterStats,
  type DeadLetterStock,
  sizeOfLetter,
} from "./dead-letter-stats.ts";
import type { Journal, PreviousEnd } from "./journal.ts";

/** The knowledge of a trigger about its resource's objects: one per (function, trigger, resource), shared by its cursors. */
export interface StoredView extends Omit<ViewRow, "retiredAt"> {
  readonly cursors: readonly Cursor[];
}

/** The fields of a view's record that may change. */
export type ViewRecord = Pick<StoredView, "id" | "trigger" | "identity" | "manifest">;

/** A batch in the form that is appended. */
interface Sealed {
  readonly entries: JournalEntries;
  /** Of its dead letters. */
  readonly ids: readonly string[];
  readonly cuts: readonly DeadLetterCut[];
}

/**
 * Positions, known objects, waiting events and dead letters, over the journal that has them. Reads see every batch whose
 * `commit` resolved. Failures are `WatchfireError`s of the registry's checkpoint section.
 */
export class Checkpoint<J extends Journal = Journal> {
  readonly journal: J;
  /** Whether a function's queue may wait in it. */
  readonly holdsQueues: boolean;
  /** Whether bodies of known objects are written. */
  readonly writesBodies: boolean;
  private readonly letters: DeadLetterStats;
  private nextView: number;
  private nextLetter: number;
  /** Views as they were last to be written, while it is not known whether they are. */
  private readonly unsure = new Map<number, ViewRow>();
  /** Batches that may be on record though their commit failed. A retry waits for them. */
  private readonly unanswered = new WeakMap<Batch, Sealed>();

  constructor(journal: J) {
    this.journal = journal;
    this.holdsQueues = journal.capabilities.queues;
    this.writesBodies = journal.capabilities.bodies;
    this.letters = new DeadLetterStats(() => journal.room.letters);
    this.nextView = journal.state.nextView;
    this.nextLetter = journal.state.nextLetter;
    this.countLetters();
  }

  get previousEnd(): PreviousEnd {
    return this.journal.previousEnd;
  }

  /** How many bytes of events may wait in it. */
  get spillLimit(): number {
    return this.journal.room.spill;
  }

  /** Why nothing can be written at present. */
  get trouble(): WatchfireError | undefined {
    return this.journal.trouble;
  }

  /** The uid of the kube-system namespace whose cluster the positions belong to; undefined before the first. */
  async cluster(): Promise<string | undefined> {
    return this.journal.state.cluster;
  }

  setCluster(uid: string): Promise<void> {
    return this.journal.append({ ...emptyEntries, cluster: uid });
  }

  /** Functions that were paused by a command, and since when (epoch milliseconds). */
  async paused(): Promise<ReadonlyMap<string, number>> {
    return new Map(this.journal.state.paused);
  }

  /** `since` undefined: it is not paused any more. On record once `sync` has resolved. */
  setPaused(functionName: string, since: number | undefined): Promise<void> {
    return this.journal.append({ ...emptyEntries, paused: [[functionName, since]] });
  }

  /** Live views; of one function, or of all. */
  async views(functionName?: string): Promise<StoredView[]> {
    return this.viewRows()
      .filter((view) => view.retiredAt === undefined)
      .filter((view) => functionName === undefined || view.function === functionName)
      .map((view) => this.stored(view));
  }

  /** Finds or creates a view. A retired one is restored. */
  async openView(functionName: string, trigger: string, resource: string): Promise<StoredView> {
    const isIt = (view: ViewRow) =>
      view.function === functionName && view.trigger === trigger && view.resource === resource;
    const found = this.viewRows().find(isIt);
    if (found && found.retiredAt === undefined && !this.unsure.has(found.id)) return this.stored(found);
    const made = { id: 0, function: functionName, trigger, resource, identity: trigger, manifest: undefined };
    const view = { ...(found ?? { ...made, id: this.nextView++ }), retiredAt: undefined };
    await this.putViews([view]);
    return this.stored(view);
  }

  /** Changes what is on record of views, all at once: two may swap names. No other view of the function and resource has one of them. */
  async recordViews(records: readonly ViewRecord[]): Promise<void> {
    await this.changeViews(records, (view, { trigger, identity, manifest }) => ({
      ...view,
      trigger,
      identity,
      manifest,
    }));
  }

  /** Views that were retired and can still come back. `before`: only those that were retired before it (epoch milliseconds). */
  async retiredViews(before = Number.POSITIVE_INFINITY): Promise<StoredView[]> {
    return this.retiredBefore(before).map((view) => this.stored(view));
  }

  /** Marks views as no longer used, from `at` (epoch milliseconds) on. `purge` deletes them. */
  async retire(views: readonly number[], at: number): Promise<void> {
    await this.changeViews(
      views.map((id) => ({ id })),
      (view) => ({ ...view, retiredAt: view.retiredAt ?? at }),
    );
  }

  /**
   * Deletes, with all they hold and what of them had begun, the views that were retired before `before` (epoch
   * milliseconds). Returns how many. No other view is given the id of one of them.
   */
  async purge(before: number): Promise<number> {
    const goneViews = this.retiredBefore(before).map(({ id }) => id);
    if (goneViews.length > 0) await this.journal.append({ ...emptyEntries, goneViews });
    for (const id of goneViews) this.unsure.delete(id);
    return goneViews.length;
  }

  /** Calls `visit` for each known object of a view. */
  known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void> {
    return this.journal.known(view, visit);
  }

  /** The last body stored for an object. */
  body(view: number, key: string): Promise<KnownBody | undefined> {
    return this.journal.body(view, key);
  }

  /** Attempts that had begun, by row. */
  async begun(): Promise<JournalRow[]> {
    return [...this.journal.state.begun.values()];
  }

  /**
   * What a function has in its spill after `sequence`, by sequence, without bodies. Default: all. Read as it is iterated, in one
   * turn of the event loop; an array is read already. `spillByTurns` reads it in many.
   */
  async spillHeaders(functionName: string, after = Number.NEGATIVE_INFINITY): Promise<Iterable<SpillHeader>> {
    return this.journal.headers("spill", { function: functionName, after });
  }

  /** The next spilled events after `sequence`, by sequence; at most `limit`, and none after `bytes` of bodies. Default: however many. */
  spilled(functionName: string, after: number, limit: number, bytes?: number): Promise<readonly Spilled[]> {
    return this.journal.page("spill", { function: functionName, after, limit }, bytes);
  }

  /** Notes of all that a function has in its spill that a handler may have had it. */
  doubtSpilled(functionName: string): Promise<void> {
    return this.journal.append({ ...emptyEntries, doubted: functionName });
  }

  /** Oldest first, a page at a time. */
  async deadLetters(page: DeadLetterPage = {}): Promise<DeadLetterSummary[]> {
    const { after = "0", limit = deadLetterPageSize } = page;
    return [...this.journal.headers("letters", { function: page.function, after: Number(after), limit })];
  }

  async deadLetter(letter: string): Promise<DeadLetter | undefined> {
    if (!/^\d{1,15}$/.test(letter)) return undefined;
    const [next] = await this.journal.page("letters", { after: Number(letter) - 1, limit: 1 });
    return next?.letter === letter ? next : undefined;
  }

  /** Bounds a function's dead letters from now on: what goes beyond the limit goes from the journal. */
  async limitDeadLetters(functionName: string, limit: DeadLetterLimit): Promise<void> {
    this.letters.limit(functionName, limit);
    const cuts = this.letters.cuts();
    if (cuts.length === 0) return;
    try {
      await this.journal.append({
        ...emptyEntries,
        droppedDeadLetters: cuts.flatMap(({ letters }) => letters),
        emptiedDeadLetters: cuts.flatMap(({ bodies }) => bodies),
      });
    } catch (error) {
      this.countLetters();
      throw error;
    }
    this.letters.counted(cuts);
  }

  /** How many a function has, and what they take; known without reading. */
  deadLetterStock(functionName: string): DeadLetterStock {
    return this.letters.stock(functionName);
  }

  /** All of the batch or nothing of it. Returns the ids of its dead letters, in their order. */
  async commit(batch: Batch): Promise<readonly string[]> {
    const sealed = this.unanswered.get(batch) ?? this.seal(batch);
    try {
      await this.journal.append(sealed.entries);
    } catch (error) {
      this.unanswered.set(batch, sealed);
      throw error;
    }
    if (sealed.cuts.length > 0) this.letters.counted(sealed.cuts);
    return sealed.ids;
  }

  /** Resolves when all that was committed outlives this process, which some journals see to only now and then. */
  sync(): Promise<void> {
    return this.journal.sync();
  }

  /** `clean`: everything known was committed, and nothing was in flight. */
  close(clean: boolean): Promise<void> {
    return this.journal.close(clean);
  }

  private viewRows(): ViewRow[] {
    const { views } = this.journal.state;
    const made = [...this.unsure.values()].filter(({ id }) => !views.has(id));
    return [...[...views.values()].map((view) => this.unsure.get(view.id) ?? view), ...made];
  }

  private retiredBefore(before: number): ViewRow[] {
    return this.viewRows().filter((view) => (view.retiredAt ?? before) < before);
  }

  private stored({ id, function: name, trigger, resource, identity, manifest }: ViewRow): StoredView {
    const cursors = this.journal.state.views.get(id)?.cursors.values() ?? [];
    return { id, function: name, trigger, resource, identity, manifest, cursors: [...cursors] };
  }

  private async changeViews<T extends { readonly id: number }>(
    changes: readonly T[],
    change: (view: ViewRow, to: T) => ViewRow,
  ): Promise<void> {
    const rows = new Map(this.viewRows().map((view) => [view.id, view]));
    const changed = changes.flatMap((to) => {
      const view = rows.get(to.id);
      return view ? change(view, to) : [];
    });
    if (changed.length > 0) await this.putViews(changed);
  }

  private async putViews(views: readonly ViewRow[]): Promise<void> {
    for (const view of views) this.unsure.set(view.id, view);
    const put = [...this.unsure.values()];
    await this.journal.append({ ...emptyEntries, views: put });
    for (const view of put) if (this.unsure.get(view.id) === view) this.unsure.delete(view.id);
  }

  private countLetters(): void {
    this.letters.reset();
    for (const [name, letter, size] of this.journal.letterSizes()) this.letters.add(name, letter, size);
  }

  /** Numbers its dead letters, and makes room for them. */
  private seal(batch: Batch): Sealed {
    const dropped = [...batch.droppedDeadLetters];
    const emptied: string[] = [];
    for (const letter of dropped) this.letters.remove(letter);
    const kept = new Map<string, DeadLetter>();
    const ids: string[] = [];
    const cuts = batch.deadLetters.flatMap((event) => {
      const size = sizeOfLetter(event, this.journal.capabilities.packed);
      const keeps = this.letters.admit(event.function, size);
      const gone = this.letters.cuts();
      for (const letter of gone.flatMap(({ letters }) => letters)) if (!kept.delete(letter)) dropped.push(letter);
      for (const letter of gone.flatMap(({ bodies }) => bodies)) {
        const before = kept.get(letter);
        if (before) kept.set(letter, emptyLetter(before, letter));
        else emptied.push(letter);
      }
      const letter = String(this.nextLetter++);
      ids.push(letter);
      kept.set(letter, keeps ? { ...event, letter, bodyDropped: false } : emptyLetter(event, letter));
      this.letters.add(event.function, letter, keeps ? size : { ...size, body: 0 });
      return gone;
    });
    const deadLetters = [...kept.values()];
    const { views, goneViews, paused } = emptyEntries;
    const letters = { deadLetters, droppedDeadLetters: dropped, emptiedDeadLetters: emptied };
    return { entries: { ...batch, ...letters, views, goneViews, paused }, ids, cuts };
  }
}

/** The stores of positions: a file, Secrets, or NATS JetStream. */
export const storeKinds = ["sqlite", "kubernetes", "nats"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Which dead letters to list. */
export interface DeadLetterPage {
  /** Only this function's; without it all. */
  readonly function?: string | undefined;
  /** Begins after this letter; without it at the oldest. */
  readonly after?: string | undefined;
  /** Default and most: `deadLetterPageSize`. */
  readonly limit?: number;
}

/** Dead letters that are in memory at once, without their bodies. */
export const deadLetterPageSize = 1000;

/** How long a removed function's positions are kept, so that putting it back loses nothing: seven days. */
export const retirementMs = 7 * 24 * 60 * 60 * 1000;
