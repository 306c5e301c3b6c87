import { asset, etcdutl } from "../tools/assets.ts";
import type { TargetName } from "./target.ts";

/**
 * How a copy is restored. `copy`: its files. `restore`: by `etcdutl snapshot restore`, with which resourceVersions go back as
 * well. `bump`: by Kubernetes' own recipe, which adds a billion to them and marks all earlier ones as compacted.
 */
export type Recipe = "copy" | "restore" | "bump";

/** The number that the recipe in Kubernetes' documentation adds to the revision of a snapshot. */
export const revisionBump = 1_000_000_000;

/** The recipes that a kind of cluster supports. For all except the copy, a real etcd needs etcdctl and etcdutl. */
export function recipesOf(name: TargetName): readonly [Recipe, ...Recipe[]] {
  if (name === "embedded") return ["copy", "bump"];
  return etcdutl && asset("etcdctl") ? ["restore", "bump"] : ["copy"];
}
