import { join } from "node:path";
import type { CallList } from "../access/observer.ts";
import { type Clock, pause, type Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { CollectedLine, KeptLine, LineCollector } from "../observe/function-log.ts";
import type { Logger } from "../observe/log.ts";
import { type EndedRun, mostBodyBytes, type RunCollector, runKey } from "../observe/run-log.ts";
import type { Caller } from "../sandbox/host-calls.ts";
import { HistoryFile, isBusy, NewerHistory, type NewRow } from "./history-file.ts";
import { type HistoryRun, type RowParts, readRun, shortColumns, valuesOf, wholeColumns } from "./history-row.ts";
import { noteworthy, QuietRate } from "./noteworthy.ts";
import { RecentBodies } from "./recent-bodies.ts";
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
/** Milliseconds that the end waits for the disk. */
const closeMs = 2_000;
/** Characters that are passed to the thread at a time: their text takes 1 ms to make. */
const partCharacters = 2 ** 17;
/** Characters of a row beyond its long texts. */
const rowCharacters = 250;
/** Maximum bytes without a disk. */
const mostInMemory = 16 * 2 ** 20;
/** Redelivered runs of a batch whose earlier attempt is looked for, and those that are remembered. */
const mostRepeated = 200;
/** Milliseconds before a run's begin in which its first line may be dated, because it is measured by another clock. */
const marginMs = 2_000;
/** Changes that wait for a batch, and those in one answer. */
const mostWaitingChanges = 200;
const mostChanges = 1_000;
/** Log lines in one answer, and their characters. */
const mostLines = 5_000;
const mostLineCharacters = 4 * 2 ** 20;
/** Log lines in which warnings are looked for, for one list of runs. */
const mostSearched = 20_000;
/** Whether a line is a warning or an error. Each line begins with its level. */
const isWarning = `substr(line, 1, 15) IN ('{"level":"warn"', '{"level":"error', '{"level":"fatal')`;

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
  /** Part of the kind, a space and `namespace/name`, in upper or lower case. */
  readonly object?: string | undefined;
  readonly trigger?: string | undefined;
  /** Part of a log line of the run, in upper or lower case. */
  readonly log?: string | undefined;
  /** Only runs with a log line that is a warning or an error. */
  readonly logged?: "warning" | undefined;
  /** Runs that ended at this time or later, and before that one. */
  readonly since?: number | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

/**
 * The runs, log lines and changes of the last days, on the disk. They are collected in memory and written in batches by a thread. Anything
 * beyond the room between two batches is dropped and counted: no event waits for the history. A file that cannot be read or
 * written ends the history with one warning.
 */
export class RunHistory {
  readonly runs: RunCollector;
  readonly lines: LineCollector;
  private readonly parts: RunHistoryParts;
  private readonly place: string | undefined;
  private readonly rooms: { readonly runs: number; readonly lines: number };
  private file: HistoryFile | undefined;
  private opening: Promise<boolean> | undefined;
  /** Resolves once all batches are written. */
  private writing: Promise<void> = Promise.resolve();
  /** How many of them are not yet. */
  private batches = 0;
  private readonly quiet = new QuietRate();
  private readonly bodies = new RecentBodies();
  /** The code frames of the batch, by function and stack. */
  private readonly frames = new Map<string, string | undefined>();
  private timer: Timer | undefined;
  private hasBegun = false;
  private number = 0;
  private busySince: number | undefined;
  private expiredAt = Number.NEGATIVE_INFINITY;
  private isBroken = false;
  private fault: WatchfireError | undefined;
  private isClosed = false;
  private changed: NewRow[] = [];
  /** Redelivered runs whose earlier attempt was looked for, by `runKey`. */
  private readonly repeated = new Set<string>();

  constructor(parts: RunHistoryParts) {
    this.parts = parts;
    const share = Math.min(1, parts.limits.bytes / wholeBytes);
    this.rooms = { runs: Math.ceil(share * mostCollected), lines: Math.ceil(share * mostCharacters) };
    this.runs = {
      ended: [],
      room: this.rooms.runs,
      dropped: 0,
      bodyRoom: mostBodyBytes,
      quiet: new Map(),
      passed: 0,
      calls: new Map(),
    };
    this.lines = { lines: [], room: this.rooms.lines, dropped: 0 };
    this.place = parts.folder === undefined ? undefined : join(parts.folder, "history.db");
  }

  /** True unless its file is broken. Without it, commands show what the engine has in memory. */
  get isOn(): boolean {
    return !this.isBroken && !this.isClosed;
  }

  /** Why it is off; `undefined` if it is on. */
  get trouble(): WatchfireError | undefined {
    return this.fault;
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

  /** Begins to write; until then nothing is read either. Only for the process that runs the functions, because it locks the file. */
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
    const rows = await this.query(sql, values);
    return (await this.attempt(async () => rows.map(readRun))) ?? [];
  }

  /** Returns those of the runs, newest first, that have a warning or an error among the last 20,000 lines of their time. */
  async warnedOf(runs: readonly HistoryRun[]): Promise<ReadonlySet<HistoryRun>> {
    const [newest, oldest] = [runs[0], runs.at(-1)];
    if (!newest || !oldest) return new Set();
    const last = `SELECT function, run, line FROM lines WHERE number BETWEEN ? AND ? ORDER BY number DESC LIMIT ${mostSearched}`;
    const sql = `SELECT DISTINCT function, run FROM (${last}) WHERE run IS NOT NULL AND ${isWarning}`;
    const from = Math.max(this.oldest, (oldest.at - oldest.took - marginMs) * 1000);
    const rows = await this.query(sql, [from, (newest.at + marginMs) * 1000]);
    const found = new Set(rows.map(({ function: name, run }) => runKey({ function: String(name), id: String(run) })));
    return new Set(runs.filter((each) => found.has(runKey({ function: each.function, id: each.run }))));
  }

  /** Returns the last attempt of a recent run with the objects that it received; `undefined` if they are no longer in memory. */
  async received(functionName: string, id: string): Promise<EndedRun | undefined> {
    await this.flush();
    return this.bodies.find(functionName, id);
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

  /** Keeps a line about a change that somebody asked for, until it is too old, or the file is full of them. */
  keepChange(number: number, line: string): void {
    if (!this.isOn || this.changed.length >= mostWaitingChanges) return;
    this.changed.push({ function: "", values: [number, "", line], length: line.length });
  }

  /** Returns the last 1,000 of these lines, newest first. */
  async keptChanges(): Promise<KeptLine[]> {
    const sql = `SELECT number, line FROM changes WHERE number >= ? ORDER BY number DESC LIMIT ${mostChanges}`;
    return (await this.query(sql, [this.oldest])).map(readLine);
  }

  /** Returns the newest lines that match, oldest first, within the bounds of one answer. */
  private async newestLines(where: string, values: readonly SqlValue[]): Promise<KeptLine[]> {
    const sum = "sum(length(line)) OVER (ORDER BY number DESC) AS total";
    const newest = `SELECT number, ${sum} FROM lines WHERE ${where} ORDER BY number DESC LIMIT ${mostLines}`;
    const chosen = `SELECT number FROM (${newest}) WHERE total <= ${mostLineCharacters}`;
    const sql = `SELECT number, line FROM lines WHERE number IN (${chosen}) ORDER BY number`;
    return (await this.query(sql, values)).map(readLine);
  }

  /** Writes the collected runs and lines, and closes the file, within two seconds. Never rejects. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.timer?.cancel();
    const tooLate = new AbortController();
    const written = this.hasBegun && this.isOn ? this.flush() : this.writing;
    const opened = written.then(() => this.opening);
    const closed = opened.then(() => {
      this.isClosed = true;
      return this.file?.close();
    });
    const late = pause(this.parts.clock, closeMs, tooLate.signal).catch(() => undefined);
    await Promise.race([closed, late]);
    this.isClosed = true;
    tooLate.abort();
  }

  /** Writes the collected runs and lines, after the batches before. Never rejects. */
  flush(): Promise<void> {
    this.batches++;
    this.writing = this.writing.then(() => this.writeBatch()).finally(() => this.batches--);
    return this.writing;
  }

  private async writeBatch(): Promise<void> {
    if (!this.hasNews) return;
    const isOpen = await this.opened();
    const { runs: taken, lines } = this.take();
    let runs = taken;
    const changes = isOpen || this.isBroken ? this.changed.splice(0) : [];
    if (!isOpen) {
      this.drop(this.isBroken ? "failed" : "full", runs.length + lines.length);
      return;
    }
    if (changes.length > 0) await this.attempt((file) => file.write({ changes }));
    const again = runs.filter((run) => run.redelivered && run.attempt > 1 && !this.repeated.has(runKey(run)));
    if (again.length > 0) runs = await this.withInterrupted(runs, again.slice(0, mostRepeated));
    for (const part of partsOf(lines.map(lineRow), runs, (run) => this.rowOf(run))) {
      // Each part is of some milliseconds, and the event loop is free between two of them.
      await this.attempt((file) => file.write(part));
    }
    const now = this.parts.clock.monotonic();
    if (now - this.expiredAt < expireMs) return;
    const isDone = await this.attempt(async (file) => !(await file.expire(this.oldest)));
    if (isDone) this.expiredAt = now;
  }

  /**
   * Adds the attempts that an earlier process has not ended: a process that is killed records nothing.
   * @param again the redelivered runs among `runs` that may have one
   */
  private async withInterrupted(runs: readonly EndedRun[], again: readonly EndedRun[]): Promise<readonly EndedRun[]> {
    for (const run of again) this.repeated.add(runKey(run));
    for (const oldest of this.repeated) if (this.repeated.size > mostRepeated) this.repeated.delete(oldest);
    const listOf = (values: readonly string[]) => values.map(() => "?").join(", ");
    const [names, ids] = [[...new Set(again.map((run) => run.function))], again.map(({ id }) => id)];
    const sql = `SELECT function, run FROM runs WHERE function IN (${listOf(names)}) AND run IN (${listOf(ids)})`;
    const rows = await this.attempt((file) => file.query(sql, [...names, ...ids]));
    const known = new Set(rows?.map(({ function: name, run }) => runKey({ function: String(name), id: String(run) })));
    if (!rows) return runs;
    const asked = new Set(again);
    return runs.flatMap((run) => {
      const key = runKey(run);
      const isLost = asked.has(run) && !known.has(key);
      // A later attempt of this run has one before it.
      known.add(key);
      return isLost ? [interruptedBefore(run), run] : [run];
    });
  }

  private rearm(): void {
    this.timer = this.parts.clock.after(
      batchMs,
      () => {
        if (!this.isOn) return;
        if (this.hasNews && this.batches === 0) void this.flush();
        // Before the first run, because the start of the thread takes CPU time from the events that arrive meanwhile.
        else if (!this.file) void this.opened();
        this.rearm();
      },
      { unref: true },
    );
  }

  private get hasNews(): boolean {
    return this.runs.ended.length + this.lines.lines.length + this.changed.length > 0;
  }

  /** Takes the collected runs that are to be written, and all lines. */
  private take(): { readonly runs: readonly EndedRun[]; readonly lines: readonly CollectedLine[] } {
    const { runs, lines, isBroken, rooms } = this;
    this.drop("full", runs.dropped + lines.dropped);
    const ended = runs.ended.splice(0);
    const said = lines.lines.splice(0);
    this.drop("quiet", runs.passed);
    runs.quiet.clear();
    Object.assign(runs, { room: isBroken ? 0 : rooms.runs, bodyRoom: mostBodyBytes, dropped: 0, passed: 0 });
    Object.assign(lines, { room: isBroken ? 0 : rooms.lines, dropped: 0 });
    this.quiet.refill(this.parts.clock.monotonic());
    const kept = noteworthy(ended, said, this.quiet);
    this.drop("quiet", ended.length - kept.length);
    this.bodies.add(kept);
    this.frames.clear();
    return { runs: kept, lines: said };
  }

  private rowOf(run: EndedRun): NewRow {
    this.number = Math.max(this.number + 1, Math.round(run.endedAt * 1000));
    const values = valuesOf(run, this.number, { ...this.parts, frameOf: (name, stack) => this.frameOf(name, stack) });
    const length = values
      .slice(-4)
      .reduce((sum: number, text) => sum + (typeof text === "string" ? text.length : 0), 0);
    return { function: run.function, values, length };
  }

  /** The runs of a batch often fail at one place, and a frame is searched in the whole source. */
  private frameOf(name: string, stack: string): string | undefined {
    // Without the message, which may differ each time.
    const key = `${name}${stack.slice(Math.max(0, stack.indexOf("\n    at ")))}`;
    if (this.frames.has(key)) return this.frames.get(key);
    const frame = this.parts.frameOf(name, stack);
    this.frames.set(key, frame);
    return frame;
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
    demand("instr(lower(kind || ' ' || object), ?) > 0", object?.trim().toLowerCase());
    const lines = question.function === undefined ? "" : "function = ? AND ";
    const ofFunction = question.function === undefined ? [] : [question.function];
    const demandLine = (condition: string, ...more: SqlValue[]) => {
      conditions.push(`run IN (SELECT run FROM lines WHERE ${lines}number >= ? AND run IS NOT NULL AND ${condition})`);
      values.push(...ofFunction, Math.max((since - marginMs) * 1000, this.oldest), ...more);
    };
    if (question.logged) demandLine(isWarning);
    if (question.log !== undefined) demandLine("instr(lower(line), ?) > 0", question.log.toLowerCase());
    if (outcome === "any-failure") conditions.push("outcome <> 'ok' AND outcome <> 'interrupted'");
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
    const code = error instanceof NewerHistory ? "WF_HISTORY_NEWER" : "WF_HISTORY_BROKEN";
    const fault = new WatchfireError(code, { what: systemReason(error), ...place, cause: error });
    this.fault = fault;
    this.parts.log.warn({ error: fault.message, code: fault.code }, "the history of runs is off");
    void this.file?.close();
  }

  private drop(reason: HistoryDropped, count: number): void {
    if (count > 0) this.parts.dropped?.(reason, count);
  }
}

/** The attempt before a redelivered one, of which no end is on record. When it ended is not known: it is listed at the start of the next one. */
const interruptedBefore = ({ beganAt, ...run }: EndedRun): EndedRun => ({
  ...run,
  attempt: run.attempt - 1,
  redelivered: false,
  ...{ receivedAt: undefined, beganAt, endedAt: beganAt, outcome: { type: "interrupted" } },
  ...{
    calls: undefined,
    trace: undefined,
    cpuMs: undefined,
    heapBytes: undefined,
    body: undefined,
    oldBody: undefined,
  },
});

const readLine = ({ number, line }: { readonly [name: string]: SqlValue }): KeptLine => ({
  number: Number(number),
  line: String(line),
});

const lineRow = ({ number, function: name, run, line }: CollectedLine): NewRow => ({
  function: name,
  values: [number, name, run ?? null, line],
  length: line.length,
});

/** Splits a batch into parts. A run becomes a row only when its part is due. */
function* partsOf(lines: readonly NewRow[], runs: readonly EndedRun[], rowOf: (run: EndedRun) => NewRow) {
  let part: { runs: NewRow[]; lines: NewRow[] } = { runs: [], lines: [] };
  let characters = 0;
  const add = (to: "runs" | "lines", row: NewRow) => {
    part[to].push(row);
    characters += row.length + rowCharacters;
  };
  const isFull = () => characters > partCharacters;
  for (const line of lines) {
    add("lines", line);
    if (!isFull()) continue;
    yield part;
    [part, characters] = [{ runs: [], lines: [] }, 0];
  }
  for (const run of runs) {
    add("runs", rowOf(run));
    if (!isFull()) continue;
    yield part;
    [part, characters] = [{ runs: [], lines: [] }, 0];
  }
  if (characters > 0) yield part;
}
