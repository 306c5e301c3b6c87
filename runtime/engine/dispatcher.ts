import type { WatchfireError } from "../base/errors.ts";
import type { ResourceVersion } from "../base/resource-version.ts";
import type { DeadLetter } from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import type { DeadLetterStock } from "../journal/dead-letter-stats.ts";
import { OfflineReplayer, type Replayer } from "../journal/dead-letters.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { WrittenBodies } from "./account/loop-time.ts";
import { Commits, type DeadLetterCommand } from "./commit/commits.ts";
import type { BodyRoom } from "./commit/deferred-rows.ts";
import type { Look } from "./delivery/delivery.ts";
import type { FunctionDispatch, FunctionStatus } from "./function-dispatch.ts";
import { loadFunction } from "./load-function.ts";
import { StartedBefore } from "./redelivery/started-before.ts";
import { Retirement } from "./retirement.ts";
import type { KnownObjects } from "./state/known-objects.ts";
import type { Shard } from "./state/sharding.ts";
import { Subscribers } from "./state/subscribers.ts";
import { Budget, heapQuarter } from "./work/budget.ts";
import { FairScheduler } from "./work/fair-scheduler.ts";
import type { SharedParts } from "./work/reconciling.ts";
import { defaultMemoryLimit, type MemoryLimit } from "./work/spill.ts";
import { WaitingOnDisk } from "./work/waiting-on-disk.ts";

/** The time for which a drain, and a removal, wait for the last commit, in milliseconds. */
const saveMs = 3_000;

/** The counts on record of a function that is not loaded. */
export interface UnloadedCounts {
  /** Events and keys on disk, and the age of the oldest. Absent while they are counted. */
  readonly waiting?: { readonly count: number; readonly ageSeconds: number };
  readonly letterStock: DeadLetterStock;
}

interface DispatcherOptions extends SharedParts {
  readonly store: Checkpoint;
  /** The limit on each function's events in memory, beyond which they go to disk. Default: 1000 events or 32 MiB. */
  readonly memoryLimit?: MemoryLimit;
  /** The limit on the bytes of all functions' bodies in memory. Default: a quarter of the heap's limit. */
  readonly memoryBudget?: number;
  /** The memory budget shared with other dispatchers of this process. Default: not shared. */
  readonly memory?: Budget;
  /** The room for last bodies shared with them. Default: not shared. */
  readonly bodyRoom?: BodyRoom;
  /** The scheduler shared with them. Default: not shared. */
  readonly scheduler?: FairScheduler;
  /** Prefix of a dead letter's id in the form that commands accept. Default: empty. */
  readonly letterPrefix?: string | undefined;
  /** The commands that the log shows with a dead letter. Default: `watchfire dead-letters`, without options. */
  readonly letterCommand?: DeadLetterCommand | undefined;
  /** Called before each commit; once it returns false, nothing is written or dispatched any more. Default: always true. */
  readonly permitted?: () => boolean;
  /** Fetches an object whose body the store does not have from the API server. Default: always rejects. */
  readonly look?: Look;
  /** Called once when another runtime has taken over the store; nothing is dispatched any more. */
  readonly onLost?: (error: WatchfireError) => void;
}

/** Why a function begins no attempt: its account lacks a right, or its manifest, its set or a command pauses it. */
type HoldReason = "forbidden" | "manifest" | "set" | "command";

/**
 * Delivers the changes that sources receive to handlers, at least once and in order per object, through the functions' lanes, and
 * maintains the checkpoints. The caller opens and closes the store; nothing else may write to it meanwhile.
 */
