import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";

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
