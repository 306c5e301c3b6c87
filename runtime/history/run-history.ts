import { join } from "node:path";
import type { CallList } from "../access/observer.ts";
import type { Clock, Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { CollectedLine, KeptLine, LineCollector } from "../observe/function-log.ts";
import type { Logger } from "../observe/log.ts";
import { type EndedRun, type RunCollector, runKey } from "../observe/run-log.ts";
import type { Caller } from "../sandbox/host-calls.ts";
import { HistoryFile, isBusy, type NewRow } from "./history-file.ts";
import { type HistoryRun, type RowParts, readRun, shortColumns, valuesOf, wholeColumns } from "./history-row.ts";
import { noteworthy } from "./noteworthy.ts";
import type { SqlValue } from "./sql-thread.ts";

/** Milliseconds between two batches. */
const batchMs = 500;
/**
 * The most that is collected between two batches, for a history of 64 MiB or more; a smaller one takes less. Attempts, of which a failed one
 * counts 16, and characters of log lines.
 */
const mostCollected = 8_192;
const mostCharacters = 4 * 2 ** 20;
const wholeBytes = 64 * 2 ** 20;
/** Calls of running attempts are listed for this many at a time. */
const mostRunning = 10_000;
/** Milliseconds between two looks for rows that are too old. */
const expireMs = 60_000;
/** Milliseconds for which another process may have the file: the one before, while it ends. */
const patienceMs = 60_000;
/** Maximum bytes without a disk. */
const mostInMemory = 16 * 2 ** 20;
/** Milliseconds before a run's begin in which its first line may be dated, because it is measured by another clock. */
const marginMs = 2_000;
/** Log lines in one answer, and their characters. */
const mostLines = 5_000;
const mostLineCharacters = 4 * 2 ** 20;

/** Limits of the history. */
export interface HistoryLimits {
  /** Maximum bytes on the disk, or 16 MiB in memory if that is less. */
  readonly bytes: number;
  /** Maximum age of a run or a log line, in milliseconds. */
  readonly ageMs: number;
}

/** Why something is missing from the history. `quiet`: successful runs without calls and log lines beyond the rate. */
type HistoryDropped = "quiet" | "full" | "failed";

export interface RunHistoryParts extends RowParts {
  readonly limits: HistoryLimits;
  /** The data folder; `undefined` without a disk. */
  readonly folder: string | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly dropped?: (reason: HistoryDropped, count: number) => void;
}

/** A question about runs. Times are in epoch milliseconds. */
export interface HistoryQuestion {
  readonly function?: string | undefined;
  /** The event's id. */
  readonly id?: string | undefined;
  readonly outcome?: HistoryRun["outcome"] | "any-failure" | undefined;
  /** Part of `namespace/name`. */
  readonly object?: string | undefined;
  readonly trigger?: string | undefined;
  /** Runs that ended at this time or later, and before that one. */
  readonly since?: number | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

/**
 * The runs and log lines of the last days, on the disk. They are collected in memory and written in batches by a thread. Anything beyond the room between
 * two batches is dropped and counted: no event waits for the history. A file that cannot be read or written ends the
 * history with one warning.
 */
export class RunHistory {
  readonly runs: RunCollector;
  readonly lines: LineCollector;
  private readonly parts: RunHistoryParts;
  private readonly place: string | undefined;
  private readonly rooms: { readonly runs: number; readonly lines: number };
  private file: HistoryFile | undefined;
  private opening: Promise<boolean> | undefined;
  private writing: Promise<void> | undefined;
  private timer: Timer | undefined;
  private hasBegun = false;
  private number = 0;
  private busySince: number | undefined;
  private expiredAt = Number.NEGATIVE_INFINITY;
  private isBroken = false;
  private isClosed = false;

  constructor(parts: RunHistoryParts) {
    this.parts = parts;
    const share = Math.min(1, parts.limits.bytes / wholeBytes);
    this.rooms = { runs: Math.ceil(share * mostCollected), lines: Math.ceil(share * mostCharacters) };
    this.runs = { ended: [], room: this.rooms.runs, dropped: 0, calls: new Map() };
    this.lines = { lines: [], room: this.rooms.lines, dropped: 0 };
    this.place = parts.folder === undefined ? undefined : join(parts.folder, "history.db");
  }

  /** True unless its file is broken. Without it, commands show what the engine has in memory. */
  get isOn(): boolean {
    return !this.isBroken && !this.isClosed;
  }

  /** Returns where the calls of an attempt are listed. */
  listOf(caller: Caller): CallList | undefined {
    const { calls } = this.runs;
    const key = runKey(caller);
    const found = calls.get(key);
    if (found || calls.size >= mostRunning || !this.isOn) return found;
    const list: CallList = { calls: [], more: 0 };
    calls.set(key, list);
    return list;
  }

  /** Begins to write. Until then nothing is read either. Only the process that runs the functions may: another one would wait for the file. */
  begin(): void {
    if (this.hasBegun || !this.isOn) return;
    this.hasBegun = true;
    this.rearm();
  }

  /**
   * Returns the runs that match, newest first; with their calls, causes and batches if the question names an id. Empty if the history
   * has ended.
   */
  async find(question: HistoryQuestion): Promise<HistoryRun[]> {
    const { sql, values } = this.queryOf(question);
    return (await this.query(sql, values)).flatMap((row) => readRun(row));
  }

  /**
   * Returns the log lines of one run, oldest first.
   * @param attempts its attempts, which limit the time that is searched. None: all of the function's lines are
   */
  async linesOf(functionName: string, id: string, attempts: readonly HistoryRun[] = []): Promise<KeptLine[]> {
    const begins = attempts.map(({ at, took }) => at - took);
    const from = Math.max(this.oldest, attempts.length === 0 ? 0 : (Math.min(...begins) - marginMs) * 1000);
    return this.newestLines("run = ? AND function = ? AND number >= ?", [id, functionName, from]);
  }

  /**
   * Returns the newest log lines of one function, or of all, after a number and since a time, oldest first: at most 5,000, of 4 MiB.
   * @param since in epoch milliseconds
   */
  async linesAfter(functionName: string | undefined, after: number, since = 0): Promise<KeptLine[]> {
    const from = Math.max(after + 1, since * 1000, this.oldest);
    if (functionName === undefined) return this.newestLines("number >= ?", [from]);
    return this.newestLines("function = ? AND number >= ?", [functionName, from]);
  }

  /** Returns the newest lines that match, oldest first, within the bounds of one answer. */
  private async newestLines(where: string, values: readonly SqlValue[]): Promise<KeptLine[]> {
    const sum = "sum(length(line)) OVER (ORDER BY number DESC) AS total";
    const newest = `SELECT number, ${sum} FROM lines WHERE ${where} ORDER BY number DESC LIMIT ${mostLines}`;
    const chosen = `SELECT number FROM (${newest}) WHERE total <= ${mostLineCharacters}`;
    const sql = `SELECT number, line FROM lines WHERE number IN (${chosen}) ORDER BY number`;
    return (await this.query(sql, values)).map(readLine);
  }

  /** Writes what is collected, and closes the file. Never rejects. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.timer?.cancel();
    await this.writing;
    if (this.hasBegun && this.isOn) await this.flush();
    this.isClosed = true;
    await this.file?.close();
  }

  /** Writes what is collected. Never rejects. */
  async flush(): Promise<void> {
    if (this.runs.ended.length + this.lines.lines.length === 0) return;
    const isOpen = await this.opened();
    const rows = this.take();
    if (!isOpen) {
      this.drop(this.isBroken ? "failed" : "full", rows.runs.length + rows.lines.length);
      return;
    }
    await this.attempt(async (file) => {
      await file.write(rows);
      const now = this.parts.clock.monotonic();
      if (now - this.expiredAt < expireMs) return;
      if (!(await file.expire(this.oldest))) this.expiredAt = now;
    });
  }

  private rearm(): void {
    this.timer = this.parts.clock.after(
      batchMs,
      () => {
        if (!this.isOn) return;
        if (!this.writing && this.runs.ended.length + this.lines.lines.length > 0) {
          this.writing = this.flush().finally(() => {
            this.writing = undefined;
          });
        }
        this.rearm();
      },
      { unref: true },
    );
  }

  /** Takes what is collected, as rows. */
  private take(): { readonly runs: readonly NewRow[]; readonly lines: readonly NewRow[] } {
    const { runs, lines } = this;
    this.drop("full", runs.dropped + lines.dropped);
    const ended = runs.ended.splice(0);
    const said = lines.lines.splice(0);
    Object.assign(runs, { room: this.rooms.runs, dropped: 0 });
    Object.assign(lines, { room: this.rooms.lines, dropped: 0 });
    const kept = noteworthy(ended, said);
    this.drop("quiet", ended.length - kept.length);
    return { runs: kept.map((run) => this.rowOf(run)), lines: said.map(lineRow) };
  }

  private rowOf(run: EndedRun): NewRow {
    this.number = Math.max(this.number + 1, run.endedAt * 1000);
    const values = valuesOf(run, this.number, this.parts);
    const length = values
      .slice(-2)
      .reduce((sum: number, text) => sum + (typeof text === "string" ? text.length : 0), 0);
    return { function: run.function, values, length };
  }

  /** The lowest number that is not too old. */
  private get oldest(): number {
    return Math.max(0, this.parts.clock.now() - this.parts.limits.ageMs) * 1000;
  }

  private queryOf(question: HistoryQuestion): { readonly sql: string; readonly values: readonly SqlValue[] } {
    const { id, outcome, object, since = 0, before, limit } = question;
    const values: SqlValue[] = [Math.max(since * 1000, this.oldest)];
    const conditions = ["number >= ?"];
    const demand = (condition: string, value: SqlValue | undefined) => {
      if (value === undefined) return;
      conditions.push(condition);
      values.push(value);
    };
    demand("number < ?", before === undefined ? undefined : before * 1000);
    demand("function = ?", question.function);
    demand("run = ?", id);
    demand("trigger = ?", question.trigger);
    demand("instr(object, ?) > 0", object);
    if (outcome === "any-failure") conditions.push("outcome <> 'ok'");
    else if (outcome === "ok") demand("outcome = ?", outcome);
    // The first condition lets SQLite use the index of failures.
    else if (outcome !== undefined) demand("outcome <> 'ok' AND outcome = ?", outcome);
    const where = conditions.join(" AND ");
    return {
      sql: `SELECT ${id === undefined ? shortColumns : wholeColumns} FROM runs WHERE ${where} ORDER BY number DESC LIMIT ?`,
      values: [...values, limit],
    };
  }

  /** Returns rows, after everything that was collected is written. */
  private async query(sql: string, values: readonly SqlValue[]) {
    if (!this.hasBegun) return [];
    await this.writing;
    await this.flush();
    if (!(await this.opened())) return [];
    return (await this.attempt((file) => file.query(sql, values))) ?? [];
  }

  /** Opens the file, unless it is open. Returns whether it is. */
  private opened(): Promise<boolean> {
    if (!this.isOn) return Promise.resolve(false);
    this.opening ??= this.open().then((isOpen) => {
      if (!isOpen) this.opening = undefined;
      return isOpen;
    });
    return this.opening;
  }

  private async open(): Promise<boolean> {
    const { limits, clock } = this.parts;
    const bytes = this.place === undefined ? Math.min(limits.bytes, mostInMemory) : limits.bytes;
    const file = new HistoryFile({ file: this.place, bytes });
    try {
      await file.open();
      this.number = await file.lastNumber();
    } catch (error) {
      await file.close();
      const now = clock.monotonic();
      this.busySince ??= now;
      if (!isBusy(error) || now - this.busySince > patienceMs) this.breakOff(error);
      return false;
    }
    this.file = file;
    return true;
  }

  /** Does something with the open file. A failure ends the history. */
  private async attempt<T>(work: (file: HistoryFile) => Promise<T>): Promise<T | undefined> {
    if (!this.file || this.isBroken) return undefined;
    try {
      return await work(this.file);
    } catch (error) {
      this.breakOff(error);
      return undefined;
    }
  }

  private breakOff(error: unknown): void {
    if (this.isBroken) return;
    this.isBroken = true;
    this.timer?.cancel();
    Object.assign(this.runs, { room: 0 });
    Object.assign(this.lines, { room: 0 });
    const place = this.place === undefined ? {} : { place: { file: this.place } };
    const fault = new WatchfireError("WF_HISTORY_BROKEN", { what: systemReason(error), ...place, cause: error });
    this.parts.log.warn({ error: fault.message, code: fault.code }, "the history of runs is off");
    void this.file?.close();
  }

  private drop(reason: HistoryDropped, count: number): void {
    if (count > 0) this.parts.dropped?.(reason, count);
  }
}

const readLine = ({ number, line }: { readonly [name: string]: SqlValue }): KeptLine => ({
  number: Number(number),
  line: String(line),
});

const lineRow = ({ number, function: name, run, line }: CollectedLine): NewRow => ({
  function: name,
  values: [number, name, run ?? null, line],
  length: line.length,
});
