import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { configFault, type Kubeconfig, readKubeconfig } from "./kubeconfig-file.ts";

/** Where kubeconfigs are looked for. */
interface KubeconfigSource {
  /** A kubeconfig file. Without one: the files of `environment.KUBECONFIG`, or ~/.kube/config. */
  readonly file?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Several kubeconfigs as one. */
export interface LoadedKubeconfig {
  readonly config: Kubeconfig;
  /** The files that were looked for, as a fault names them. */
  readonly files: string;
  /** Whether any of them is there. */
  readonly found: boolean;
}

/**
 * Reads the kubeconfigs that are in force and merges them, as client-go's ClientConfigLoadingRules do (`loader.go`). Of each
 * list of KUBECONFIG, the first file to name a cluster, a user, a context or the current context wins. Files that are not
 * there are passed over, but not one that was named by itself.
 * @throws WatchfireError WF_KUBE_CONFIG where a file cannot be used
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

/** KUBECONFIG takes the place of ~/.kube/config even where it names no file that is there. */
function precedence(environment: KubeconfigSource["environment"]): string[] {
  const { KUBECONFIG: listed, HOME: home } = environment;
  if (listed) return [...new Set(listed.split(delimiter))].filter((path) => path !== "");
  return [join(home ?? homedir(), ".kube", "config")];
}

function mergeFirstWins<Entry>(into: Map<string, Entry>, from: ReadonlyMap<string, Entry>): void {
  for (const [name, entry] of from) if (!into.has(name)) into.set(name, entry);
}

/** Whether a file, or what else has that path, is there. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
