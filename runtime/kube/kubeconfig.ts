import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Cluster, KubeConfig, User } from "@kubernetes/client-node";
import { type Clock, systemClock } from "../clock.ts";
import { showPath } from "../document/path.ts";
import { version } from "../version.ts";
import { lowerFirst } from "../wording.ts";
import { importClient } from "./client-node.ts";
import { ExecPlugin, execSchema } from "./exec-plugin.ts";
import { HttpTransport } from "./http-transport.ts";
import { type Impersonation, impersonationHeaders } from "./impersonation.ts";
import { configFault, type Kubeconfig, readKubeconfig, wordsOf } from "./kubeconfig-file.ts";
import { KubeconfigIdentity } from "./kubeconfig-identity.ts";
import { proxyFromEnvironment } from "./proxy.ts";
import { TokenFile } from "./token-file.ts";
import type { SharedTransport } from "./transport.ts";

/** Where the kubelet puts a pod's own account. */
const accountTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token";

export interface KubeconfigOptions {
  /** A kubeconfig file. Without one: `environment.KUBECONFIG`, then ~/.kube/config, then the pod's own account. */
  readonly file?: string | undefined;
  /** The context to use; the file's current one where absent. A pod's own account has none. */
  readonly context?: string | undefined;
  /** KUBECONFIG, the proxies' variables, and what exec plugins are started with. */
  readonly environment: Readonly<Record<string, string | undefined>>;
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
 * The kubeconfig is read by @kubernetes/client-node, which is imported only now: the embedded cluster needs none.
 * Throws WF_KUBE_CONFIG where no usable configuration is found.
 */
export async function connectKubeconfig(options: KubeconfigOptions): Promise<KubeconfigConnection> {
  const clock = options.clock ?? systemClock;
  const { config, context, files } = await loadConfig(options);
  const cluster = config.getCurrentCluster();
  const user: FullUser | null = config.getCurrentUser();
  const names = config.getContextObject(config.getCurrentContext());
  const absent = (kind: string, name: string | undefined, known: readonly { name: string }[]) =>
    configFault({
      what: `the context ${context} names the ${kind} ${JSON.stringify(name)}, which is not there`,
      place: { file: files },
      hint: `the ${kind}s are: ${known.map((each) => each.name).join(", ")}`,
    });
  if (!cluster) throw absent("cluster", names?.cluster, config.clusters);
  if (!user && names?.user) throw absent("user", names.user, config.users);
  const impersonation = impersonationHeaders(user?.impersonation ?? {});
  await checkFiles(cluster, user, files);
  const proxy = cluster.proxyUrl || proxyFromEnvironment(cluster.server, options.environment);
  const transport = new HttpTransport({
    server: cluster.server,
    identity: new KubeconfigIdentity(config, ownCredentials(cluster, user, options, files, clock), impersonation),
    clock,
    userAgent: `watchfire/${version}`,
    description: `${cluster.server} (context ${context})`,
    proxy,
  });
  const defaultNamespace = names?.namespace?.trim() || "default";
  return { transport, context, defaultNamespace };
}

/** `files` as a fault names them. */
async function loadConfig(options: KubeconfigOptions): Promise<{ config: KubeConfig; context: string; files: string }> {
  const files = await kubeconfigFiles(options);
  const read = await Promise.all(files.map(readKubeconfig));
  const client = await importClient();
  const config = new client.KubeConfig();
  if (files.length === 0) {
    config.loadFromCluster();
    return { config, context: "in-cluster", files: accountTokenFile };
  }
  for (const [index, file] of files.entries()) {
    const loaded = new client.KubeConfig();
    try {
      loaded.loadFromFile(file);
    } catch (cause) {
      const what = `client-node cannot take it: ${lowerFirst((cause as Error).message)}`;
      throw configFault({ what, place: { file }, cause });
    }
    addDropped(loaded, read[index]?.users, dirname(file));
    mergeFirstWins(config, loaded);
  }
  const shown = files.join(", ");
  const context = contextOf(config, options.context, shown);
  config.setCurrentContext(context);
  allowPlainHttp(config);
  return { config, context, files: shown };
}

/** The context's name. @throws WatchfireError WF_KUBE_CONFIG where there is none of it */
function contextOf(config: KubeConfig, asked: string | undefined, file: string): string {
  const place = { file };
  const known = config.getContexts().map(({ name }) => name);
  if (known.length === 0) {
    throw configFault({ what: "the kubeconfig has no contexts", place, hint: "name one that has, with --kubeconfig" });
  }
  const context = asked ?? config.currentContext;
  if (context && known.includes(context)) return context;
  const hint = `name one ${asked === undefined ? "with --context" : "of"}: ${known.join(", ")}`;
  if (!context) throw configFault({ what: "the kubeconfig names no current context", place, hint });
  throw configFault({ what: `there is no context ${JSON.stringify(context)}`, place, hint });
}

/** A missing certificate would show as a cluster that does not answer. */
async function checkFiles(cluster: Cluster, user: User | null, kubeconfig: string): Promise<void> {
  const named = {
    "certificate-authority": cluster.caFile,
    "client-certificate": user?.certFile,
    "client-key": user?.keyFile,
  };
  for (const [field, file] of Object.entries(named)) {
    if (!file || (await exists(file))) continue;
    const what = `the file of ${field} is not there`;
    throw configFault({ what, place: { file: kubeconfig }, actual: file });
  }
}

/** The files to read, in the order in which their entries win; none for the pod's own account. */
async function kubeconfigFiles(options: KubeconfigOptions): Promise<string[]> {
  if (options.file !== undefined) return [options.file];
  const listed = (options.environment.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) {
    // As kubectl does: files of the list that do not exist are passed over.
    const present = await Promise.all(listed.map(exists));
    const found = listed.filter((_, index) => present[index]);
    if (found.length === 0)
      throw configFault({ what: "no file that KUBECONFIG names exists", actual: listed.join(", ") });
    return found;
  }
  const usual = join(options.environment.HOME ?? homedir(), ".kube", "config");
  if (options.context !== undefined || (await exists(usual))) return [usual];
  if (await exists(accountTokenFile)) return [];
  throw configFault({
    what: "no cluster is named, and this is no pod with an account of its own",
    hint: "pass --kubeconfig FILE, set KUBECONFIG, or write ~/.kube/config",
  });
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** A user with what client-node drops of it. */
type FullUser = User & { readonly impersonation?: Impersonation };

/** client-node knows neither the key `tokenFile`, which its file authenticator takes from this place, nor all of `as`. */
function addDropped(config: KubeConfig, users: Kubeconfig["users"], folder: string): void {
  for (const { name, user } of users ?? []) {
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
function ownCredentials(cluster: Cluster, user: User | null, options: KubeconfigOptions, files: string, clock: Clock) {
  const tokenFile: unknown = user?.authProvider?.config?.tokenFile;
  if (typeof tokenFile === "string") return new TokenFile(tokenFile, clock);
  const exec: unknown = user?.exec ?? user?.authProvider?.config?.exec;
  if (exec === undefined || exec === null) return undefined;
  const spec = execSchema.safeParse(exec);
  if (!spec.success) {
    const [issue] = spec.error.issues;
    const at = showPath(issue?.path ?? []);
    throw configFault({
      what: `the exec section of the user ${user?.name} cannot be used at ${at}: ${wordsOf(issue)}`,
      place: { file: files },
    });
  }
  const info = {
    server: cluster.server,
    ...(cluster.caData ? { "certificate-authority-data": cluster.caData } : {}),
    ...(cluster.tlsServerName ? { "tls-server-name": cluster.tlsServerName } : {}),
    ...(cluster.skipTLSVerify ? { "insecure-skip-tls-verify": true } : {}),
    ...(cluster.proxyUrl ? { "proxy-url": cluster.proxyUrl } : {}),
  };
  return new ExecPlugin(spec.data, info, options.environment, clock);
}
