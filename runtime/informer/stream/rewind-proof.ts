import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";

/**
 * Evidence in a list that the cluster's state went back, as when a backup is restored with newer revisions than all that were
 * given (`etcdutl snapshot restore --bump-revision`). A list at or above a known state shows that state or a later one. One
 * that shows an older state is of a history in which the known one never was. A list from a server that lags is older itself.
 */
export class RewindProof {
  /** The oldest known state that the list contradicts. */
  private contradicted: ResourceVersion | undefined;

  /** Takes the resourceVersion of a known state that the list does not show, nor a later one. */
  add(known: ResourceVersion): void {
    if (this.contradicted === undefined || isNewer(this.contradicted, known)) this.contradicted = known;
  }

  /** Compares an object that is listed with its newest known state. */
  compare(known: ResourceVersion, listed: ResourceVersion): void {
    if (isNewer(known, listed)) this.add(known);
  }

  /** True if the list contradicts some known state, whatever the list's own resourceVersion will be. */
  get isPossible(): boolean {
    return this.contradicted !== undefined;
  }

  /** True if a complete list at this resourceVersion proves it; false where the two have no order. */
  holdsAt(list: ResourceVersion): boolean {
    return this.contradicted !== undefined && isUpTo(this.contradicted, list);
  }
}
