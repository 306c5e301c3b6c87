import type { Clock, Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { ResourceVersion } from "../base/resource-version.ts";
import type { DeadLetter } from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import { OfflineReplayer, type Replayer } from "../journal/dead-letters.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { Commits } from "./commit/commits.ts";
import type { DeadLetterCommand } from "./commit/dead-letter-command.ts";
import type { BodyRoom } from "./commit/deferred-rows.ts";
import type { Look, Runner } from "./delivery/delivery.ts";
import type { EngineLog, EngineObserver } from "./delivery/observer.ts";
import type { FunctionDispatch, FunctionStatus } from "./function-dispatch.ts";
import { loadFunction } from "./load-function.ts";
import { StartedBefore } from "./redelivery/started-before.ts";
import { Retirement } from "./retirement.ts";
import { InterestedFunctions } from "./state/interested-functions.ts";
import type { KnownObjects } from "./state/known-objects.ts";
import type { Shard } from "./state/shard.ts";
import { Budget, heapQuarter } from "./work/budget.ts";
import { FairScheduler } from "./work/fair-scheduler.ts";
import { defaultMemoryLimit, type MemoryLimit } from "./work/spill.ts";

/** How long a drain, and a removal, wait for the last commit, in milliseconds. */
const saveMs = 3_000;

interface DispatcherOptions {
  readonly store: Checkpoint;
  readonly runner: Runner;
  readonly clock: Clock;
  /** Spreads retries. */
  readonly random: Random;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
  /** What each function may hold in memory before its events go to disk. Default 1000 events or 32 MiB. */
  readonly memoryLimit?: MemoryLimit;
  /** Bytes of bodies that all functions together may hold there. Default a quarter of the heap's limit. */
  readonly memoryBudget?: number;
  /** Memory that other dispatchers of this process share. Default: a budget of its own. */
  readonly memory?: Budget;
  /** Room for last bodies that they share. Default: of its own. */
  readonly bodyRoom?: BodyRoom;
  /** The turns of their functions. Default: of its own. */
  readonly rota?: FairScheduler;
  /** Before the id of a dead letter, as commands take it. Default: nothing. */
  readonly letterPrefix?: string | undefined;
  /** The commands that the log gives with a dead letter. Default: `watchfire dead-letters`, with no options. */
  readonly letterCommand?: DeadLetterCommand | undefined;
  /** Asked before each commit; once it says no, nothing is written or dispatched any more. Default: always. */
  readonly permitted?: () => boolean;
  /** Asks the API server for an object whose body the store has not. Default: it cannot be asked. */
  readonly look?: Look;
  /** Called once when another runtime has taken the store over: nothing is dispatched any more. */
  readonly onLost?: (error: WatchfireError) => void;
}

/** Why a function begins no attempt: its account lacks a right, its manifest says so, or somebody said so by a command. */
type HoldReason = "forbidden" | "manifest" | "command";

/**
 * Takes what sources receive, runs it through the functions' lanes, and keeps their positions. The store is the
 * caller's to open and to close; nothing else may write to it meanwhile.
 */
export class Dispatcher implements Replayer {
  private readonly options: DispatcherOptions;
  private readonly commits: Commits;
  private startedBefore: StartedBefore;
  private draining = false;
  private readonly functions = new Map<string, FunctionDispatch>();
  /** Why functions are held, where they are. */
  private readonly held = new Map<string, ReadonlySet<HoldReason>>();
  /** Functions that were removed while the store took nothing, until what they left is saved. */
  private readonly unsaved = new Map<string, Promise<void>>();
  /** Views of functions that were unloaded when nothing of theirs was in doubt any more. */
  private readonly settled = new Set<number>();
  /** Functions of which it is on disk what waited in doubt when this process began. */
  private readonly noted = new Set<string>();
  private readonly offline: Replayer;
  /** Letters of functions that are not loaded, on their way into what these have on disk. */
  private readonly returning = new Map<string, Promise<void>>();
  /** Functions that read what they have on disk. */
  private readonly loading = new Map<string, Promise<FunctionDispatch>>();
  private readonly holders = new InterestedFunctions<KnownObjects>();
  private readonly rota: FairScheduler;
  private readonly retirement: Retirement;
  private readonly budgets: { readonly memory: Budget; readonly disk: Budget };

  private constructor(
    options: DispatcherOptions,
    commits: Commits,
    startedBefore: StartedBefore,
    retirement: Retirement,
  ) {
    this.options = options;
    this.retirement = retirement;
    this.commits = commits;
    this.startedBefore = startedBefore;
    this.offline = new OfflineReplayer(options.store, (batch) => commits.past(batch));
    const { store, memoryBudget = heapQuarter(), memory = new Budget(() => memoryBudget) } = options;
    this.rota = options.rota ?? new FairScheduler(options.clock);
    this.budgets = { memory, disk: new Budget(() => store.spillLimit) };
  }

  /** Reads which attempts had begun when the store was last used, and purges positions of functions long removed. */
  static async open(options: DispatcherOptions): Promise<Dispatcher> {
    const { store, clock, observer, log, bodyRoom, permitted = () => true, onLost = () => {} } = options;
    const { letterPrefix, letterCommand } = options;
    const retirement = new Retirement(options);
    await retirement.purge();
    const rows = await store.begun();
    const started = await StartedBefore.read(store, rows);
    const firstJournalRow = Math.max(0, ...rows.map(({ id }) => id)) + 1;
    const told = { observer, log, letterPrefix, letterCommand, onLost };
    const commits = new Commits({ store, clock, ...told, bodyRoom, firstJournalRow, permitted });
    if (rows.length > 0)
      commits.carryJournal(
        rows.map(({ id }) => id),
        started,
      );
    return new Dispatcher(options, commits, started, retirement);
  }

  /** Loads a function, or one shard of it. `usesOldObject`: its handler reads the previous object. */
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
    // A letter that came to what it has on disk behind its reading would lie there untold.
    await this.returning.get(manifest.name)?.catch(() => undefined);
    await this.retirement.purge();
    const unsaved = this.unsaved.get(manifest.name);
    if (unsaved) {
      // Until then nobody knows what its attempts came to.
      await unsaved;
      this.unsaved.delete(manifest.name);
      await this.readStarted(manifest.name);
    }
    await this.noteDoubts(manifest.name);
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
      startedBefore,
      holders: this.holders,
      rota: this.rota,
      retirement: this.retirement,
    });
    this.functions.set(manifest.name, loaded);
    this.options.observer.declared?.(manifest);
    if (this.held.has(manifest.name)) loaded.hold();
    if (this.draining) void loaded.stop();
    return loaded;
  }

  /** Until a `release` for the same reason no attempt of this function begins, be it loaded or not. */
  hold(name: string, why: HoldReason): void {
    this.held.set(name, new Set(this.held.get(name)).add(why));
    this.functions.get(name)?.hold();
  }

  /** Ends one reason; the function goes on once it has no other. */
  release(name: string, why: HoldReason): void {
    const before = this.held.get(name);
    const left = new Set([...(before ?? [])].filter((each) => each !== why));
    if (left.size > 0) this.held.set(name, left);
    else if (this.held.delete(name)) this.functions.get(name)?.release();
  }

  /**
   * Unloads a function, for good or to load it again with other triggers: what runs ends, what waits comes again from
   * its positions. `retire`: its positions are kept for seven days.
   */
  async remove(name: string, { retire }: { retire: boolean }): Promise<void> {
    const found = this.functions.get(name);
    if (found) {
      const saved = found.stop().then(() => this.commits.flushAll());
      // A store that takes nothing may do so again only once this function is gone.
      const inTime = retire && this.commits.trouble ? await this.within(saveMs, saved) : await saved.then(() => true);
      if (!inTime) this.unsaved.set(name, saved);
      this.functions.delete(name);
      found.close();
      this.retirement.note(found.inMemory());
      if (inTime) await this.readStarted(name);
    }
    const views = await this.options.store.views(name);
    if (found && !found.isInDoubt) for (const { id } of views) this.settled.add(id);
    if (retire) await this.retirement.retire(views);
  }

  /**
   * What an unloaded function had begun, and has not ended, comes again, flagged, where it is loaded again. What else the
   * journal has of it goes: earlier attempts, and those whose events are done.
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
    // The row that stays is to say so too where an earlier attempt has shown a newer state.
    const lacking = [...this.startedBefore].filter(
      ({ row, view, id, resourceVersion }) => views.has(view) && shown.get(`${row}/${view}/${id}`) !== resourceVersion,
    );
    for (const event of lacking) this.commits.settle(event.row, event);
    if (lacking.length > 0) this.commits.carryJournal([], lacking);
  }

  /** Retires every function of the store that is not among `names`; for the start, once it is known which are there. */
  async retireOthers(names: readonly string[]): Promise<void> {
    const others = (await this.options.store.views()).filter((view) => !names.includes(view.function));
    await this.retirement.retire(others);
  }

  /** A function that is loaded. */
  loaded(name: string): FunctionDispatch | undefined {
    return this.functions.get(name);
  }

  status(): FunctionStatus[] {
    return [...this.functions.values()].map((it) => it.status());
  }

  /** The ends may be missing of what waited when the machine went down, and of nothing that this process has put there since. */
  private async noteDoubts(name: string): Promise<void> {
    const { store } = this.options;
    if (store.previousEnd !== "power-loss" || this.noted.has(name)) return;
    await store.doubtSpilled(name);
    this.noted.add(name);
  }

  /** Why the last commit failed; it is tried again. Undefined where it succeeded. */
  get trouble(): WatchfireError | undefined {
    return this.commits.trouble;
  }

  async replay(letter: DeadLetter): Promise<void> {
    const { function: name } = letter;
    await this.loading.get(name)?.catch(() => undefined);
    const loaded = this.functions.get(name);
    if (loaded) return loaded.replay(letter);
    const returning = this.offline.replay(letter);
    this.returning.set(name, returning);
    try {
      await returning;
    } finally {
      this.returning.delete(name);
    }
  }

  async drop(letter: DeadLetter): Promise<void> {
    await (this.functions.get(letter.function) ?? this.offline).drop(letter);
  }

  /**
   * Takes nothing any more, waits at most `graceMs` for what runs, and commits, for which a store that fails gets three
   * seconds more. Gives whether all of it ended and was saved: the store may then be closed as clean.
   */
  async drain(graceMs: number): Promise<boolean> {
    this.draining = true;
    const ended = await this.within(graceMs, Promise.all([...this.functions.values()].map((it) => it.stop())));
    // Whoever ends is to end all the same: what was not saved comes again, flagged.
    const saved = await this.within(saveMs, this.commits.sync()).catch((error: unknown) => {
      this.options.log.warn({ error: error instanceof Error ? error.message : String(error) }, "not all is saved");
      return false;
    });
    this.commits.halt();
    return ended && saved && !(await this.isInDoubt());
  }

  /** Stops at once and writes nothing more, as a killed process does; for tests. */
  halt(): void {
    this.commits.halt();
    for (const it of this.functions.values()) void it.stop();
  }

  /**
   * Whether events may still come that the runtime before this one had handled, without a record that survived. Then
   * this end must not count as clean, or they would come without a flag. A function that was removed may be put back.
   */
  private async isInDoubt(): Promise<boolean> {
    const { store } = this.options;
    if (store.previousEnd !== "power-loss") return false;
    const isOpen = ({ id }: StoredView) => !this.settled.has(id);
    if ((await store.retiredViews()).some(isOpen)) return true;
    return (await store.views()).some((view) => this.functions.get(view.function)?.isInDoubt ?? isOpen(view));
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
  Promise.reject(new Error("the object's body is not in the store, and nobody can be asked"));
