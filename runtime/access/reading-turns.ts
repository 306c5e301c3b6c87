import type { Clock } from "../base/clock.ts";

/** Duration of reads in one turn of the event loop, in milliseconds. */
const turnMs = 10;

/**
 * Spreads the reads of many calls over turns of the event loop, and alternates between functions, so that a flood of calls delays
 * neither the runtime nor another function. Reads at once if nothing waits.
 */
export class ReadingTurns {
  private readonly clock: Clock;
  /** In the order of the functions' next turns. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private spentMs = 0;
  private isTurning = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Runs `read` in the function's turn. Returns its result, or rejects with its error. */
  run<T>(functionName: string, read: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const piece = () => {
      try {
        resolve(read());
      } catch (error) {
        reject(error);
      }
    };
    const queue = this.waiting.get(functionName);
    if (queue) queue.push(piece);
    else if (this.waiting.size > 0 || this.spentMs >= turnMs) this.waiting.set(functionName, [piece]);
    else this.spend(piece);
    this.turnLater();
    return promise;
  }

  private spend(piece: () => void): void {
    const startedAt = this.clock.monotonic();
    piece();
    this.spentMs += this.clock.monotonic() - startedAt;
  }

  private turnLater(): void {
    if (this.isTurning) return;
    this.isTurning = true;
    setImmediate(() => {
      this.isTurning = false;
      this.spentMs = 0;
      for (let piece = this.next(); piece; piece = this.spentMs < turnMs ? this.next() : undefined) this.spend(piece);
      if (this.waiting.size > 0) this.turnLater();
    });
  }

  private next(): (() => void) | undefined {
    const [first] = this.waiting;
    if (!first) return undefined;
    const [name, queue] = first;
    this.waiting.delete(name);
    const piece = queue.shift();
    if (queue.length > 0) this.waiting.set(name, queue);
    return piece;
  }
}
