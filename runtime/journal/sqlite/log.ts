import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type CopyReply, type CopyRequest, copyProgram } from "./log-thread.ts";

/**
 * Fractions of the log's share that are free when a copy begins, for commits during the copy: the initial one, and the bounds.
 */
const firstReserve = 0.5;
const leastReserve = 0.15;
const mostReserve = 0.75;
/** The reserve shrinks at most to this fraction at each copy, because a burst may follow a quiet time. */
const reserveDecay = 0.85;
/**
 * The log is counted each time this fraction of its share may have been written. Estimates of a commit's size were off by a
 * factor of 0.35 to 5, depending on the batch and the page size.
 */
const countShare = 1 / 32;
/** The thread ends after this many looks without a copy. At 1,000 events a second there is a copy every one or two looks. */
const mostIdleLooks = 3;
/** Fraction of the share that is written before the next attempt, after a copy that failed or was blocked by a reader. */
const againShare = 0.125;

/**
 * Keeps the write-ahead log within its share of the disk, by a thread that copies it into the file. Copying syncs for 50 to 100
 * ms, which neither commits nor other work of this process should wait for. The thread is started on demand: it takes 8 MB, and
 * its start costs 37 ms of CPU, 1 ms of it on the event loop.
 */
export class SqliteLog {
  private readonly begin: () => Worker;
  private readonly count: () => number | undefined;
  /** The log's share of the disk, in bytes. */
  limit = 0;
  private thread: Worker | undefined;
  /** Resolves once a thread that was asked to end has released the file. */
  private ending: Promise<void> | undefined;
  private idleLooks = 0;
  private copying: Promise<void> | undefined;
  /** Size of the log in bytes: the last count, and an estimate of what was written since. */
  private length = 0;
  /** The estimated part of `length`. */
  private guessed = 0;
  /** True if a commit waited for the present copy or the last one. */
  private hasWaited = false;
  private reserve = firstReserve;
  private beginAt = 0;
  private failure: Error | undefined;

  /**
   * `count`: returns the log's size in bytes as counted by SQLite, if available.
   * `begin`: starts a thread that copies the log of this file.
   */
  constructor(file: string, count: () => number | undefined, begin = beginThread) {
    this.begin = () => begin(file);
    this.count = count;
  }

  /** A promise while the log is copied, when the file may be locked for a moment. Never rejects. */
  get copied(): Promise<void> | undefined {
    return this.copying;
  }

  /** Adds a commit's estimated bytes. */
  wrote(bytes: number): void {
    this.length += bytes;
    this.guessed += bytes;
    if (this.guessed > this.limit * countShare) this.countLog();
    if (!this.copying && this.length > Math.max(this.beginAt, this.limit * (1 - this.reserve))) this.copy();
  }

  /** True if a commit has to wait for `room`. */
  get isFull(): boolean {
    return this.length > this.limit;
  }

  /** Counts the log, if SQLite can. Returns whether it did. */
  private countLog(): boolean {
    const counted = this.count();
    this.guessed = 0;
    if (counted === undefined) return false;
    this.length = counted;
    return true;
  }

  /** Resolves once the log has room. @throws SQLite's error if the log cannot be copied */
  async room(): Promise<void> {
    this.copy();
    this.hasWaited = true;
    await this.copying;
    if (this.isFull && this.failure) throw this.failure;
  }

  /** Starts a copy, unless one is under way. */
  copy(): void {
    this.copying ??= this.copyOnce().finally(() => {
      this.copying = undefined;
    });
  }

  /** Copies everything in the log at the time of the call. */
  async copyAll(): Promise<void> {
    await this.copying;
    this.copy();
    await this.copying;
  }

  /** Called every few seconds. Ends a thread that has been idle for some time; the next copy starts another. */
  look(): void {
    this.idleLooks++;
    if (!this.copying && this.idleLooks >= mostIdleLooks) this.endThread();
  }

  /** Ends the thread, if there is one. Ignores a failure of the thread, because closing the database copies the rest. */
  async close(): Promise<void> {
    await this.copying;
    this.endThread();
    await this.ending;
  }

  get isRunning(): boolean {
    return this.thread !== undefined || this.ending !== undefined;
  }

  private endThread(): void {
    const { thread, ending: before } = this;
    this.thread = undefined;
    if (!thread) return;
    const exit = once(thread, "exit").catch(() => undefined);
    const ended = Promise.all([before, exit]).then(() => {
      if (this.ending === ended) this.ending = undefined;
    });
    this.ending = ended;
    // The process must not exit before this is done, and may have nothing else that keeps it alive.
    thread.ref();
    thread.postMessage(undefined);
  }

  private async copyOnce(): Promise<void> {
    this.countLog();
    const asked = this.length;
    this.hasWaited = false;
    let copied: number | undefined;
    try {
      const reply = await this.ask({ bytes: this.limit });
      copied = reply.copied;
      this.failure = reply.fault && Object.assign(new Error(reply.fault.message), { errcode: reply.fault.errcode });
    } catch (error) {
      // The thread has died; the next copy starts another.
      this.thread = undefined;
      this.failure = error instanceof Error ? error : new Error(String(error));
    }
    this.idleLooks = 0;
    // Frames written during the copy may lie before or after the restart of the log.
    if (copied !== undefined) this.length = Math.max(0, this.length - asked);
    const isCounted = this.countLog();
    if (copied !== undefined && isCounted) this.learn(copied - asked + this.length);
    this.beginAt = copied === undefined ? this.length + this.limit * againShare : 0;
  }

  /**
   * Adapts the reserve: the next copy leaves twice the room that was written during the last one, or twice the last reserve if
   * that was too small. If little is written during copies, copies become rarer, and so do waits for their final pass. An
   * incomplete copy changes nothing.
   */
  private learn(written: number): void {
    if (!(this.limit > 0)) return;
    const needed = this.hasWaited ? this.reserve : written / this.limit;
    this.reserve = Math.min(mostReserve, Math.max(leastReserve, reserveDecay * this.reserve, 2 * needed));
  }

  private ask(request: CopyRequest): Promise<CopyReply> {
    const thread = this.thread ?? this.start();
    return new Promise((resolve, reject) => {
      const settle = () => thread.off("message", onReply).off("error", onEnd).off("exit", onEnd).unref();
      const onReply = (reply: CopyReply) => {
        settle();
        resolve(reply);
      };
      const onEnd = (reason: unknown) => {
        settle();
        reject(reason instanceof Error ? reason : new Error(`the thread ended with status ${reason}`));
      };
      thread.on("message", onReply).on("error", onEnd).on("exit", onEnd).ref();
      thread.postMessage(request);
    });
  }

  /** Starts the thread. It may die at any time, even while idle; the next copy then starts another. */
  private start(): Worker {
    const thread = this.begin();
    const gone = () => {
      if (this.thread === thread) this.thread = undefined;
    };
    thread.on("error", gone).on("exit", gone);
    this.thread = thread;
    return thread;
  }
}

function beginThread(file: string): Worker {
  return new Worker(copyProgram, { eval: true, env: {}, argv: [], execArgv: [], workerData: { file } });
}
