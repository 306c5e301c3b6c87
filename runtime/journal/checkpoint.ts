import { setImmediate as nextTurn } from "node:timers/promises";
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

/** A trigger's record of a resource's objects: one for each (function, trigger, resource), shared by its cursors. */
export interface StoredView extends Omit<ViewRow, "retiredAt"> {
  readonly cursors: readonly Cursor[];
}

/** The mutable fields of a view's record. */
export type ViewRecord = Pick<StoredView, "id" | "trigger" | "identity" | "manifest">;

/** A batch in the form in which it is appended. */
interface Sealed {
  readonly entries: JournalEntries;
  /** Ids of the batch's dead letters. */
  readonly ids: readonly string[];
  readonly cuts: readonly DeadLetterCut[];
}

/**
 * Store of checkpoints, known objects, waiting events and dead letters, on top of a journal. Reads see every batch whose `commit`
 * resolved. Fails with the `WatchfireError`s in the registry's checkpoint section.
 */
export class Checkpoint<J extends Journal = Journal> {
  readonly journal: J;
  /** True if a function's queue may be stored in the journal. */
  readonly holdsQueues: boolean;
  /** True if bodies of known objects are stored. */
  readonly writesBodies: boolean;
  private readonly letters: DeadLetterStats;
  private nextView: number;
  private nextLetter: number;
  /** The latest version of each view whose write failed, so that it may or may not be stored. */
  private readonly unsure = new Map<number, ViewRow>();
  /** Batches whose commit failed but that may be stored nevertheless. A retry of the same batch waits for that write. */
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

  /** Limit of waiting events, in bytes. */
  get spillLimit(): number {
    return this.journal.room.spill;
  }

  /** Why writes are refused at present, if they are. */
  get trouble(): WatchfireError | undefined {
    return this.journal.trouble;
  }

  /** The uid of the kube-system namespace of the cluster that the checkpoints belong to. `undefined` before the first start. */
  async cluster(): Promise<string | undefined> {
    return this.journal.state.cluster;
  }

  setCluster(uid: string): Promise<void> {
    return this.journal.append({ ...emptyEntries, cluster: uid });
  }

  /** Returns the functions that a command paused, and since when (epoch milliseconds). */
  async paused(): Promise<ReadonlyMap<string, number>> {
    return new Map(this.journal.state.paused);
  }

  /** Records that a function is paused, or resumed if `since` is undefined. Durable once `sync` has resolved. */
  setPaused(functionName: string, since: number | undefined): Promise<void> {
    return this.journal.append({ ...emptyEntries, paused: [[functionName, since]] });
  }

  /** Returns the live views of one function, or of all. */
  async views(functionName?: string): Promise<StoredView[]> {
    return this.viewRows()
      .filter((view) => view.retiredAt === undefined)
      .filter((view) => functionName === undefined || view.function === functionName)
      .map((view) => this.stored(view));
  }

  /** Finds or creates a view. Restores a retired one. */
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

  /**
   * Updates records of views atomically, because two views may swap names. The caller ensures that no other view of the same
   * function and resource has one of the names.
   */
  async recordViews(records: readonly ViewRecord[]): Promise<void> {
    await this.changeViews(records, (view, { trigger, identity, manifest }) => ({
      ...view,
      trigger,
      identity,
      manifest,
    }));
  }

  /** Returns the retired views that can still be restored. `before`: only views retired before this time (epoch milliseconds). */
  async retiredViews(before = Number.POSITIVE_INFINITY): Promise<StoredView[]> {
    return this.retiredBefore(before).map((view) => this.stored(view));
  }

  /**
   * Returns the functions without a view in use, from memory: since when (epoch milliseconds), or `undefined` for one of which
   * only dead letters are left.
   */
  suspended(): ReadonlyMap<string, number | undefined> {
    const since = new Map<string, number | undefined>(this.letters.functions.map((name) => [name, undefined]));
    const views = this.viewRows();
    for (const { function: name, retiredAt = 0 } of views) since.set(name, Math.max(since.get(name) ?? 0, retiredAt));
    for (const { function: name, retiredAt } of views) if (retiredAt === undefined) since.delete(name);
    return since;
  }

  /** Marks views as not in use from `at` (epoch milliseconds) on. `purge` deletes them. */
  async retire(views: readonly number[], at: number): Promise<void> {
    await this.changeViews(
      views.map((id) => ({ id })),
      (view) => ({ ...view, retiredAt: view.retiredAt ?? at }),
    );
  }

  /**
   * Deletes views retired before `before` (epoch milliseconds), with everything they hold and their begun attempts. A function
   * whose last view is deleted loses its own state as well. Returns how many views there were. Their ids are never reused.
   */
  async purge(before: number): Promise<number> {
    const goneViews = this.retiredBefore(before).map(({ id }) => id);
    if (goneViews.length > 0) {
      const state = this.journal.state.withoutViews(this.viewRows().filter(({ id }) => !goneViews.includes(id)));
      await this.journal.append({ ...emptyEntries, goneViews, state });
    }
    for (const id of goneViews) this.unsure.delete(id);
    return goneViews.length;
  }

