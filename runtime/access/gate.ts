import { tooMany } from "./failure.ts";

interface Waiter {
  readonly enter: () => void;
}

/**
 * Lets so many calls of one function be under way at once; the rest wait in order, up to a limit, so that a flood
 * costs its own function patience and nobody else anything.
 */
export class Gate {
  private readonly atOnce: number;
  private readonly mostWaiting: number;
  private readonly waiting: Waiter[] = [];
  private underWay = 0;

  constructor(atOnce: number, mostWaiting: number) {
    this.atOnce = atOnce;
    this.mostWaiting = mostWaiting;
  }

  /** True while nothing runs or waits: the gate can be forgotten. */
  get idle(): boolean {
    return this.underWay === 0 && this.waiting.length === 0;
  }

  /** Runs the call when there is room. Rejects with the signal's reason if it aborts while waiting. */
  async pass<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (this.underWay < this.atOnce) this.underWay++;
    else await this.wait(signal);
    try {
      signal.throwIfAborted();
      return await call();
    } finally {
      this.leave();
    }
  }

  private wait(signal: AbortSignal): Promise<void> {
    if (this.waiting.length >= this.mostWaiting) {
      throw tooMany(`the function has ${this.atOnce} calls under way and ${this.mostWaiting} waiting`);
    }
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        enter: () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      const onAbort = () => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.waiting.push(waiter);
    });
  }

  /** Hands the room on: the count stays the same while somebody waits. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next) next.enter();
    else this.underWay--;
  }
}
