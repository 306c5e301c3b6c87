import { access, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Cluster, KubeConfig, User } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import { type Clock, systemClock } from "../clock.ts";
import { WatchfireError } from "../errors.ts";
import { ExecPlugin, execSchema } from "./exec-plugin.ts";
import { HttpTransport } from "./http-transport.ts";
import { type Impersonation, impersonationHeaders, impersonationSchema } from "./impersonation.ts";
import { KubeconfigIdentity } from "./kubeconfig-identity.ts";
import { proxyFromEnvironment } from "./proxy.ts";
import { TokenFile } from "./token-file.ts";
import type { SharedTransport } from "./transport.ts";

/** Where the kubelet puts a pod's own account. */
const accountTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token";

export interface KubeconfigOptions {
  /** A kubeconfig file. Without one: `environment.KUBECONFIG`, then the pod's own account. */
  readonly file?: string | undefined;
  /** The context to use; the file's current one where absent. With neither a file nor KUBECONFIG: of ~/.kube/config. */
  readonly context?: string | undefined;
  /** KUBECONFIG, the proxies' variables, and what exec plugins are started with. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userAgent?: string;
  readonly clock?: Clock;
}

/** A connection made from a kubeconfig, and what else it says. */
export interface KubeconfigConnection {
  readonly transport: SharedTransport;
  /** `in-cluster` for a pod's own account. */
  readonly context: string;
  /** The context's namespace, or `default`. */
  readonly defaultNamespace: string;
}

/**
 * Connects as a kubeconfig says: its certificates, tokens, token files, exec plugins, impersonation and proxy.
 * The kubeconfig is read by @kubernetes/client-node, imported here alone because loading it takes 450 ms.
 * Throws WF_KUBE_CONFIG where no usable configuration is found.
 */
export async function connectKubeconfig(options: KubeconfigOptions): Promise<KubeconfigConnection> {
  const clock = options.clock ?? systemClock;
  const { config, context } = await loadConfig(options);
  const cluster = config.getCurrentCluster();
  const user: FullUser | null = config.getCurrentUser();
  const impersonation = impersonationHeaders(user?.impersonation ?? {});
  if (!cluster) throw configFault(`the context ${context} names no cluster that the kubeconfig has`);
  const proxy = cluster.proxyUrl || proxyFromEnvironment(cluster.server, options.environment);
  const transport = new HttpTransport({
    server: cluster.server,
    identity: new KubeconfigIdentity(config, ownCredentials(cluster, user, options, clock), impersonation),
    clock,
    userAgent: options.userAgent ?? "watchfire",
    description: `${cluster.server} (context ${context})`,
    proxy,
  });
  const defaultNamespace = config.getContextObject(config.getCurrentContext())?.namespace?.trim() || "default";
  return { transport, context, defaultNamespace };
}

async function loadConfig(options: KubeconfigOptions): Promise<{ config: KubeConfig; context: string }> {
  const files = await kubeconfigFiles(options);
  const client = await import("@kubernetes/client-node");
  const config = new client.KubeConfig();
  if (files.length === 0) {
    config.loadFromCluster();
    return { config, context: "in-cluster" };
  }
  for (const file of files) {
    const loaded = new client.KubeConfig();
    try {
      loaded.loadFromFile(file);
      addDropped(loaded, await readFile(file, "utf8"), dirname(file));
    } catch (error) {
      throw configFault(`the kubeconfig ${file} cannot be read: ${(error as Error).message}`);
    }
    mergeFirstWins(config, loaded);
  }
  const context = options.context ?? config.currentContext;
  if (!context) throw configFault(`${files.join(", ")} names no current context`, "name one with --context");
  if (!config.getContextObject(context)) {
    const known = config.getContexts().map((each) => each.name);
    throw configFault(`there is no context ${context} in ${files.join(", ")}`, `name one of: ${known.join(", ")}`);
  }
  config.setCurrentContext(context);
  allowPlainHttp(config);
  return { config, context };
}

/** The files to read, in the order in which their entries win; none for the pod's own account. */
async function kubeconfigFiles(options: KubeconfigOptions): Promise<string[]> {
  if (options.file !== undefined) return [options.file];
  const listed = (options.environment.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) {
    // As kubectl does: files of the list that do not exist are passed over.
    const present = await Promise.all(listed.map(exists));
    const found = listed.filter((_, index) => present[index]);
    if (found.length === 0) throw configFault(`no file of KUBECONFIG exists: ${listed.join(", ")}`);
    return found;
  }
  if (options.context !== undefined) return [join(options.environment.HOME ?? homedir(), ".kube", "config")];
  if (await exists(accountTokenFile)) return [];
  throw configFault(
    "no cluster is named, and this is no pod with an account of its own",
    "pass --kubeconfig FILE, set KUBECONFIG, or name a context of ~/.kube/config with --context",
  );
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

const usersSchema = z.looseObject({
  users: z
    .array(
      z.looseObject({
        name: z.string(),
        user: impersonationSchema.extend({ tokenFile: z.string().optional() }).nullish(),
      }),
    )
    .nullish(),
});

/** A user with what client-node drops of it. */
type FullUser = User & { readonly impersonation?: Impersonation };

/** client-node knows neither the key `tokenFile`, which its file authenticator takes from this place, nor all of `as`. */
function addDropped(config: KubeConfig, text: string, folder: string): void {
  for (const { name, user } of usersSchema.parse(parse(text)).users ?? []) {
    if (!user) continue;
    config.users = config.users.map((each) => (each.name === name ? { ...each, impersonation: user } : each));
    if (user.tokenFile === undefined) continue;
    const tokenFile = resolve(folder, user.tokenFile);
    config.users = config.users.map((each) =>
      each.name === name ? { ...each, authProvider: { name: "tokenFile", config: { tokenFile } } } : each,
    );
  }
}

/** kubectl's rule for a list of files: the first to name a cluster, user, context or current context wins. */
function mergeFirstWins(into: KubeConfig, from: KubeConfig): void {
  const missing = <T extends { name: string }>(have: readonly T[], more: readonly T[]) =>
    more.filter((each) => !have.some((known) => known.name === each.name));
  into.clusters = [...into.clusters, ...missing(into.clusters, from.clusters)];
  into.users = [...into.users, ...missing(into.users, from.users)];
  into.contexts = [...into.contexts, ...missing(into.contexts, from.contexts)];
  into.currentContext ||= from.currentContext;
}

/** client-node refuses plain HTTP unless TLS verification is off; without TLS there is nothing to verify. */
function allowPlainHttp(config: KubeConfig): void {
  config.clusters = config.clusters.map((each) =>
    each.server.startsWith("http:") ? { ...each, skipTLSVerify: true } : each,
  );
}

/** The two kinds of credentials that client-node does not renew well enough, as ours. */
function ownCredentials(cluster: Cluster, user: User | null, options: KubeconfigOptions, clock: Clock) {
  const tokenFile: unknown = user?.authProvider?.config?.tokenFile;
  if (typeof tokenFile === "string") return new TokenFile(tokenFile, clock);
  const exec: unknown = user?.exec ?? user?.authProvider?.config?.exec;
  if (exec === undefined || exec === null) return undefined;
  const spec = execSchema.safeParse(exec);
  if (!spec.success) throw configFault("the user's exec section is not well formed", z.prettifyError(spec.error));
  const info = {
    server: cluster.server,
    ...(cluster.caData ? { "certificate-authority-data": cluster.caData } : {}),
    ...(cluster.tlsServerName ? { "tls-server-name": cluster.tlsServerName } : {}),
    ...(cluster.skipTLSVerify ? { "insecure-skip-tls-verify": true } : {}),
    ...(cluster.proxyUrl ? { "proxy-url": cluster.proxyUrl } : {}),
  };
  return new ExecPlugin(spec.data, info, options.environment, clock);
}

function configFault(what: string, hint?: string): WatchfireError {
  return new WatchfireError("WF_KUBE_CONFIG", { what, ...(hint ? { hint } : {}) });
}
