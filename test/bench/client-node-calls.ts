// client-node's Watch and client in this process: each change of a source is patched into its copy.
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions, Watch } from "@kubernetes/client-node";

const [namespace = ""] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CoreV1Api);
const asMergePatch = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);

interface Source {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data: Readonly<Record<string, string>>;
}

async function copy({ metadata, data }: Source): Promise<void> {
  const name = metadata.name.replace("source", "copy");
  await api.patchNamespacedConfigMap({ name, namespace, body: { data } }, asMergePatch);
}

const watch = new Watch(config);
let resourceVersion = "0";

/** Watches, again after each end: client-node ends a watch that is silent for 30 s. */
async function follow(): Promise<void> {
  await watch.watch(
    `/api/v1/namespaces/${namespace}/configmaps`,
    { labelSelector: "role=source", resourceVersion },
    (type, object: Source) => {
      if (type !== "ADDED" && type !== "MODIFIED") return;
      resourceVersion = object.metadata.resourceVersion;
      void copy(object);
    },
    () => void follow(),
  );
}

await follow();
process.on("disconnect", () => process.exit());
