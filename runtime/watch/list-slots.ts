/** Lists that may run at once in one process: each is a snapshot that the API server holds for us. */
const defaultSlots = 4;

/** Lets a few lists run and the others wait their turn. */
export class ListSlots {
  private free: number;
  private readonly waiting: Array<() => void> = [];

  constructor(slots = defaultSlots) {
    this.free = slots;
  }

  /** Waits for a slot. @returns what gives it back, once. Rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else await this.turn(signal);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    };
  }

  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const admit = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.waiting.splice(this.waiting.indexOf(admit), 1);
        reject(signal.reason);
      };
      this.waiting.push(admit);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
