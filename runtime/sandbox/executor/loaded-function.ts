import type { EndReason, EntryUse, Load, Loaded } from "../messages.ts";
import type { QueuedEvent } from "./batch.ts";
import type { ClosableFunction } from "./idle-isolates.ts";
import type { EventSource } from "./intake.ts";
import type { Ask, GuestDoors, IsolateFactory } from "./isolate.ts";
import type { OutboxSummary } from "./outbox.ts";
import { Realm } from "./realm.ts";
import type { RealmReports } from "./realm-reports.ts";
import type { IsolateSlots } from "./slots.ts";
import type { Watchdog } from "./watchdog.ts";

/** CPU time that a module's top level may use, in milliseconds. */
const loadBudgetMs = 2000;
/** Maximum number of events inside one isolate. Further events wait outside it. */
const maxInside = 256;
/** An empty outbox. */
const nothing = "[[],[],[],[],-1,[],0]\n";

/** Callbacks through which a loaded function reports to the parent. */
interface LoadedFunctionListener {
  entering(realm: number, events: readonly number[]): void;
  drained(realm: number, outbox: string, used?: EntryUse): void;
  asking(realm: number, call: number, no: number, operation: string, args: string): void;
  ended(
    realm: number,
    reason: EndReason,
    charged: readonly number[],
    interrupted: readonly number[],
    stack: string,
    running: boolean,
  ): void;
  left(realm: number): void;
  doomed(reason: "poisoned" | "catastrophic"): void;
}

/** Resources that all loaded functions of an executor share. */
export interface ExecutorResources {
  readonly isolates: IsolateFactory;
  readonly watchdog: Watchdog;
  readonly slots: IsolateSlots;
  /** Number of events after which an isolate is replaced. */
  readonly recycleEvents: number;
}

type LoadFailure = NonNullable<Loaded["failure"]>;

/** One version of one function's code, with the isolates that take its events and those that are still finishing some. */
export class LoadedFunction implements ClosableFunction {
  private readonly ground: ExecutorResources;
  private readonly options: Load;
  private readonly script: string;
  private readonly reports: LoadedFunctionListener;
  private readonly queue: QueuedEvent[] = [];
  private readonly realms = new Map<number, Realm>();
  /** Isolates that take events: one, or up to `options.isolates` if each event gets a fresh context. */
  private readonly takers = new Set<Realm>();
  private readonly renewing = new Set<Realm>();
  private lastRealm = 0;
  private opening = false;
  private stuck = false;
  private unloaded = false;
  private activeAt = performance.now();
  private used = false;
  /** Number of events still to run one at a time, after a limit was broken with several inside. */
  private solo: number;
  /**
   * Stack at which V8's timeout last ended code that had waited for a core. Used if the next isolate breaks its limit without a
   * stack.
   */
  private lastStack = "";

  constructor(ground: ExecutorResources, options: Load, script: string, reports: LoadedFunctionListener) {
    this.ground = ground;
    this.options = options;
    this.solo = options.solo;
    // Strict mode, as in modules. An error thrown by the top level is passed on inside the isolate, because inspecting it could
    // run the handler's code.
    this.script = `"use strict";try{${script}\n}catch(error){__watchfire_reject(error)};undefined`;
    this.reports = reports;
  }

  /** Whether events are waiting or running. */
  get busy(): boolean {
    if (this.stuck) return false;
    return this.queue.length > 0 || [...this.realms.values()].some((realm) => realm.size > 0);
  }

  /** Opens the first isolate. Returns the failure if it could not be opened, else `undefined`. */
  async load(): Promise<LoadFailure | undefined> {
    const { failure } = await this.open();
    this.activeAt = performance.now();
    return failure;
  }

  add(events: readonly QueuedEvent[]): void {
    this.queue.push(...events);
    this.feed();
  }

  reply(realm: number, call: number, ok: 0 | 1, text: string): void {
    this.realms.get(realm)?.reply(call, ok, text);
  }

