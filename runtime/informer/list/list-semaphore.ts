/** Lists that may run at once in one process: each is a snapshot that the API server holds for us. */
const defaultSlots = 4;

/** Semaphore that limits the number of concurrent lists; the others wait. */
export class ListSemaphore {
  private free: number;
  private readonly waiting: Array<() => void> = [];
  /** Waiters without urgency, served after all others. */
  private readonly yielding: Array<() => void> = [];

  constructor(slots = defaultSlots) {
    this.free = slots;
  }

  /**
   * Waits for a slot. @returns a function that releases it, once. Rejects with the signal's reason.
   * @param options `yields`: any other waiter is served first.
   */
  async take(signal: AbortSignal, { yields = false }: { readonly yields?: boolean } = {}): Promise<() => void> {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else await this.turn(signal, yields ? this.yielding : this.waiting);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.waiting.shift() ?? this.yielding.shift();
      if (next) next();
      else this.free++;
    };
  }

  private turn(signal: AbortSignal, queue: Array<() => void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const admit = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        queue.splice(queue.indexOf(admit), 1);
        reject(signal.reason);
      };
      queue.push(admit);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
