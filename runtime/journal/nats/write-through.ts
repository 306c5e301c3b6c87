/**
 * Writes at once what was changed, one write after the other; what changes meanwhile shares the next. Whoever changed
 * something waits for the write that has it.
 */
export class WriteThrough {
  private readonly write: () => Promise<void>;
  private next: PromiseWithResolvers<void> | undefined;
  private current: PromiseWithResolvers<void> | undefined;
  private running: Promise<void> | undefined;

  constructor(write: () => Promise<void>) {
    this.write = write;
  }

  /** Resolves when everything changed so far is written. @throws what `write` throws, and what `letGo` was given */
  touch(): Promise<void> {
    this.next ??= unheard();
    const { promise } = this.next;
    this.running ??= this.run();
    return promise;
  }

  /** Resolves when nothing is under way, whether it succeeded or not. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  /** Lets those go who wait. The write that has their change is under way as before. */
  letGo(error: Error): void {
    this.current?.reject(error);
    if (!this.next) return;
    this.next.reject(error);
    this.next = unheard();
  }

  private async run(): Promise<void> {
    // What one turn brings shares the first write.
    await undefined;
    while (this.next) {
      this.current = this.next;
      this.next = undefined;
      await this.write().then(this.current.resolve, this.current.reject);
    }
    this.current = undefined;
    this.running = undefined;
  }
}

/** One whose rejection is no fault where nobody waits. */
function unheard(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>();
  made.promise.catch(() => undefined);
  return made;
}
