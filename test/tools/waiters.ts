/**
 * Milliseconds after which a wait fails with what it waited for. Less than a test's own timeout, which names nothing and so would
 * not count as caught in the mutation test of the laws.
 */
const limitMs = 15_000;

/** Those that wait for a recording to hold something. Each new entry wakes them. */
export class Waiters {
  private readonly waiting = new Set<() => void>();

  /** Returns what `find` finds, as soon as it finds something. */
  async until<T>(what: string, find: () => T | undefined | false): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${limitMs} ms`)), limitMs);
    try {
      for (;;) {
        const found = find();
        if (found !== undefined && found !== false) return found;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.waiting.add(resolve);
        await Promise.race([promise, late.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }
}