  /** Removes the events that have not begun. Returns their numbers. */
  recall(): readonly number[] {
    return this.queue.splice(0).map(({ no }) => no);
  }

  /** Accepts no more events. Running events may finish. */
  unload(): void {
    this.unloaded = true;
    this.takers.clear();
    for (const realm of this.realms.values()) this.retire(realm);
  }

  get isolates(): number {
    return this.realms.size;
  }

  get isUsed(): boolean {
    return this.used;
  }

  get idleSince(): number | undefined {
    return this.busy || this.opening || this.renewing.size > 0 ? undefined : this.activeAt;
  }

  /** Closes the idle isolates. The next event opens one again. */
  letGo(): void {
    for (const realm of this.takers) {
      this.takers.delete(realm);
      this.retire(realm);
    }
  }

  private get isFresh(): boolean {
    return this.options.isolation === "Event";
  }

  /** Number of events that have begun and not ended, including those in isolates that take no more. */
  private get running(): number {
    let running = 0;
    for (const realm of this.realms.values()) running += realm.size;
    return running;
  }

  /** Whether an isolate gets one event at a time. */
  private get isSingle(): boolean {
    return this.isFresh || this.solo > 0;
  }

  /** Returns how many events may begin in a realm now. */
  private roomOf(realm: Realm): number {
    const [first] = this.takers;
    const takes = this.solo > 0 ? realm === first : this.takers.has(realm);
    if (!takes || this.queue.length === 0) return 0;
    const free = Math.min(this.options.concurrency - this.running, (this.isSingle ? 1 : maxInside) - realm.size);
    return Math.max(0, free);
  }

  private readonly sourceFor = (realm: Realm): EventSource => {
    const loaded = this;
    return {
      get room() {
        return loaded.roomOf(realm);
      },
      take: (most) => {
        this.activeAt = performance.now();
        this.used = true;
        return this.queue.splice(0, this.isSingle ? 1 : most);
      },
      putBack: (events) => this.queue.unshift(...events),
    };
  };

  /** Lets isolates take queued events. Opens another one if they cannot take all. */
  private feed(): void {
    const ready = [...this.takers].filter((realm) => this.roomOf(realm) > 0);
    for (const realm of ready) realm.invite();
    const free = Math.min(this.queue.length, this.options.concurrency - this.running);
    if (free > (this.isSingle || ready.length === 0 ? ready.length : free)) this.reopen();
  }

  private async reopen(): Promise<void> {
    const most = this.solo > 0 ? 1 : this.options.isolates;
    if (this.opening || this.unloaded || this.takers.size + this.renewing.size >= most) return;
    this.opening = true;
    const { id, failure } = await this.open();
    this.opening = false;
    if (failure) {
      // The script loaded before and failed now. The waiting events are charged one by one; the next event tries again.
      const waiting = this.queue.splice(0).map((event) => event.no);
      const reason = isEndReason(failure.reason) ? failure.reason : "killed";
      this.reports.ended(id, reason, waiting.slice(0, 1), waiting.slice(1), failure.stack, false);
    } else this.feed();
  }

