/** Fewer known objects than this are never held back: a small set is often emptied on purpose. */
export const guardedSize = 100;

/** How long after a suspicious list a second one is asked for, in milliseconds: an empty cache that answered has filled by then. */
export const secondOpinionMs = 30_000;

/**
 * Guards against an answer of an empty cache or of another cluster. A list that would delete more than half of a large
 * known set is believed only when a second one says the same. The second comes at least 30 s later.
 */
export class MassDeletionGuard {
  private suspectedAt: number | undefined;

  /** Whether this list's deletions are to be believed. `now` is monotonic, in milliseconds. */
  believes(deleted: number, known: number, now: number): boolean {
    if (known <= guardedSize || deleted * 2 <= known) {
      this.suspectedAt = undefined;
      return true;
    }
    this.suspectedAt ??= now;
    if (now - this.suspectedAt < secondOpinionMs) return false;
    this.suspectedAt = undefined;
    return true;
  }
}
