import { type Clock, systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { type ClientConfig, clientConfig } from "./client-config.ts";
import { inClusterConfig } from "./in-cluster.ts";
import { KubeconfigIdentity } from "./kubeconfig-identity.ts";
import { loadKubeconfigs } from "./kubeconfig-loading.ts";

interface BearerOptions {
  /** Path of a kubeconfig. Default: `environment.KUBECONFIG`, ~/.kube/config, then the pod's own account. */
  readonly file?: string | undefined;
  readonly context?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
}

/** The token with which a kubeconfig's user logs in to the API server, or why there is no token. */
interface KubeconfigBearer {
  /** The context's namespace; `undefined` without a usable context. */
  readonly namespace: string | undefined;
  /** Returns the token as it is now: a plugin or a provider may renew it. Absent if there is no token. */
  readonly token?: () => Promise<string>;
  /** Why there is no token, such as `it logs in with a client certificate`. */
  readonly why?: string;
}

/**
 * Returns the bearer token of a kubeconfig's user: its own, or that of its plugin or identity provider. A plugin is run. Without one,
 * the answer says why; it never rejects for a configuration that has no token.
 */
export async function bearerOf({
  file,
  context,
  environment,
  clock = systemClock,
}: BearerOptions): Promise<KubeconfigBearer> {
  let config: ClientConfig | undefined;
  try {
    config =
      (await clientConfig(await loadKubeconfigs({ file, environment }), context)) ??
      (await inClusterConfig(environment));
    if (!config) return { namespace: undefined, why: "it names no context" };
    const { namespace } = config;
    const why = obstacleOf(config);
    if (why !== undefined) return { namespace, why };
    const identity = new KubeconfigIdentity(config, environment, clock);
    const token = async () => tokenIn((await identity.credentials()).headers.authorization);
    if ((await token()) === "") return { namespace, why: "its plugin gives a client certificate, and no token" };
    return { namespace, token };
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    return { namespace: config?.namespace, why: error.detail.what };
  }
}

function obstacleOf({ impersonation, authorization, tls }: ClientConfig): string | undefined {
  // The token would be that of the user behind it, who may do more.
  if (impersonation) return "it acts as another user (`as`), which a token cannot say";
  if (authorization === undefined) {
    return tls.client ? "it logs in with a client certificate" : "it has no credentials";
  }
  return authorization.by === "password" ? "it logs in with a name and a password" : undefined;
}

const tokenIn = (header: string | readonly string[] | undefined): string =>
  /^Bearer (.+)$/.exec(String(header ?? ""))?.[1] ?? "";
