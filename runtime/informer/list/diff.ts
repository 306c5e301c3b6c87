/** Minimum number of known objects for the guard to hold a list back: a small set is often emptied on purpose. */
export const guardedSize = 100;

/**
 * Delay before a second list is requested after a suspicious one, in milliseconds: an empty cache that answered has filled by
 * then.
 */
export const secondOpinionMs = 30_000;

/**
 * Guards against an answer from an empty cache or another cluster. A list that would delete more than half of a large known set
 * is accepted only when a second one, at least 30 s later, says the same.
 */
export class MassDeletionGuard {
  private suspectedAt: number | undefined;

  /** Whether this list's deletions are accepted. `now` is monotonic, in milliseconds. */
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
