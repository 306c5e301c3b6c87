import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";

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

/**
 * Detects from a list that the cluster's state went back, as when a backup is restored with newer revisions than any that were
 * ever issued (`etcdutl snapshot restore --bump-revision`). A list at or above a known state's resourceVersion shows that state
 * or a later one. If it shows an older state instead, it belongs to a history in which the known state never existed. A list from
 * a server that lags has an older resourceVersion itself, so it proves nothing.
 */
export class RewindProof {
  /** The oldest known state that the list contradicts. */
  private contradicted: ResourceVersion | undefined;

  /** Adds the resourceVersion of a known state of which the list shows neither that state nor a later one. */
  add(known: ResourceVersion): void {
    if (this.contradicted === undefined || isNewer(this.contradicted, known)) this.contradicted = known;
  }

  /** Compares a listed object's resourceVersion with its newest known state. */
  compare(known: ResourceVersion, listed: ResourceVersion): void {
    if (isNewer(known, listed)) this.add(known);
  }

  /** True if the list contradicts some known state, whatever the list's own resourceVersion will be. */
  get isPossible(): boolean {
    return this.contradicted !== undefined;
  }

  /** True if a complete list at this resourceVersion proves it; false if the two resourceVersions cannot be ordered. */
  holdsAt(list: ResourceVersion): boolean {
    return this.contradicted !== undefined && isUpTo(this.contradicted, list);
  }
}
