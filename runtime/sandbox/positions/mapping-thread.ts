import { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../../base/clock.ts";
import type { SourceLocation } from "../../base/errors.ts";
import { positionsProgram } from "../positions-program.ts";
import { QuestionQueue } from "./question-queue.ts";
import type { MapQuestion, ThreadReply, ThreadRequest } from "./thread-messages.ts";

/** A function's source map. Its text is only read if the thread does not hold the map. */
export interface MapSource {
  /** Name of the function that is charged for reading it. */
  readonly function: string;
  readonly bundle: { readonly sourceMap: string; readonly sourceMapLength: number };
}

/** Why a question has no answer. */
export type Refusal = "rate" | "late" | "unreadable";

/** The answer of a source map. */
export interface MappedText {
  readonly text: string;
  readonly place: SourceLocation | undefined;
}

/** Limit of the thread's heap in MiB: the maps it holds, one being read, and a reserve. Beyond it V8 ends only the thread. */
const heapMb = 96;
/** Maximum bytes of the maps that are held for all functions: one of 1 MiB in the worst case, or 100 ordinary ones. */
const mostHeld = 48 * 2 ** 20;
/** Maximum bytes per character of a map's text, used as an estimate until the map has been read. */
const mostPerCharacter = 40;

/**
 * Milliseconds that a question waits. A map of 1 MiB takes 100 to 700 ms to read; five seconds on a machine with a tenfold load.
 */
const waitMs = 10_000;
/** Milliseconds after which a thread that has not answered a question is considered stuck and replaced. */
const stuckMs = 20_000;
/** Milliseconds without a question after which the thread ends and releases its maps. */
const idleMs = 60_000;

/** A question that waits. */
interface PendingQuestion {
  readonly source: MapSource;
  readonly question: MapQuestion;
  readonly timer: Timer;
  settle(result: MappedText | Refusal): void;
}

/** The question that the thread is working on. */
interface Running {
  readonly asked: PendingQuestion;
  readonly sentAt: number;
  readonly isReading: boolean;
  readonly timer: Timer;
}

/**
 * The one thread that reads source maps, separate from the main thread. It starts with the first question and gets one question
 * at a time. The others wait in a queue that serves the function first that has used the thread least.
 */
export class MappingThread {
  private readonly clock: Clock;
  private readonly queue: QuestionQueue<PendingQuestion>;
  private readonly numbers = new WeakMap<MapSource, number>();
  private readonly unreadable = new WeakSet<MapSource>();
  /** Bytes of each map that the thread holds, in order of their last use. */
  private readonly held = new Map<MapSource, number>();
  private forget: number[] = [];
  private lastNumber = 0;
  private worker: Worker | undefined;
  private running: Running | undefined;
  private idle: Timer | undefined;
  /** Until then no map is read. The thread pauses for as long as the last read took, so that maps take at most half a core. */
  private restsUntil = 0;
  private rest: Timer | undefined;
  private closed = false;

  constructor(clock: Clock) {
    this.clock = clock;
    this.queue = new QuestionQueue(clock);
  }

  /** Asks a function's map. Returns a refusal synchronously if it is known at once. */
  ask(source: MapSource, question: MapQuestion): Promise<MappedText | Refusal> | Refusal {
    if (this.unreadable.has(source)) return "unreadable";
    if (this.closed) return "late";
    if (!this.queue.mayAsk(source.function)) return "rate";
    return new Promise((resolve) => {
      const late = () => {
        if (this.running?.asked !== asked) this.queue.remove(source.function, asked);
        asked.settle("late");
      };
      const timer = this.clock.after(waitMs, late, { unref: true });
      const settle = (result: MappedText | Refusal) => {
        timer.cancel();
        resolve(result);
      };
      const asked: PendingQuestion = { source, question, timer, settle };
      for (const dropped of this.queue.add(source.function, asked, question.text.length)) dropped.settle("late");
      this.next();
    });
  }

  /** Ends the thread and refuses all waiting questions. */
  async close(): Promise<void> {
    this.closed = true;
    for (const asked of this.queue.clear()) asked.settle("late");
    await this.end("late");
  }

  private next(): void {
    if (this.running || this.closed) return;
    const now = this.clock.monotonic();
    const mayRead = now >= this.restsUntil;
    const asked = this.queue.take(({ source }) => mayRead || this.held.has(source));
    if (asked) {
      this.send(asked, now);
    } else if (this.queue.size > 0) {
      this.rest ??= this.clock.after(this.restsUntil - now, () => this.rested(), { unref: true });
    } else if (this.worker) {
      this.idle ??= this.clock.after(idleMs, () => void this.end("late"), { unref: true });
    }
  }

  private rested(): void {
    this.rest = undefined;
    this.next();
  }

  private send(asked: PendingQuestion, now: number): void {
    const { source, question } = asked;
    const isReading = !this.held.has(source);
    const bytes = this.held.get(source) ?? source.bundle.sourceMapLength * mostPerCharacter;
    if (isReading) this.makeRoom(source, bytes);
    this.held.delete(source);
    this.held.set(source, bytes);
    this.idle?.cancel();
    this.idle = undefined;
    const timer = this.clock.after(stuckMs, () => void this.end("unreadable"), { unref: true });
    this.running = { asked, sentAt: now, isReading, timer };
    const request: ThreadRequest = {
      ...question,
      map: this.numberOf(source),
      ...(isReading && { source: source.bundle.sourceMap }),
      forget: this.forget,
    };
    this.forget = [];
    this.worker ??= this.start();
    this.worker.postMessage(request);
  }

  /** Evicts the least recently used maps, and any other map of the same function, since each function has one. */
  private makeRoom(source: MapSource, bytes: number): void {
    let sum = [...this.held.values()].reduce((all, one) => all + one, bytes);
    for (const [other, size] of this.held) {
      if (sum <= mostHeld && other.function !== source.function) continue;
      this.held.delete(other);
      this.forget.push(this.numberOf(other));
      sum -= size;
    }
  }

  private numberOf(source: MapSource): number {
    const number = this.numbers.get(source) ?? ++this.lastNumber;
    this.numbers.set(source, number);
    return number;
  }

  private start(): Worker {
    const worker = new Worker(positionsProgram(), {
      name: "watchfire source maps",
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8, stackSizeMb: 1 },
    });
    worker.unref();
    worker.on("message", (reply: ThreadReply) => {
      if (this.worker === worker) this.answered(reply);
    });
    // Mostly out of memory.
    worker.on("error", () => {
      if (this.worker === worker) void this.end("unreadable");
    });
    return worker;
  }

  private answered(reply: ThreadReply): void {
    const running = this.finish();
    if (!running) return;
    const { asked, isReading } = running;
    if (reply.unreadable) {
      this.held.delete(asked.source);
      this.unreadable.add(asked.source);
    } else this.held.set(asked.source, reply.bytes);
    if (isReading) this.restsUntil = 2 * this.clock.monotonic() - running.sentAt;
    asked.settle(reply.unreadable ? "unreadable" : reply);
    this.next();
  }

  /** Ends the running question and charges its time to the function. */
  private finish(): Running | undefined {
    const { running } = this;
    this.running = undefined;
    if (!running) return undefined;
    running.timer.cancel();
    this.queue.charge(running.asked.source.function, this.clock.monotonic() - running.sentAt);
    return running;
  }

  /** Ends the thread; the next question starts another one. With `unreadable`, a map that was being read is not read again. */
  private async end(why: Refusal): Promise<void> {
    const { worker } = this;
    const running = this.finish();
    this.worker = undefined;
    this.held.clear();
    this.forget = [];
    for (const timer of [this.idle, this.rest]) timer?.cancel();
    this.idle = undefined;
    this.rest = undefined;
    if (running?.isReading && why === "unreadable") this.unreadable.add(running.asked.source);
    running?.asked.settle(why);
    this.next();
    await worker?.terminate();
  }
}
