import type { ResourceVersion } from "../../base/resource-version.ts";
import { cut } from "../../base/wording.ts";
import type { EventType } from "../../manifest/function.ts";
import type { Outcome } from "../delivery/delivery.ts";
import type { EngineLog } from "../delivery/observer.ts";
import type { HeldBack } from "../filter/reason.ts";

/** A ring buffer with the last entries, at most so many. */
export class Ring<T> {
  private readonly limit: number;
  private readonly entries: T[] = [];
  /** The index of the next entry. */
  private next = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  push(entry: T): void {
    this.entries[this.next] = entry;
    this.next = (this.next + 1) % this.limit;
  }

  /** Newest first. */
  *[Symbol.iterator](): Iterator<T> {
    const { entries, next } = this;
    for (let back = 1; back <= entries.length; back++) {
      yield entries[(next - back + entries.length) % entries.length] as T;
    }
  }
}

/** The number of events of each kind that a function keeps. */
const mostKept = 200;
/**
 * Limit on a key, in characters: Kubernetes allows 63 for a namespace and 253 for a name. An event with a longer one is not kept.
 */
const longestKey = 400;
/** Limit on a message, in characters. */
const longestMessage = 300;

/** The part of an event that is kept: no body, and nothing that references one. */
interface KeptEvent {
  readonly trigger: string;
  /** `namespace/name`. */
  readonly key: string;
  readonly type: EventType;
  readonly resourceVersion: ResourceVersion;
  /** When it was filtered, or its attempt ended, in epoch milliseconds. */
  readonly at: number;
  /** Counts entries of both kinds, to order two of the same millisecond. */
  readonly order: number;
}

/** An event that was held back. */
export interface FilteredEvent extends KeptEvent {
  readonly why: HeldBack;
  /** The number of events that this entry stands for: itself, and earlier ones of the same reason that have no entry. */
  readonly count: number;
}

/** An attempt that ended by itself. */
export interface PastRun extends KeptEvent {
  /** The event's id: the handler's idempotency key, which the log shows as `run`. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  readonly outcome: "ok" | "failed" | "permanent";
  readonly durationMs: number;
  /** The name and message of the error, cut; `undefined` if it succeeded. */
  readonly error: string | undefined;
}

/** The number of filtered events with one reason, since the function was loaded. */
export interface HeldBackCount {
  readonly trigger: string;
  readonly why: HeldBack["type"];
  /** The condition that decided. */
  readonly condition?: string;
  readonly count: number;
  /** The time of the last one, in epoch milliseconds. */
  readonly last: number;
}

type Counted = { -readonly [Field in keyof HeldBackCount]: HeldBackCount[Field] };

/** The fields of an event that are recorded. */
export interface TracedEvent {
  readonly objects: { readonly trigger: { readonly name: string } };
  readonly key: string;
  readonly type: EventType;
  readonly meta: { readonly resourceVersion: ResourceVersion };
  readonly id: string;
}

/** The outcome of an attempt that ended by itself. */
export type FinishedOutcome = Exclude<Outcome, { readonly type: "interrupted" | "unbegun" }>;

/** The last filtered events and the last attempts of a function, for a user who asks why. Kept in memory alone. */
export class History {
  private readonly functionName: string;
  /** `undefined` unless a line is logged for each event. */
  private readonly log: EngineLog | undefined;
  private readonly heldBack = new Ring<FilteredEvent>(mostKept);
  private readonly attempts = new Ring<PastRun>(mostKept);
  private order = 0;
  /** By trigger, reason and condition. */
  private readonly counts = new Map<string, Counted>();
  /** The counter used last, by its reason object: a trigger allocates each reason once, and equal ones often follow each other. */
  private last: { readonly why: HeldBack; readonly counted: Counted } | undefined;

  constructor(functionName: string, log: EngineLog) {
    this.functionName = functionName;
    if (log.isLevelEnabled?.("trace")) this.log = log;
  }

  /** Newest first. */
  get filtered(): Iterable<FilteredEvent> {
    return this.heldBack;
  }

  /** Newest first. */
  get runs(): Iterable<PastRun> {
    return this.attempts;
  }

  /** Returns the numbers of filtered events by their reasons. Every scrape of metrics calls this. */
  count(): HeldBackCount[] {
    return Array.from(this.counts.values(), (counted) => ({ ...counted }));
  }

  /** Whether each event is logged. */
  get logsEach(): boolean {
    return this.log !== undefined;
  }

  /**
   * Records a filtered event. Called for each of them. `at` is in epoch milliseconds. `count` includes the events before it
   * without an entry.
   */
  held({ objects, key, type, meta }: Omit<TracedEvent, "id">, why: HeldBack, at: number, count = 1): void {
    const trigger = objects.trigger.name;
    const { resourceVersion } = meta;
    let counted = this.last?.counted;
    if (!counted || this.last?.why !== why || counted.trigger !== trigger) counted = this.countOf(trigger, why);
    counted.count += count;
    counted.last = at;
    if (key.length <= longestKey) {
      this.heldBack.push({ trigger, key, type, resourceVersion, at, order: this.order++, why: short(why), count });
    }
    if (!this.log) return;
    // A condition's message is in the warning that is logged at intervals.
    const condition = "condition" in why ? { condition: why.condition } : {};
    const fields = { function: this.functionName, trigger, object: key, type, resourceVersion, why: why.type };
    this.log.trace?.({ ...fields, ...condition }, "event filtered");
  }

  private countOf(trigger: string, why: HeldBack): Counted {
    const condition = "condition" in why ? { condition: why.condition } : {};
    const key = JSON.stringify([trigger, why.type, condition]);
    const counted = this.counts.get(key) ?? { trigger, why: why.type, ...condition, count: 0, last: 0 };
    this.counts.set(key, counted);
    // Not kept as the last one: a reason with a message is allocated for each event, and its message may be long.
    if (!("message" in why)) this.last = { why, counted };
    return counted;
  }

  /** Records an attempt that has ended. `at` is in epoch milliseconds. */
  ran({ objects, key, type, meta, id }: TracedEvent, attempt: number, outcome: FinishedOutcome, at: number): void {
    if (key.length > longestKey) return;
    const error = outcome.type === "ok" ? undefined : short({ message: said(outcome.error) }).message;
    const { durationMs } = outcome;
    const { resourceVersion } = meta;
    this.attempts.push({
      id,
      trigger: objects.trigger.name,
      key,
      type,
      resourceVersion,
      at,
      order: this.order++,
      attempt,
      outcome: outcome.type,
      durationMs,
      error,
    });
  }
}

const said = ({ code, name, message }: { code?: string; name: string; message: string }): string =>
  `${code ?? name}: ${message}`;

/** Cuts a long message, and copies it: a substring would keep the whole text alive. */
function short<T extends object>(of: T): T {
  if (!("message" in of) || typeof of.message !== "string" || of.message.length <= longestMessage) return of;
  return { ...of, message: Buffer.from(cut(of.message, longestMessage)).toString() };
}
