import { existsSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../../base/errors.ts";

/** Programs of a real cluster: paths of the files that `setup-envtest` downloads, and of a controller manager, if there is one. */
export interface RealPrograms {
  readonly etcd: string;
  readonly apiserver: string;
  /** Undefined if the folder lacks it, as that of `setup-envtest` does. */
  readonly manager: string | undefined;
}

/**
 * Finds the programs in the folder that the variable `KUBEBUILDER_ASSETS` names.
 * @throws WatchfireError WF_DEV_REAL_PROGRAMS
 */
export function findRealPrograms(variables: Readonly<NodeJS.ProcessEnv>): RealPrograms {
  const folder = variables.KUBEBUILDER_ASSETS;
  if (!folder) throw new WatchfireError("WF_DEV_REAL_PROGRAMS", { what: "KUBEBUILDER_ASSETS is not set" });
  const found = (name: string) => {
    const path = join(folder, name);
    return existsSync(path) ? path : undefined;
  };
  const required = (name: string) => {
    const path = found(name);
    if (path !== undefined) return path;
    throw new WatchfireError("WF_DEV_REAL_PROGRAMS", { what: `KUBEBUILDER_ASSETS has no ${name}`, actual: folder });
  };
  return {
    etcd: required("etcd"),
    apiserver: required("kube-apiserver"),
    manager: found("kube-controller-manager"),
  };
}
