/** Maximum number of isolates that may run on without a slot. Each is one more thread. */
const maxLent = 13;

/**
 * Limits how many isolates run at once; the others wait in FIFO order. An isolate that runs for long lends its slot and shares
 * the cores with the next one, so that a few loops do not block all others.
 */
export class IsolateSlots {
  private readonly count: number;
  private free: number;
  private lent = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.count = count;
    this.free = count;
  }

  /** Number of isolates that run now, including those that have lent their slot. */
  get used(): number {
    return this.count - this.free + this.lent;
  }

  /** Takes a free slot and returns `undefined`, or returns a promise of one. */
  take(): Promise<void> | undefined {
    if (this.free > 0) {
      this.free--;
      return undefined;
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Passes the holder's slot to a waiting isolate, while the holder runs on. Returns whether it did. */
  lend(): boolean {
    if (this.waiting.length === 0 || this.lent === maxLent) return false;
    this.lent++;
    this.give();
    return true;
  }

  /** Releases a slot. `lent`: the holder had lent it. */
  give(lent = false): void {
    if (lent) {
      this.lent--;
      return;
    }
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
