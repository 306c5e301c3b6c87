/**
 * Writes changes immediately, one write at a time. Changes made during a write share the next one. Each caller waits for the
 * write that has its change.
 */
export class WriteThrough {
  private readonly write: () => Promise<void>;
  private next: PromiseWithResolvers<void> | undefined;
  private current: PromiseWithResolvers<void> | undefined;
  private running: Promise<void> | undefined;

  constructor(write: () => Promise<void>) {
    this.write = write;
  }

  /** Resolves once everything changed so far is written. @throws what `write` throws, and the error given to `letGo` */
  touch(): Promise<void> {
    this.next ??= unheard();
    const { promise } = this.next;
    this.running ??= this.run();
    return promise;
  }

  /** Resolves once no write is under way, whether the last one succeeded or not. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  /** Rejects for all callers that wait. The write under way continues. */
  letGo(error: Error): void {
    this.current?.reject(error);
    if (!this.next) return;
    this.next.reject(error);
    this.next = unheard();
  }

  private async run(): Promise<void> {
    // Changes made in the same turn share the first write.
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

/** Returns a promise whose rejection is not reported as unhandled when nobody waits for it. */
function unheard(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>();
  made.promise.catch(() => undefined);
  return made;
}
