/** Leave to run, for so many isolates at once; the others wait in the order they came. */
export class Slots {
  private readonly count: number;
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.count = count;
    this.free = count;
  }

  /** Isolates that run now. */
  get used(): number {
    return this.count - this.free;
  }

  /** Takes a slot at once where one is free; else gives a promise of one. */
  take(): Promise<void> | undefined {
    if (this.free > 0) {
      this.free--;
      return undefined;
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  give(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
