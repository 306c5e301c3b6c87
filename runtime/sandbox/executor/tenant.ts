import type { EndReason, Load, Loaded } from "../messages.ts";
import type { GuestDoors, IsolateFactory } from "./isolate.ts";
import type { OutboxSummary } from "./outbox.ts";
import { type QueuedEvent, Realm } from "./realm.ts";
import type { Slots } from "./slots.ts";
import type { Watchdog } from "./watchdog.ts";

/** CPU time that a module's top level may use. Milliseconds. */
const loadBudgetMs = 2000;
/** Events that one isolate holds at once; the others wait outside it. */
const maxInside = 256;

/** What a tenant tells the parent. */
export interface TenantReports {
  entering(realm: number, events: readonly number[]): void;
  drained(realm: number, outbox: string): void;
  ended(reason: EndReason, charged: readonly number[], interrupted: readonly number[], stack: string): void;
  doomed(reason: "poisoned" | "catastrophic"): void;
}

/** The parts that all tenants of an executor use together. */
export interface Ground {
  readonly isolates: IsolateFactory;
  readonly watchdog: Watchdog;
  readonly slots: Slots;
}

type LoadFailure = NonNullable<Loaded["failure"]>;

/** One version of one function's code: the isolate that takes its events, and those that still finish some. */
export class Tenant {
  private readonly ground: Ground;
  private readonly options: Load;
  private readonly script: string;
  private readonly reports: TenantReports;
  private readonly queue: QueuedEvent[] = [];
  private readonly realms = new Map<number, Realm>();
  private current: Realm | undefined;
  private lastRealm = 0;
  private opening = false;
  private stuck = false;
  private unloaded = false;
  /** Events yet to run one at a time, after a limit was broken with several inside. */
  private solo: number;
  /** Where code was when V8's timeout ended it for want of a core: stands in if it breaks its limit for real. */
  private lastStack = "";

  constructor(ground: Ground, options: Load, script: string, reports: TenantReports) {
    this.ground = ground;
    this.options = options;
    this.solo = options.solo;
    // Strict, as modules are. What the top level throws stays inside: looking at it could run the handler's code.
    this.script = `"use strict";try{${script}\n}catch(error){__watchfire_reject(error)};undefined`;
    this.reports = reports;
  }

  /** Whether events wait or run. */
  get busy(): boolean {
    if (this.stuck) return false;
    return this.queue.length > 0 || [...this.realms.values()].some((realm) => realm.size > 0);
  }

  /** Opens the first isolate; gives why it could not be, else undefined. */
  load(): Promise<LoadFailure | undefined> {
    return this.open();
  }

  add(event: QueuedEvent): void {
    this.queue.push(event);
    this.feed();
  }

  reply(realm: number, call: number, ok: 0 | 1, text: string): void {
    this.realms.get(realm)?.reply(call, ok, text);
  }

  /** Takes no more; what runs may finish. */
  unload(): void {
    this.unloaded = true;
    this.current = undefined;
    for (const [id, realm] of this.realms) this.retire(id, realm);
  }

  private feed(): void {
    if (this.queue.length === 0) return;
    const realm = this.current;
    if (!realm) {
      this.reopen();
      return;
    }
    const room = this.solo > 0 ? 1 : maxInside;
    while (realm.size < room && this.queue.length > 0) realm.add(this.queue.shift() as QueuedEvent);
  }

  private async reopen(): Promise<void> {
    if (this.opening || this.unloaded) return;
    this.opening = true;
    const failure = await this.open();
    this.opening = false;
    if (failure) {
      // It loaded before, and not this time: what waits is charged one by one, and the next event tries again.
      const waiting = this.queue.splice(0).map((event) => event.no);
      const reason = isEndReason(failure.reason) ? failure.reason : "killed";
      this.reports.ended(reason, waiting.slice(0, 1), waiting.slice(1), failure.stack);
    } else this.feed();
  }

  private async open(): Promise<LoadFailure | undefined> {
    const id = ++this.lastRealm;
    let doors: GuestDoors;
    try {
      doors = this.ground.isolates.make(this.options.memoryMb, this.options.env, () => {
        this.stuck = true;
        this.reports.doomed("catastrophic");
      });
    } catch (error) {
      return { reason: "memory", name: "Error", message: String(error), stack: "" };
    }
    let failure: LoadFailure | undefined;
    const realm = new Realm(
      doors,
      this.options.cpuPerEventMs,
      this.ground.watchdog,
      this.ground.slots,
      this.lastStack === "",
      {
        entering: (events) => this.reports.entering(id, events),
        drained: (outbox, summary) => this.drained(id, realm, outbox, summary),
        ended: (reason, charged, interrupted, stack) => {
          if (loading) failure = { reason, name: "Error", message: "", stack };
          this.ended(id, realm, reason, charged, interrupted, stack);
        },
        unstoppable: () => {
          this.stuck = true;
          this.reports.doomed("poisoned");
        },
      },
    );
    this.realms.set(id, realm);
    let loading = true;
    const word = await realm.load(this.script, this.options.scriptName, loadBudgetMs);
    loading = false;
    if (word === "") {
      this.reports.drained(id, "[[],[],[],[],-1]");
      this.ground.watchdog.remove(realm);
      if (!this.unloaded) this.current = realm;
      return undefined;
    }
    realm.dispose();
    this.realms.delete(id);
    return failure ?? failureOf(word);
  }

  private drained(id: number, realm: Realm, outbox: string, summary: OutboxSummary): void {
    this.solo = Math.max(0, this.solo - summary.done.length);
    this.reports.drained(id, outbox);
    // Code of an event that was cut off may go on for ever: this isolate finishes what it has and takes no more.
    if (summary.done.some((event) => event.tainted) && this.current === realm) this.current = undefined;
    if (this.current !== realm) this.retire(id, realm);
    this.feed();
  }

  private retire(id: number, realm: Realm): void {
    if (realm.size > 0) return;
    realm.dispose();
    this.realms.delete(id);
  }

  private ended(
    id: number,
    realm: Realm,
    reason: EndReason,
    charged: readonly number[],
    interrupted: readonly number[],
    stack: string,
  ): void {
    this.realms.delete(id);
    if (this.current === realm) this.current = undefined;
    if (charged.length === 0) this.solo = Math.max(this.solo, 2 * interrupted.length);
    if (charged.length + interrupted.length > 0) {
      this.reports.ended(reason, charged, interrupted, stack || this.lastStack);
    }
    this.lastStack = charged.length === 0 ? stack : "";
    this.feed();
  }
}

const isEndReason = (reason: LoadFailure["reason"]): reason is EndReason =>
  reason !== "thrown" && reason !== "handler" && reason !== "missing";

/** Reads the guest's word on a load that failed. */
function failureOf(word: string | undefined): LoadFailure {
  try {
    const [reason, name, message, stack] = JSON.parse(word ?? "") as [LoadFailure["reason"], string, string, string];
    return { reason, name, message, stack };
  } catch {
    return { reason: "killed", name: "Error", message: "", stack: "" };
  }
}
