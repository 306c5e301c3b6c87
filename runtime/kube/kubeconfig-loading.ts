import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { configFault, type Kubeconfig, readKubeconfig } from "./kubeconfig-file.ts";

/** Locations of kubeconfigs. */
interface KubeconfigSource {
  /** Path of a kubeconfig file. Default: the files of `environment.KUBECONFIG`, or ~/.kube/config. */
  readonly file?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Several kubeconfigs merged into one. */
export interface LoadedKubeconfig {
  readonly config: Kubeconfig;
  /** The files that were searched, for error messages. */
  readonly files: string;
  /** Whether any of them exists. */
  readonly found: boolean;
}

/**
 * Reads the kubeconfigs in force and merges them, as client-go's ClientConfigLoadingRules do (`loader.go`). For each cluster,
 * user and context, and for the current context, the first file of KUBECONFIG that defines it wins. Missing files are ignored,
 * except one that was named explicitly.
 * @throws WatchfireError WF_KUBE_CONFIG if a file cannot be used
 */
export async function loadKubeconfigs({ file, environment }: KubeconfigSource): Promise<LoadedKubeconfig> {
  const files = file ? [file] : precedence(environment);
  const [clusters, users, contexts]: Entries = [new Map(), new Map(), new Map()];
  let currentContext = "";
  let found = false;
  for (const path of files) {
    const read = await readKubeconfig(path);
    if (!read && file) throw configFault({ what: "there is no such file", place: { file } });
    if (!read) continue;
    found = true;
    mergeFirstWins(clusters, read.clusters);
    mergeFirstWins(users, read.users);
    mergeFirstWins(contexts, read.contexts);
    currentContext ||= read.currentContext;
  }
  return { config: { clusters, users, contexts, currentContext }, files: files.join(", "), found };
}

type Entries = [Kubeconfig["clusters"], Kubeconfig["users"], Kubeconfig["contexts"]];

/** KUBECONFIG replaces ~/.kube/config even if its files do not exist. */
function precedence(environment: KubeconfigSource["environment"]): string[] {
  const { KUBECONFIG: listed, HOME: home } = environment;
  if (listed) return [...new Set(listed.split(delimiter))].filter((path) => path !== "");
  return [join(home ?? homedir(), ".kube", "config")];
}

function mergeFirstWins<Entry>(into: Map<string, Entry>, from: ReadonlyMap<string, Entry>): void {
  for (const [name, entry] of from) if (!into.has(name)) into.set(name, entry);
}

/** Whether a path exists, as a file or otherwise. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
