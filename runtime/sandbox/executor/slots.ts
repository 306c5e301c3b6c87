/** Isolates that may run on without a slot: each is a thread more. */
const maxLent = 13;

/**
 * Leave to run, for so many isolates at once; the others wait in the order they came. One that runs for long lends its
 * slot on and shares the cores with the next. So a few loops do not hold everybody up.
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

  /** Isolates that run now, those without a slot as well. */
  get used(): number {
    return this.count - this.free + this.lent;
  }

  /** Takes a slot at once where one is free; else gives a promise of one. */
  take(): Promise<void> | undefined {
    if (this.free > 0) {
      this.free--;
      return undefined;
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Hands the holder's slot on where somebody waits; the holder runs on. Gives whether it did. */
  lend(): boolean {
    if (this.waiting.length === 0 || this.lent === maxLent) return false;
    this.lent++;
    this.give();
    return true;
  }

  /** `lent`: the holder had lent its slot on. */
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
