import { asset, etcdutl } from "../tools/assets.ts";
import type { TargetName } from "./target.ts";

/**
 * How a copy is put back. `copy`: its files, as they were. `restore`: by `etcdutl snapshot restore`, which makes resourceVersions
 * go back as well. `bump`: by Kubernetes' own recipe, which adds a billion to them and marks all before as compacted.
 */
export type Recipe = "copy" | "restore" | "bump";

/** Added to the revision of a snapshot by the recipe of Kubernetes' documentation. */
export const revisionBump = 1_000_000_000;

/** The recipes that a kind of cluster can be put back by. A real etcd takes etcdctl and etcdutl for all but the copy. */
export function recipesOf(name: TargetName): readonly [Recipe, ...Recipe[]] {
  if (name === "embedded") return ["copy", "bump"];
  return etcdutl && asset("etcdctl") ? ["restore", "bump"] : ["copy"];
}
