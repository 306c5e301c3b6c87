import type { SourceSpec } from "./fanout/source-spec.ts";

type ResourceKind = Pick<SourceSpec, "apiVersion" | "kind">;

/**
 * Counts, per kind, how often the cluster's state was found to have gone back. Each source finds it out by itself, at its own
 * time. Until then its data may be of the state that was undone, though another source of the kind is past that.
 */
export class Rewinds {
  private readonly counts = new Map<string, number>();

  /** Records that a source of the kind has found a rewind. */
  note(kind: ResourceKind): void {
    this.counts.set(keyOf(kind), this.of(kind) + 1);
  }

  /** Returns how often all sources of the kind together found a rewind. */
  of(kind: ResourceKind): number {
    return this.counts.get(keyOf(kind)) ?? 0;
  }
}

/** All versions of a group share one sequence of resourceVersions. */
function keyOf({ apiVersion, kind }: ResourceKind): string {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return `${group}/${kind}`;
}
