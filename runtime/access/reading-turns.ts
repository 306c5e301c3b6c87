import type { Clock } from "../base/clock.ts";

/** Milliseconds of reading in one turn of the event loop, and what one more call takes. */
const turnMs = 10;

/**
 * Lets the event loop turn between the readings of many calls, and gives the functions their readings by turns. A flood
 * of one holds up neither the runtime nor another function. What finds nothing before it is read at once.
 */
export class ReadingTurns {
  private readonly clock: Clock;
  /** In the order of their next reading. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private spentMs = 0;
  private isTurning = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Gives what `read` gives, or rejects with what it throws. */
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
