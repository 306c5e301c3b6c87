import type { ResourceVersion } from "../../base/resource-version.ts";
import { cut } from "../../base/wording.ts";
import type { EventType } from "../../manifest/function.ts";
import type { Outcome } from "../delivery/delivery.ts";
import type { EngineLog } from "../delivery/observer.ts";
import type { HeldBack } from "../filter/reason.ts";

/** The last entries of many, at most so many of them. */
export class Ring<T> {
  private readonly limit: number;
  private readonly entries: T[] = [];
  /** Where the next one goes. */
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

/** Events of each sort that a function keeps. */
const mostKept = 200;
/** Characters of a key: Kubernetes allows 63 of a namespace and 253 of a name. An event with more is not kept. */
const longestKey = 400;
/** Characters of a message. */
const longestMessage = 300;

/** What is kept of an event: no body, and nothing that holds one. */
interface KeptEvent {
  readonly trigger: string;
  /** `namespace/name`. */
  readonly key: string;
  readonly type: EventType;
  readonly resourceVersion: ResourceVersion;
  /** Epoch milliseconds: when it was filtered, or when its attempt ended. */
  readonly at: number;
  /** Counts what is kept of both sorts: of two in one millisecond the later one has more. */
  readonly order: number;
}

/** An event that was held back. */
export interface FilteredEvent extends KeptEvent {
  readonly why: HeldBack;
  /** So many were held back for this reason, of which this is the last; they left no record of their own. */
  readonly count: number;
}

/** An attempt that ended by itself. */
export interface PastRun extends KeptEvent {
  /** The event's: the handler's idempotency key, which the log has as `run`. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  readonly outcome: "ok" | "failed" | "permanent";
  readonly durationMs: number;
  /** Of one that failed: the error's name and message, cut. */
  readonly error: string | undefined;
}

/** How many of the last events that were held back had one reason. */
export interface HeldBackCount {
  readonly trigger: string;
  readonly why: HeldBack["type"];
  /** Of the condition that decided. */
  readonly condition?: string;
  readonly count: number;
  /** Epoch milliseconds of the last one. */
  readonly last: number;
}

/** The part of an event that is kept. */
export interface TracedEvent {
  readonly view: { readonly trigger: { readonly name: string } };
  readonly key: string;
  readonly type: EventType;
  readonly meta: { readonly resourceVersion: ResourceVersion };
  readonly id: string;
}

type FinishedOutcome = Exclude<Outcome, { readonly type: "interrupted" | "unbegun" }>;

/** The last events of a function that were held back, and its last attempts: for a person who asks why. In memory alone. */
export class History {
  private readonly functionName: string;
  /** Undefined where nobody reads a line for each event. */
  private readonly log: EngineLog | undefined;
  private readonly heldBack = new Ring<FilteredEvent>(mostKept);
  private readonly attempts = new Ring<PastRun>(mostKept);
  private order = 0;

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

  /** The last events that were held back, by their reasons. */
  count(): HeldBackCount[] {
    const counts = new Map<string, HeldBackCount & { count: number }>();
    // One condition's are one object, and often stand in a row: a scrape asks each function.
    let before: { why: HeldBack; trigger: string; counted: { count: number } } | undefined;
    for (const { trigger, why, at, count } of this.heldBack) {
      if (before?.why !== why || before.trigger !== trigger) {
        const condition = "condition" in why ? { condition: why.condition } : {};
        const key = JSON.stringify([trigger, why.type, condition]);
        const counted = counts.get(key) ?? { trigger, why: why.type, ...condition, count: 0, last: at };
        counts.set(key, counted);
        before = { why, trigger, counted };
      }
      before.counted.count += count;
    }
    return [...counts.values()];
  }

  /** Whether each event is to be told to the log. */
  get tellsEach(): boolean {
    return this.log !== undefined;
  }

  /** On the path of every event that is held back. `at`: epoch milliseconds; `count`: this one, and those before it without a record. */
  held({ view, key, type, meta }: Omit<TracedEvent, "id">, why: HeldBack, at: number, count = 1): void {
    const trigger = view.trigger.name;
    const { resourceVersion } = meta;
    if (key.length <= longestKey) {
      this.heldBack.push({ trigger, key, type, resourceVersion, at, order: this.order++, why: short(why), count });
    }
    if (!this.log) return;
    // A condition's message is in the warning that the log has of it now and then.
    const condition = "condition" in why ? { condition: why.condition } : {};
    const fields = { function: this.functionName, trigger, object: key, type, resourceVersion, why: why.type };
    this.log.trace?.({ ...fields, ...condition }, "event filtered");
  }

  /** An attempt has ended. `at`: epoch milliseconds. */
  ran({ view, key, type, meta, id }: TracedEvent, attempt: number, outcome: FinishedOutcome, at: number): void {
    if (key.length > longestKey) return;
    const error = outcome.type === "ok" ? undefined : short({ message: said(outcome.error) }).message;
    const { durationMs } = outcome;
    const { resourceVersion } = meta;
    this.attempts.push({
      id,
      trigger: view.trigger.name,
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

/** With a message in memory of its own where it had to be cut: a part of a text keeps all of it alive. */
function short<T extends object>(of: T): T {
  if (!("message" in of) || typeof of.message !== "string" || of.message.length <= longestMessage) return of;
  return { ...of, message: Buffer.from(cut(of.message, longestMessage)).toString() };
}