  /** Returns the entries of a function's own state: JSON text by key, from memory. */
  ownState(functionName: string): ReadonlyMap<string, string> {
    return this.journal.state.own.get(functionName) ?? new Map();
  }

  /** Calls `visit` for each known object of a view. */
  known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void> {
    return this.journal.known(view, visit);
  }

  /** Returns the last body stored for an object. */
  body(view: number, key: string): Promise<KnownBody | undefined> {
    return this.journal.body(view, key);
  }

  /** Returns the attempts that had begun, by row. */
  async begun(): Promise<JournalRow[]> {
    return [...this.journal.state.begun.values()];
  }

  /**
   * Returns a function's spill after `sequence`, ordered by sequence, without bodies. Default: all of it. Rows are read during
   * the iteration, within one turn of the event loop; an array has been read already. `spillByTurns` spreads the read over many
   * turns.
   */
  async spillHeaders(functionName: string, after = Number.NEGATIVE_INFINITY): Promise<Iterable<SpillHeader>> {
    return this.journal.headers("spill", { function: functionName, after });
  }

  /**
   * Returns the next spilled events after `sequence`, ordered by sequence: at most `limit`, and no further one once `bytes` of
   * bodies are read. Default of `bytes`: unlimited.
   */
  spilled(functionName: string, after: number, limit: number, bytes?: number): Promise<readonly Spilled[]> {
    return this.journal.page("spill", { function: functionName, after, limit }, bytes);
  }

  /** Marks all of a function's spill as possibly delivered to a handler. */
  markSpillPossiblyDelivered(functionName: string): Promise<void> {
    return this.journal.append({ ...emptyEntries, possiblyDelivered: functionName });
  }

  /** Returns one page of dead letters, oldest first. */
  async deadLetters(page: DeadLetterPage = {}): Promise<DeadLetterSummary[]> {
    const { after = "0", limit = deadLetterPageSize } = page;
    return [...this.journal.headers("letters", { function: page.function, after: Number(after), limit })];
  }

  async deadLetter(letter: string): Promise<DeadLetter | undefined> {
    if (!/^\d{1,15}$/.test(letter)) return undefined;
    const [next] = await this.journal.page("letters", { after: Number(letter) - 1, limit: 1 });
    return next?.letter === letter ? next : undefined;
  }

  /** Sets the limit of a function's dead letters, and deletes those that exceed it. */
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

  /** Returns the number of a function's dead letters and their size, from memory. */
  deadLetterStock(functionName: string): DeadLetterStock {
    return this.letters.stock(functionName);
  }

  /** Commits the batch atomically. Returns the ids of its dead letters, in their order. */
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

  /** Resolves once every commit so far is durable. Some journals make commits durable only at intervals. */
  sync(): Promise<void> {
    return this.journal.sync();
  }

  /** Closes the journal. `clean`: everything known is committed, and no event was in flight. */
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

  /** Numbers the batch's dead letters, and makes room for them. */
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

/** The kinds of stores: a file, Secrets, or NATS JetStream. */
export const storeKinds = ["sqlite", "kubernetes", "nats"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Selects which dead letters to list. */
export interface DeadLetterPage {
  /** Only letters of this function. Default: all functions. */
  readonly function?: string | undefined;
  /** Begins after this letter. Default: at the oldest. */
  readonly after?: string | undefined;
  /** Maximum number of letters. Default and upper limit: `deadLetterPageSize`. */
  readonly limit?: number;
}

/** Maximum number of dead letters, without bodies, that are in memory at once. */
export const deadLetterPageSize = 1000;

/** How long the checkpoints of a removed function are kept, so that restoring the function loses nothing: seven days. */
export const retirementMs = 7 * 24 * 60 * 60 * 1000;

/** Rows read in one turn of the event loop, about 5 ms. A function may have a row for each of 100,000 objects. */
export const rowsInATurn = 256;

/**
 * Reads a function's spill, ordered by sequence, without bodies, and yields to the event loop in between. The spill must not be
 * written meanwhile.
 */
export async function* spillByTurns(
  store: Pick<Checkpoint, "spillHeaders">,
  functionName: string,
): AsyncIterable<SpillHeader> {
  for (let after = Number.NEGATIVE_INFINITY, count = rowsInATurn; count === rowsInATurn; ) {
    count = 0;
    const headers = await store.spillHeaders(functionName, after);
    for (const header of headers) {
      yield header;
      after = header.sequence;
      if (++count < rowsInATurn) continue;
      await nextTurn();
      // A store in memory has sorted all rows already and continues. Any other store is queried again from here.
      if (!Array.isArray(headers)) break;
      count = 0;
    }
  }
}
