import type { SourceSpec } from "./fanout/source-spec.ts";

type ResourceKind = Pick<SourceSpec, "apiVersion" | "kind">;

/**
 * Counts by kind how often the cluster's state was found to have gone back. Each source finds it out by itself, at a time of
 * its own. Until then what it says may be of the state that was undone, though another source of the kind is past that.
 */
export class Rewinds {
  private readonly counts = new Map<string, number>();

  /** A source of the kind has found it out. */
  note(kind: ResourceKind): void {
    this.counts.set(keyOf(kind), this.of(kind) + 1);
  }

  /** How often it was found out, by all sources of the kind. */
  of(kind: ResourceKind): number {
    return this.counts.get(keyOf(kind)) ?? 0;
  }
}

/** All versions of a group have one sequence of resourceVersions. */
function keyOf({ apiVersion, kind }: ResourceKind): string {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return `${group}/${kind}`;
}
