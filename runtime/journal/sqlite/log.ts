import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type CopyReply, type CopyRequest, copyProgram } from "./log-thread.ts";

/** Shares of the log's share that are left, when a copy begins, for what is committed meanwhile: for the first one, and the bounds. */
const firstReserve = 0.5;
const leastReserve = 0.15;
const mostReserve = 0.75;
/** What is left next is no less than this part of what was left last: a burst may follow a quiet time. */
const reserveDecay = 0.85;
/**
 * The log is counted each time that so much of its share may have been written. A guess at what a commit writes was 0.35 to 5
 * times of it, by the batch and by the size of pages.
 */
const countShare = 1 / 32;
/** A thread that copied nothing for so many looks ends. At 1,000 events a second a copy comes each look or two. */
const mostIdleLooks = 3;
/** After a copy that failed, or that a reader held back, so much more of the share is written before the next is tried. */
const againShare = 0.125;

/**
 * Keeps the write-ahead log within its share of the disk. It is copied into the file on a thread, which begins when it
 * is needed. Copying syncs: 50 to 100 ms that no commit, and no other work of this process, is to wait for. A thread takes
 * 8 MB. To begin one costs 37 ms of CPU, 1 ms of it on the event loop.
 */
export class SqliteLog {
  private readonly begin: () => Worker;
  private readonly count: () => number | undefined;
  /** The log's share of the disk, in bytes. */
  limit = 0;
  private thread: Worker | undefined;
  /** A thread that was told to end still holds the file. */
  private ending: Promise<void> | undefined;
  private idleLooks = 0;
  private copying: Promise<void> | undefined;
  /** Bytes that the log has: as they were counted last, and about what was written since. */
  private length = 0;
  /** Of these what was written since, about. */
  private guessed = 0;
  /** A commit waited for the copy that goes on, or for the last one. */
  private hasWaited = false;
  private reserve = firstReserve;
  private beginAt = 0;
  private failure: Error | undefined;

  /**
   * `count`: the log's bytes by SQLite's own count, where that is to be had.
   * `begin`: starts a thread that copies the log of this file.
   */
  constructor(file: string, count: () => number | undefined, begin = beginThread) {
    this.begin = () => begin(file);
    this.count = count;
  }

  /** A promise while the log is copied: meanwhile the file may be locked for a moment. It does not reject. */
  get copied(): Promise<void> | undefined {
    return this.copying;
  }

  /** Notes that a commit wrote about so many bytes. */
  wrote(bytes: number): void {
    this.length += bytes;
    this.guessed += bytes;
    if (this.guessed > this.limit * countShare) this.countLog();
    if (!this.copying && this.length > Math.max(this.beginAt, this.limit * (1 - this.reserve))) this.copy();
  }

  /** Whether a commit has to wait for `room`. */
  get isFull(): boolean {
    return this.length > this.limit;
  }

  /** Counts the log, where that is to be had. Gives whether it is. */
  private countLog(): boolean {
    const counted = this.count();
    this.guessed = 0;
    if (counted === undefined) return false;
    this.length = counted;
    return true;
  }

  /** Resolves when the log has room. @throws what SQLite said, where it cannot be copied */
  async room(): Promise<void> {
    this.copy();
    this.hasWaited = true;
    await this.copying;
    if (this.isFull && this.failure) throw this.failure;
  }

  /** Begins to copy, where it is not done already. */
  copy(): void {
    this.copying ??= this.copyOnce().finally(() => {
      this.copying = undefined;
    });
  }

  /** Copies all that it has by now. */
  async copyAll(): Promise<void> {
    await this.copying;
    this.copy();
    await this.copying;
  }

  /** Is called every few seconds. Ends a thread that has had nothing to do for some time: the next copy begins another. */
  look(): void {
    this.idleLooks++;
    if (!this.copying && this.idleLooks >= mostIdleLooks) this.endThread();
  }

  /** Ends the thread, if there is one. One that fails meanwhile has ended, too: the database's own end copies what it has not. */
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
    // Nothing else may be left for this process to wait for.
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
      // The thread is gone; the next copy begins another.
      this.thread = undefined;
      this.failure = error instanceof Error ? error : new Error(String(error));
    }
    this.idleLooks = 0;
    // What was written meanwhile may come before the new beginning, or after it.
    if (copied !== undefined) this.length = Math.max(0, this.length - asked);
    const isCounted = this.countLog();
    if (copied !== undefined && isCounted) this.learn(copied - asked + this.length);
    this.beginAt = copied === undefined ? this.length + this.limit * againShare : 0;
  }

  /**
   * The next copy leaves twice the room that was written into during the last one. Where that was not enough, it leaves twice
   * of what was left. Where little is written meanwhile, copies are rarer, and with them the waits for their last pass. A
   * copy that is not done teaches nothing.
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

  /** A thread may end at any time, also while it is asked nothing: the next copy begins another. */
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
