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

/** Changes that are kept in memory, for the console. */
const mostRecent = 200;

/** Logs each change: one line, and an Event on each function that was changed. */
export class AuditLog {
  private readonly log: Pick<Logger, "info" | "warn">;
  private readonly clock: Pick<Clock, "monotonic" | "now">;
  private readonly last: (AuditEntry & { readonly at: string })[] = [];
  private readonly events: FunctionEvents | undefined;
  private refusedAt = Number.NEGATIVE_INFINITY;

  /** @param events default: no Events are written */
  constructor(log: Pick<Logger, "info" | "warn">, clock: Pick<Clock, "monotonic" | "now">, events?: FunctionEvents) {
    this.log = log;
    this.clock = clock;
    this.events = events;
  }

  /** Creates the audit of a runtime: its lines are written whatever the level of the log is. */
  static on(log: Logger, clock: Pick<Clock, "monotonic" | "now">, events?: FunctionEvents): AuditLog {
    return new AuditLog(log.child({}, { level: "info" }), clock, events);
  }

  /** Logs a change that was carried out, or that failed. */
  record(entry: AuditEntry): void {
    this.log.info(entry, "audit");
    this.last.push({ at: new Date(this.clock.now()).toISOString(), ...entry });
    if (this.last.length > mostRecent) this.last.shift();
    const [reason, words] = reasons[entry.verb] ?? [];
    if (entry.result !== "done" || reason === undefined) return;
    const names = entry.function === undefined ? (entry.functions ?? []) : [entry.function];
    const why = entry.reason === undefined ? "" : `: ${entry.reason}`;
    for (const name of names.slice(0, mostEvents)) {
      this.events?.report(name, { reason, message: `${entry.who} ${words} ${name}${why}` });
    }
  }

  /** The last changes since the start, newest first: those of one function, or all. */
  recent(name?: string): (AuditEntry & { readonly at: string })[] {
    const isOf = ({ function: one, functions = [] }: AuditEntry) => name === one || functions.includes(name ?? "");
    return this.last.filter((entry) => name === undefined || isOf(entry)).reverse();
  }

  /** Logs a change that was refused, at most one a second. */
  refused(entry: Omit<AuditEntry, "result">, why: string): void {
    const now = this.clock.monotonic();
    if (now - this.refusedAt < refusalMs) return;
    this.refusedAt = now;
    this.log.warn({ ...entry, result: `refused: ${why}` }, "audit");
  }
}
