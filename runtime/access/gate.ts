import { tooMany } from "./failure.ts";

interface QueuedCall {
  readonly enter: () => void;
}

/** Maximum numbers of concurrent and waiting calls of a function, and maximum bytes of waiting arguments. */
interface GateLimits {
  readonly atOnce: number;
  readonly waiting: number;
  readonly waitingBytes: number;
}

/**
 * Limits the concurrent calls of one function. Further calls wait in order, up to a limit, so that a flood of calls only delays
 * its function.
 */
export class CallGate {
  private readonly limits: GateLimits;
  private readonly waiting: QueuedCall[] = [];
  private waitingBytes = 0;
  private underWay = 0;

  constructor(limits: GateLimits) {
    this.limits = limits;
  }

  /** True while no call runs or waits, so that the gate can be removed. */
  get idle(): boolean {
    return this.underWay === 0 && this.waiting.length === 0;
  }

  /** Runs a call with `bytes` of arguments once there is room. Rejects with the signal's reason if it aborts while waiting. */
  async pass<T>(signal: AbortSignal, bytes: number, call: () => Promise<T>): Promise<T> {
    if (this.underWay < this.limits.atOnce) this.underWay++;
    else await this.wait(signal, bytes);
    try {
      signal.throwIfAborted();
      return await call();
    } finally {
      this.leave();
    }
  }

  private wait(signal: AbortSignal, bytes: number): Promise<void> {
    const { atOnce, waiting, waitingBytes } = this.limits;
    if (this.waiting.length >= waiting) {
      throw tooMany(`the function has ${atOnce} calls under way and ${waiting} waiting`);
    }
    if (this.waitingBytes + bytes > waitingBytes) {
      throw tooMany(`the function has ${atOnce} calls under way, and ${waitingBytes} bytes of others waiting`);
    }
    signal.throwIfAborted();
    this.waitingBytes += bytes;
    return new Promise((resolve, reject) => {
      const waiter: QueuedCall = {
        enter: () => {
          this.waitingBytes -= bytes;
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      const onAbort = () => {
        this.waitingBytes -= bytes;
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.waiting.push(waiter);
    });
  }

  /** Passes the slot to the next waiting call, or frees it. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next) next.enter();
    else this.underWay--;
  }
}