export class Dispatcher implements Replayer {
  private readonly options: DispatcherOptions;
  private readonly commits: Commits;
  private readonly written: WrittenBodies;
  private startedBefore: StartedBefore;
  private draining = false;
  private readonly functions = new Map<string, FunctionDispatch>();
  /** The reasons for which functions are held. */
  private readonly held = new Map<string, ReadonlySet<HoldReason>>();
  /** Functions that were removed while the store accepted nothing, until their last writes are saved. */
  private readonly unsaved = new Map<string, Promise<void>>();
  /** Views of functions that were unloaded without possible redeliveries. */
  private readonly settled = new Set<number>();
  /** Functions whose events on disk have been marked as possible redeliveries, after a power loss. */
  private readonly marked = new Set<string>();
  private readonly offline: Replayer;
  private readonly onDisk: WaitingOnDisk;
  /** Replays of dead letters of functions that are not loaded, until they are on disk. */
  private readonly returning = new Map<string, Promise<boolean>>();
  /** Functions that are being loaded from the store. */
  private readonly loading = new Map<string, Promise<FunctionDispatch>>();
  /** Functions that are being unloaded. */
  private readonly removing = new Map<string, Promise<unknown>>();
  private readonly subscribers = new Subscribers<KnownObjects>();
  private readonly scheduler: FairScheduler;
  private readonly retirement: Retirement;
  private readonly budgets: { readonly memory: Budget; readonly disk: Budget };

  private constructor(
    options: DispatcherOptions,
    commits: Commits,
    written: WrittenBodies,
    startedBefore: StartedBefore,
    retirement: Retirement,
  ) {
    this.options = options;
    this.retirement = retirement;
    this.commits = commits;
    this.written = written;
    this.startedBefore = startedBefore;
    this.offline = new OfflineReplayer(options.store, (batch) => commits.past(batch));
    this.onDisk = new WaitingOnDisk(options.store);
    const { store, memoryBudget = heapQuarter(), memory = new Budget(() => memoryBudget) } = options;
    this.scheduler = options.scheduler ?? new FairScheduler(options.clock);
    this.budgets = { memory, disk: new Budget(() => store.spillLimit) };
  }

  /**
   * Reads which attempts had begun when the store was last used, and deletes the checkpoints of functions that were removed long
   * ago.
   */
  static async open(options: DispatcherOptions): Promise<Dispatcher> {
    const { store, clock, observer, log, bodyRoom, permitted, onLost = () => {} } = options;
    const { letterPrefix, letterCommand } = options;
    const retirement = new Retirement(options);
    await retirement.purge();
    const rows = await store.begun();
    const started = await StartedBefore.read(store, rows);
    const firstJournalRow = Math.max(0, ...rows.map(({ id }) => id)) + 1;
    const reporting = { observer, log, letterPrefix, letterCommand, onLost };
    const written = new WrittenBodies();
    const commits = new Commits({ store, clock, ...reporting, bodyRoom, written, firstJournalRow, permitted });
    if (rows.length > 0)
      commits.carryJournal(
        rows.map(({ id }) => id),
        started,
      );
    return new Dispatcher(options, commits, written, started, retirement);
  }

  /** Loads a function, or one shard of it. `usesOldObject` says whether its handler reads the previous object. */
  async function(
    manifest: FunctionManifest,
    options: { readonly usesOldObject: boolean; readonly shard?: Shard | undefined },
  ): Promise<FunctionDispatch> {
    const { name } = manifest;
    if (this.functions.has(name)) throw new TypeError(`function ${name} is loaded already`);
    const loading = this.load(manifest, options);
    this.loading.set(name, loading);
    try {
      return await loading;
    } finally {
      this.loading.delete(name);
    }
  }

  private async load(
    manifest: FunctionManifest,
    { usesOldObject, shard }: { readonly usesOldObject: boolean; readonly shard?: Shard | undefined },
  ): Promise<FunctionDispatch> {
    // A dead letter that reaches the disk after it was read would stay there undelivered.
    await this.returning.get(manifest.name)?.catch(() => undefined);
    if (await this.retirement.purge()) this.onDisk.forget();
    const unsaved = this.unsaved.get(manifest.name);
    if (unsaved) {
      // Until then it is not known how its attempts ended.
      await unsaved;
      this.unsaved.delete(manifest.name);
      await this.readStarted(manifest.name);
    }
    await this.markPossibleRedeliveries(manifest.name);
    const { commits, startedBefore } = this;
    const loaded = await loadFunction({
      memoryLimit: defaultMemoryLimit,
      look: unanswered,
      ...this.options,
      budgets: this.budgets,
      manifest,
      usesOldObject,
      shard,
      commits,
      written: this.written,
      startedBefore,
      subscribers: this.subscribers,
      scheduler: this.scheduler,
      retirement: this.retirement,
    });
    this.functions.set(manifest.name, loaded);
    this.onDisk.forget(manifest.name);
    this.options.observer.declared?.(manifest);
    if (this.held.has(manifest.name)) loaded.hold();
    if (this.draining) void loaded.stop();
    return loaded;
  }

