import { type Clock, systemClock } from "../base/clock.ts";
import { version } from "../base/version.ts";
import { clientConfig } from "./client-config.ts";
import { HttpTransport } from "./http-transport.ts";
import { inClusterConfig } from "./in-cluster.ts";
import { configFault } from "./kubeconfig-file.ts";
import { KubeconfigIdentity } from "./kubeconfig-identity.ts";
import { type LoadedKubeconfig, loadKubeconfigs } from "./kubeconfig-loading.ts";
import { proxyFromEnvironment } from "./proxy.ts";
import type { SharedTransport } from "./transport.ts";

interface KubeconfigOptions {
  /**
   * Path of a kubeconfig file. Default: `environment.KUBECONFIG`, or ~/.kube/config; if these name no context, the pod's own
   * account.
   */
  readonly file?: string | undefined;
  /** Context to use. Default: the kubeconfig's current one. */
  readonly context?: string | undefined;
  /** KUBECONFIG, the proxy variables, and the environment that exec plugins get. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
}

/** A connection made from a kubeconfig, with its context. */
interface KubeconfigConnection {
  readonly transport: SharedTransport;
  /** `in-cluster` for a pod's own account. */
  readonly context: string;
  /** Namespace of the context, or `default`. */
  readonly defaultNamespace: string;
}

/**
 * Connects as a kubeconfig says: to the same server and with the same credentials as kubectl with the same files.
 * @throws WatchfireError WF_KUBE_CONFIG if no usable configuration is found
 */
export async function connectKubeconfig(options: KubeconfigOptions): Promise<KubeconfigConnection> {
  const { environment, clock = systemClock } = options;
  const loaded = await loadKubeconfigs(options);
  const config = (await clientConfig(loaded, options.context)) ?? (await inClusterConfig(environment));
  if (!config) throw noContext(loaded);
  const { server, context, namespace } = config;
  const identity = new KubeconfigIdentity(config, environment, clock);
  await identity.check();
  const transport = new HttpTransport({
    server,
    identity,
    clock,
    userAgent: `watchfire/${version}`,
    description: `${server} (context ${context})`,
    proxy: config.proxy ?? proxyFromEnvironment(server, environment),
    compression: config.compression,
  });
  return { transport, context, defaultNamespace: namespace };
}

function noContext({ config, files, found }: LoadedKubeconfig): Error {
  const place = { file: files };
  const known = [...config.contexts.keys()];
  if (!found) {
    return configFault({
      what: `no cluster is named, and this process is not in a pod with a ServiceAccount`,
      ...(files !== "" && { actual: files }),
      hint: "pass --kubeconfig FILE or set KUBECONFIG; for the cluster of a running `watchfire dev`: --kubeconfig .watchfire/kubeconfig",
    });
  }
  if (known.length === 0) {
    return configFault({ what: "the kubeconfig has no contexts", place, hint: "name one that has, with --kubeconfig" });
  }
  const hint = `name one with --context: ${known.join(", ")}`;
  return configFault({ what: "the kubeconfig names no current context", place, hint });
}
