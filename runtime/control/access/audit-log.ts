import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../observe/log.ts";

/** One change that somebody asked for. */
export interface AuditEntry {
  /** The caller: an account, or the data folder's token. */
  readonly who: string;
  /** The number of the console's session. Absent for a program. */
  readonly session?: number;
  /** The kind of change: `deploy`, `rollback`, `undeploy`, `canary`, `promote`, `abort`, `pause`, `resume`, `replay`, `redeliver`, `drop`, `record`, or another write. */
  readonly verb: string;
  readonly function?: string;
  /** The functions, of a change of several. */
  readonly functions?: readonly string[];
  readonly set?: string;
  readonly revision?: number;
  readonly letters?: { readonly count: number; readonly ids: readonly string[] };
  /** The question's body, for the other changes. */
  readonly asked?: unknown;
  /** The reason, in the words of the caller. */
  readonly reason?: string;
  /** `done`, the code of the failure, or `refused: CODE`. */
  readonly result: string;
  /** The peer's address and program, or the commit of a deployment. */
  readonly from?: string;
  /** When it was asked for, if not now, as ISO 8601. */
  readonly at?: string;
}

/** Writes an Event about a function, for people. Never waits and never fails. */
export interface FunctionEvents {
  report(functionName: string, event: { readonly reason: string; readonly message: string }): void;
}

/** The names of Events, by verb. Other changes have no Event. */
const reasons: Readonly<Record<string, readonly [reason: string, words: string]>> = {
  deploy: ["Deployed", "deployed"],
  rollback: ["RolledBack", "rolled back"],
  canary: ["CanaryBegun", "began a canary of"],
  promote: ["CanaryPromoted", "promoted the canary of"],
  abort: ["CanaryAborted", "aborted the canary of"],
  pause: ["Paused", "paused"],
  resume: ["Resumed", "resumed"],
  replay: ["Replayed", "replayed dead letters of"],
  drop: ["Dropped", "dropped dead letters of"],
  redeliver: ["Redelivered", "redelivered events to"],
  record: ["Recorded", "records events of"],
};

/** Refused changes that are logged are at least so far apart, in milliseconds: a program that tries must not fill the log. */
const refusalMs = 1_000;
/** Most functions of one change that get an Event. */
const mostEvents = 20;

/** Changes that are kept in memory, for the console, and the most in one answer. */
const mostRecent = 200;

/** The result of a deployment that the runtime found when it started. Each start logs it again, so it is not kept. */
export const sinceStart = "in use since the start";

/** Keeps lines about changes across restarts, within its limits. */
interface ChangeStore {
  /** False if nothing is kept. */
  readonly isOn: boolean;
  keepChange(number: number, line: string): void;
  /** Newest first. */
  keptChanges(): Promise<readonly { readonly number: number; readonly line: string }[]>;
}

/** A change, with the time when it was asked for. */
type RecentChange = AuditEntry & { readonly at: string };

/** Logs each change: one line, and an Event on each function that was changed. */
export class AuditLog {
  private readonly log: Pick<Logger, "info" | "warn">;
  private readonly clock: Pick<Clock, "monotonic" | "now">;
  /** By number: the time in microseconds, or one more than the last. */
  private readonly last = new Map<number, RecentChange>();
  private readonly events: FunctionEvents | undefined;
  private readonly store: ChangeStore | undefined;
  private refusedAt = Number.NEGATIVE_INFINITY;
  private number = 0;

  /**
   * @param events default: no Events are written
   * @param store default: changes are in memory alone
   */
  constructor(
    log: Pick<Logger, "info" | "warn">,
    clock: Pick<Clock, "monotonic" | "now">,
    events?: FunctionEvents,
    store?: ChangeStore,
  ) {
    this.log = log;
    this.clock = clock;
    this.events = events;
    this.store = store;
  }

  /** Creates the audit of a runtime: its lines are written whatever the level of the log is. */
  static on(
    log: Logger,
    clock: Pick<Clock, "monotonic" | "now">,
    events?: FunctionEvents,
    store?: ChangeStore,
  ): AuditLog {
    return new AuditLog(log.child({}, { level: "info" }), clock, events, store);
  }

  /** Logs a change that was carried out, or that failed. */
  record(entry: AuditEntry): void {
    this.log.info(entry, "audit");
    this.remember(entry);
    const [reason, words] = reasons[entry.verb] ?? [];
    if (entry.result !== "done" || reason === undefined) return;
    const names = entry.function === undefined ? (entry.functions ?? []) : [entry.function];
    const why = entry.reason === undefined ? "" : `: ${entry.reason}`;
    for (const name of names.slice(0, mostEvents)) {
      this.events?.report(name, { reason, message: `${entry.who} ${words} ${name}${why}` });
    }
  }

  /** Returns the last changes, newest first: those of one function, or all. With a store, those before the start, too. */
  async recent(name?: string): Promise<RecentChange[]> {
    const kept = this.store?.isOn ? await this.store.keptChanges() : [];
    const found = new Map(kept.flatMap(({ number, line }) => readChange(number, line)));
    for (const [number, entry] of this.last) found.set(number, entry);
    const isOf = ({ function: one, functions = [] }: AuditEntry) => name === one || functions.includes(name ?? "");
    const newestFirst = [...found].sort(([a], [b]) => b - a).map(([, entry]) => entry);
    return newestFirst.filter((entry) => name === undefined || isOf(entry)).slice(0, mostRecent);
  }

  /** Whether changes before the start are known. */
  get isKept(): boolean {
    return this.store?.isOn ?? false;
  }

  private remember(entry: AuditEntry): void {
    const now = this.clock.now();
    this.number = Math.max(this.number + 1, Math.round(now * 1000));
    const recent = { at: new Date(now).toISOString(), ...entry };
    this.last.set(this.number, recent);
    for (const [oldest] of this.last) if (this.last.size > mostRecent) this.last.delete(oldest);
    // `asked` may be an object with values that no file should have.
    const { asked: _, ...shown } = recent;
    if (entry.result !== sinceStart) this.store?.keepChange(this.number, JSON.stringify(shown));
  }

  /** Logs a change that was refused, at most one a second. */
  refused(entry: Omit<AuditEntry, "result">, why: string): void {
    const now = this.clock.monotonic();
    if (now - this.refusedAt < refusalMs) return;
    this.refusedAt = now;
    this.log.warn({ ...entry, result: `refused: ${why}` }, "audit");
  }
}

const keptSchema = z.looseObject({ who: z.string(), verb: z.string(), result: z.string(), at: z.string() });

/** Reads a kept line. A line that cannot be read is left out. */
function readChange(number: number, line: string): [number, RecentChange][] {
  try {
    return [[number, keptSchema.parse(JSON.parse(line))]];
  } catch {
    return [];
  }
}