  private async open(): Promise<{ id: number; failure?: LoadFailure }> {
    const id = ++this.lastRealm;
    let doors: GuestDoors;
    const stuck = () => {
      this.stuck = true;
      this.reports.doomed("catastrophic");
    };
    const ask: Ask = (...question) => realm.ask(...question);
    try {
      doors = this.ground.isolates.make(this.options, stuck, ask);
    } catch (error) {
      return { id, failure: { reason: "memory", name: "Error", message: String(error), stack: "" } };
    }
    let loading = true;
    let failure: LoadFailure | undefined;
    const { ground, sourceFor: source } = this;
    const { watchdog, slots } = ground;
    const reports: RealmReports = {
      entering: (events) => this.reports.entering(realm.id, events),
      drained: (outbox, summary, used) => this.drained(realm, outbox, summary, used),
      salvaged: (outbox) => this.reports.drained(realm.id, outbox),
      asking: (...question) => this.reports.asking(realm.id, ...question),
      ended: (reason, charged, interrupted, stack, running) => {
        if (loading) failure = { reason, name: "Error", message: "", stack };
        this.forget(realm, charged, interrupted);
        // A failed load is reported by the caller of `load`.
        if (!loading) this.reports.ended(realm.id, reason, charged, interrupted, stack || this.lastStack, running);
        this.lastStack = charged.length === 0 ? stack : "";
        this.feed();
      },
      left: () => this.reports.left(realm.id),
      unstoppable: () => {
        this.stuck = true;
        this.reports.doomed("poisoned");
      },
    };
    const budgetMs = this.options.cpuPerEventMs;
    const ways = { timed: this.lastStack === "", renews: this.isFresh };
    const realm = new Realm({ id, doors, budgetMs, watchdog, slots, ...ways, source, reports });
    this.realms.set(id, realm);
    const word = await realm.load(this.script, this.options.scriptName, loadBudgetMs);
    loading = false;
    if (word === "") {
      this.loaded(realm);
      return { id };
    }
    realm.dispose();
    this.realms.delete(id);
    return { id, failure: failure ?? failureOf(word) };
  }

  private loaded(realm: Realm): void {
    this.reports.drained(realm.id, nothing);
    this.ground.watchdog.remove(realm);
    if (this.unloaded) this.retire(realm);
    else this.takers.add(realm);
  }

  private drained(realm: Realm, outbox: string, summary: OutboxSummary, used: EntryUse): void {
    this.solo = Math.max(0, this.solo - summary.done.length);
    this.reports.drained(realm.id, outbox, used);
    // Code of an event that was cut off may continue for ever. The isolate finishes its events and takes no more.
    const isDirty = summary.done.some((event) => event.tainted) || realm.isWorn(this.ground.recycleEvents);
    if (isDirty) this.takers.delete(realm);
    if (!this.takers.has(realm)) this.retire(realm);
    else if (this.isFresh && realm.size === 0) this.renew(realm);
    this.feed();
  }

  /** Creates a fresh context for the next event, in advance. */
  private async renew(realm: Realm): Promise<void> {
    this.takers.delete(realm);
    this.renewing.add(realm);
    // The realm gets a new number, so that a late answer for the old context is dropped.
    this.realms.delete(realm.id);
    realm.id = ++this.lastRealm;
    this.realms.set(realm.id, realm);
    const ask: Ask = (...question) => realm.ask(...question);
    const word = await realm.renew((old) => this.ground.isolates.renew(old, this.options, ask), loadBudgetMs);
    this.renewing.delete(realm);
    if (word === "") this.loaded(realm);
    else if (word !== undefined) {
      this.realms.delete(realm.id);
      realm.dispose();
      this.reports.ended(realm.id, "killed", [], [], "", false);
    }
    this.feed();
  }

  private retire(realm: Realm): void {
    if (realm.size > 0 || this.renewing.has(realm)) return;
    realm.dispose();
    this.realms.delete(realm.id);
  }

  private forget(realm: Realm, charged: readonly number[], interrupted: readonly number[]): void {
    this.realms.delete(realm.id);
    this.takers.delete(realm);
    if (charged.length === 0) this.solo = Math.max(this.solo, 2 * interrupted.length);
  }
}

const ownReasons: readonly LoadFailure["reason"][] = ["thrown", "unheard", "handler", "missing", "mode"];

const isEndReason = (reason: LoadFailure["reason"]): reason is EndReason => !ownReasons.includes(reason);

/** Parses the guest's description of a failed load. */
function failureOf(word: string | undefined): LoadFailure {
  try {
    const [reason, name, message, stack] = JSON.parse(word ?? "") as [LoadFailure["reason"], string, string, string];
    return { reason, name, message, stack };
  } catch {
    return { reason: "killed", name: "Error", message: "", stack: "" };
  }
}
