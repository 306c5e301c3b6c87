/** Keys to work on, each once however often it is added, off the stack of the write that added it. */
export class WorkQueue {
  private readonly pending = new Set<string>();
  private readonly work: (key: string) => void;
  private scheduled = false;
  private stopped = false;

  constructor(work: (key: string) => void) {
    this.work = work;
  }

  add(key: string): void {
    if (this.stopped) return;
    this.pending.add(key);
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.drain());
  }

  /** Does all that is pending, and what that adds. */
  drain(): void {
    this.scheduled = false;
    for (const key of this.pending) {
      if (this.stopped) return;
      this.pending.delete(key);
      this.work(key);
    }
  }

  stop(): void {
    this.stopped = true;
    this.pending.clear();
  }
}