  /** Lets no attempt of this function begin until a `release` for the same reason, whether the function is loaded or not. */
  hold(name: string, why: HoldReason): void {
    this.held.set(name, new Set(this.held.get(name)).add(why));
    this.functions.get(name)?.hold();
  }

  /** Ends one reason of a hold; the function continues once it has no other. */
  release(name: string, why: HoldReason): void {
    const before = this.held.get(name);
    const left = new Set([...(before ?? [])].filter((each) => each !== why));
    if (left.size > 0) this.held.set(name, left);
    else if (this.held.delete(name)) this.functions.get(name)?.release();
  }

  /**
   * Unloads a function, for good or to load it again with other triggers. Running attempts end; waiting events are received again
   * from its checkpoints. With `retire`, its checkpoints are kept for seven days.
   */
  async remove(name: string, options: { retire: boolean }): Promise<void> {
    const removing = this.unload(name, options);
    const ended = removing.catch(() => undefined);
    this.removing.set(name, ended);
    try {
      await removing;
    } finally {
      if (this.removing.get(name) === ended) this.removing.delete(name);
    }
  }

  private async unload(name: string, { retire }: { retire: boolean }): Promise<void> {
    // A dead letter that reaches the disk after its view is retired would stay there.
    await this.returning.get(name)?.catch(() => undefined);
    const found = this.functions.get(name);
    if (found) {
      const saved = found.stop().then(() => this.commits.flushAll());
      // A store that accepts nothing may do so again only once this function is gone.
      const inTime = retire && this.commits.trouble ? await this.within(saveMs, saved) : await saved.then(() => true);
      if (!inTime) this.unsaved.set(name, saved);
      this.functions.delete(name);
      found.close();
      this.retirement.note(found.inMemory());
      if (inTime) await this.readStarted(name);
      else void saved.catch(() => undefined).then(() => this.onDisk.forget(name));
    }
    const views = await this.options.store.views(name);
    if (found && !found.hasUnpersistedRisk) for (const { id } of views) this.settled.add(id);
    if (retire) await this.retirement.retire(views);
  }

  /**
   * Reads which attempts of an unloaded function had begun and not ended; they are repeated, flagged, if it is loaded again. Its
   * other journal records are deleted: earlier attempts, and those whose events are done.
   */
  private async readStarted(name: string): Promise<void> {
    const { store } = this.options;
    const rows = await store.begun();
    this.startedBefore = await StartedBefore.read(store, rows);
    const open = new Set([...this.startedBefore].map(({ row, view, id }) => `${row}/${view}/${id}`));
    const views = new Set((await store.views(name)).map(({ id }) => id));
    const shown = new Map<string, ResourceVersion>();
    for (const { id: row, started } of rows) {
      for (const event of started) {
        const attempt = `${row}/${event.view}/${event.id}`;
        shown.set(attempt, event.resourceVersion);
        if (views.has(event.view) && !open.has(attempt)) this.commits.settle(row, event);
      }
    }
    // If an earlier attempt has shown a newer state, the row that stays must say so.
    const lacking = [...this.startedBefore].filter(
      ({ row, view, id, resourceVersion }) => views.has(view) && shown.get(`${row}/${view}/${id}`) !== resourceVersion,
    );
    for (const event of lacking) this.commits.settle(event.row, event);
    if (lacking.length > 0) this.commits.carryJournal([], lacking);
  }

  /** Retires every function of the store that `isKept` does not name. Called once a read has shown all functions that exist. */
  async retireOthers(isKept: (functionName: string) => boolean): Promise<void> {
    const others = (await this.options.store.views()).filter((view) => !isKept(view.function));
    await this.retirement.retire(others);
  }

  /** Returns a loaded function. */
  loaded(name: string): FunctionDispatch | undefined {
    return this.functions.get(name);
  }

  status(): FunctionStatus[] {
    return [...this.functions.values()].map((it) => it.status());
  }

  /** Returns what is on record of a function; `undefined` if it is loaded. */
  unloaded(name: string): UnloadedCounts | undefined {
    if (this.functions.has(name)) return undefined;
    const { store, clock } = this.options;
    const rows = this.onDisk.of(name);
    const ageSeconds = Math.max(0, clock.now() - (rows?.oldestAt ?? clock.now())) / 1000;
    return { letterStock: store.deadLetterStock(name), ...(rows && { waiting: { count: rows.count, ageSeconds } }) };
  }

  /**
   * Marks a function's events on disk as possible redeliveries, because the records of their ends may be missing after a power
   * loss. Events that this process has put there since are not affected.
   */
  private async markPossibleRedeliveries(name: string): Promise<void> {
    const { store } = this.options;
    if (store.previousEnd !== "power-loss" || this.marked.has(name)) return;
    await store.markSpillPossiblyDelivered(name);
    this.marked.add(name);
  }

  /** The error of the last commit, which is retried; `undefined` if it succeeded. */
  get trouble(): WatchfireError | undefined {
    return this.commits.trouble;
  }

  async replay(letter: DeadLetter): Promise<boolean> {
    const { function: name } = letter;
    for (let changing = this.changing(name); changing; changing = this.changing(name)) await changing;
    const loaded = this.functions.get(name);
    if (loaded) {
      await loaded.replay(letter);
      return true;
    }
    const returning = this.offline.replay(letter);
    this.returning.set(name, returning);
    try {
      return await returning;
    } finally {
      this.onDisk.forget(name);
      this.returning.delete(name);
    }
  }

  changing(functionName: string): Promise<unknown> | undefined {
    return this.removing.get(functionName) ?? this.loading.get(functionName)?.catch(() => undefined);
  }

  async drop(letter: DeadLetter): Promise<void> {
    await (this.functions.get(letter.function) ?? this.offline).drop(letter);
  }

  /**
   * Stops accepting events, waits at most `graceMs` for running attempts, and commits. A failing store gets three more seconds.
   * Returns whether everything ended and was saved, so that the store may be closed as clean.
   */
  async drain(graceMs: number): Promise<boolean> {
    this.draining = true;
    const ended = await this.within(graceMs, Promise.all([...this.functions.values()].map((it) => it.stop())));
    // The process ends in any case: events that were not saved are repeated, flagged.
    const saved = await this.within(saveMs, this.commits.sync()).catch((error: unknown) => {
      this.options.log.warn(
        { error: error instanceof Error ? error.message : String(error) },
        "the last checkpoints could not be saved",
      );
      return false;
    });
    this.commits.halt();
    return ended && saved && !(await this.hasUnpersistedRisk());
  }

  /** Stops at once and writes nothing more, as a killed process does; for tests. */
  halt(): void {
    this.commits.halt();
    for (const it of this.functions.values()) void it.stop();
  }

  /**
   * Whether events may still arrive that the earlier runtime handled without a record. Then this end must not count as clean,
   * since they would not be flagged. Includes removed functions, which may be put back.
   */
  private async hasUnpersistedRisk(): Promise<boolean> {
    const { store } = this.options;
    if (store.previousEnd !== "power-loss") return false;
    const isOpen = ({ id }: StoredView) => !this.settled.has(id);
    if ((await store.retiredViews()).some(isOpen)) return true;
    return (await store.views()).some((view) => this.functions.get(view.function)?.hasUnpersistedRisk ?? isOpen(view));
  }

  /** Whether the work ended in time. */
  private async within(limitMs: number, work: Promise<unknown>): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = this.options.clock.after(limitMs, () => resolve(false));
    try {
      return await Promise.race([work.then(() => true), late]);
    } finally {
      timer.cancel();
    }
  }
}

const unanswered: Look = () =>
  Promise.reject(new Error("the object's body is not in the store, and there is no API server to ask"));
