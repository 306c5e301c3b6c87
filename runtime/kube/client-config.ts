import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { posix } from "node:path";
import type { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { ExecCluster } from "./exec-plugin.ts";
import { type Impersonation, impersonationOf } from "./impersonation.ts";
import { configFault, type ExecSpec, type KubeconfigCluster, type KubeconfigUser } from "./kubeconfig-file.ts";
import type { LoadedKubeconfig } from "./kubeconfig-loading.ts";
import { type OidcSettings, oidcSettings } from "./oidc.ts";
import { type Pem, pem, type TlsSource, textOf } from "./tls-files.ts";

// Derives one connection from merged kubeconfigs, in the steps of client-go. `client_config.go` chooses context, cluster and
// user. `validation.go` refuses contradictions. `rest/transport.go` and `transport/round_trippers.go` determine which of a user's
// credentials counts. Entries that the context does not name are ignored.

/** Source of a connection's Authorization header. */
export type AuthorizationSource =
  /** The file is read repeatedly; while it cannot be read, the token is used. One of the two may be empty. */
  | { readonly by: "token"; readonly token: string; readonly file: string }
  | { readonly by: "password"; readonly username: string; readonly password: string }
  /** A plugin may return a client certificate, a token, or both. */
  | { readonly by: "exec"; readonly spec: ExecSpec; readonly cluster: ExecCluster | undefined }
  | { readonly by: "oidc"; readonly settings: OidcSettings };

/** How to reach one cluster, and as which user. */
export interface ClientConfig {
  /** Name of the context. */
  readonly context: string;
  /** Namespace of the context, or `default`. */
  readonly namespace: string;
  /** `http` or `https` URL, including the path below which the API is served. */
  readonly server: string;
  /** The kubeconfig's own proxy: an http, https or socks5 URL. */
  readonly proxy: string | undefined;
  /** Whether responses may be compressed. */
  readonly compression: boolean;
  readonly impersonation: Impersonation | undefined;
  readonly tls: TlsSource;
  readonly authorization: AuthorizationSource | undefined;
}

/** Credentials are not sent over plain HTTP. */
const withoutTls: TlsSource = { serverName: "", insecure: false };

/**
 * Selects the connection settings from merged kubeconfigs.
 * @param asked the context to use instead of the current one
 * @returns `undefined` if no context is requested and the kubeconfig has no current one
 * @throws WatchfireError WF_KUBE_CONFIG for a configuration that kubectl would refuse as well
 */
export async function clientConfig(
  { config, files }: LoadedKubeconfig,
  asked?: string,
): Promise<ClientConfig | undefined> {
  const name = asked || config.currentContext;
  if (!name) return undefined;
  const context = config.contexts.get(name);
  if (!context) {
    const known = [...config.contexts.keys()].join(", ");
    const what = known ? `there is no context ${JSON.stringify(name)}` : "the kubeconfig has no contexts";
    const hint = known
      ? `name one ${asked ? "of" : "with --context"}: ${known}`
      : "name one that has, with --kubeconfig";
    throw configFault({ what, place: { file: files }, hint });
  }
  const chosen = new Chosen("context", name, context.file);
  const cluster = config.clusters.get(context.cluster);
  if (!cluster) throw absent(chosen, "cluster", context.cluster, config.clusters);
  const user = config.users.get(context.user);
  const url = await checkedServer(cluster, new Chosen("cluster", context.cluster, cluster.file));
  const secure = url.protocol === "https:";
  // Over plain HTTP a missing user makes no difference.
  if (!user && secure) throw absent(chosen, "user", context.user, config.users);
  if (user) await checkUser(user, new Chosen("user", context.user, user.file));
  const own = secure && user && (await authorizationSource(cluster, user, new Chosen("user", context.user, user.file)));
  return {
    context: name,
    namespace: context.namespace || "default",
    server: `${url.origin}${url.pathname.replace(/\/$/, "")}`,
    proxy: cluster["proxy-url"] || undefined,
    compression: !cluster["disable-compression"],
    impersonation: user && impersonationOf(user),
    tls: secure && user ? tlsSource(cluster, user) : withoutTls,
    authorization: loginOf(url) ?? (own || undefined),
  };
}

/** A user name and password in the server's URL take precedence over all credentials of the user. */
function loginOf({ username, password }: URL): AuthorizationSource | undefined {
  if (username === "" && password === "") return undefined;
  return { by: "password", username: decodeURIComponent(username), password: decodeURIComponent(password) };
}

/** The entry in use; creates its faults. */
class Chosen {
  private readonly title: string;
  private readonly file: string;

  constructor(kind: string, name: string, file: string) {
    this.title = `the ${kind} ${name}`;
    this.file = file;
  }

  /** @param what the message after the entry's name */
  refused(
    what: string,
    hint?: string,
    more: { readonly actual?: string; readonly cause?: unknown } = {},
  ): WatchfireError {
    const place = { file: this.file };
    return configFault({ what: `${this.title} ${what}`, place, ...(hint !== undefined && { hint }), ...more });
  }
}

function absent(context: Chosen, kind: string, name: string, known: ReadonlyMap<string, unknown>): WatchfireError {
  const hint = known.size > 0 ? `the ${kind}s are: ${[...known.keys()].join(", ")}` : undefined;
  if (name === "") return context.refused(`names no ${kind}`, hint);
  return context.refused(`names the ${kind} ${JSON.stringify(name)}, which is not there`, hint);
}

/** Validates a cluster (`validateClusterInfo`). Returns the server's URL. */
async function checkedServer(cluster: KubeconfigCluster, chosen: Chosen): Promise<URL> {
  const { server, "proxy-url": proxy, "insecure-skip-tls-verify": insecure } = cluster;
  const hint = "write its address as `server: https://HOST:PORT`";
  if (server === "") throw chosen.refused("has no server", hint);
  if (proxy && !(URL.canParse(proxy) && /^(?:https?|socks5):$/.test(new URL(proxy).protocol))) {
    throw chosen.refused("has a proxy-url that is not an http, https or socks5 URL");
  }
  const ca = authorityOf(cluster);
  checkPem(ca, "certificate-authority", chosen);
  await checkFile(cluster["certificate-authority"], "certificate-authority", chosen);
  const url = serverUrl(server);
  if (!url) throw chosen.refused("has a server that is neither an http or https URL nor a host with a port", hint);
  if (ca && insecure && url.protocol === "https:") {
    throw chosen.refused("has both insecure-skip-tls-verify and a certificate authority", "leave one of the two");
  }
  return url;
}

/**
 * Parses a server URL (`DefaultServerURL`): a host without a scheme means plain HTTP. URLs that Node would correct and Go refuses
 * are refused.
 */
function serverUrl(server: string): URL | undefined {
  const [, scheme = "", authority = "", rest = ""] = /^(https?:\/\/|)([^/?#]+)(.*)$/i.exec(server) ?? [];
  const text = scheme === "" ? `http://${server}` : server;
  if (/[\s\\]/.test(authority) || (scheme === "" && !/^\/?(?:$|[?#])/.test(rest)) || !URL.canParse(text))
    return undefined;
  const url = new URL(text);
  // 127.1 and 2130706433 are addresses to Node but not to Go.
  if (isIPv4(url.hostname) && authority.replace(/^.*@|:\d*$/g, "") !== url.hostname) return undefined;
  try {
    url.pathname = posix.normalize(decodeURIComponent(url.pathname));
  } catch {
    return undefined;
  }
  return url;
}

/** Validates a user (`validateAuthInfo`). */
async function checkUser(user: KubeconfigUser, chosen: Chosen): Promise<void> {
  if (user.token && (user.username || user.password)) {
    throw chosen.refused("has both a token and a username or password", "leave one of the two");
  }
  const certificate = certificateOf(user);
  if (certificate) {
    const key = keyOf(user);
    checkPem(certificate, "client-certificate", chosen);
    checkPem(key, "client-key", chosen);
    if (!key) throw chosen.refused("has a client certificate without a key", "add client-key or client-key-data");
    await checkFile(user["client-certificate"], "client-certificate", chosen);
    await checkFile(user["client-key"], "client-key", chosen);
  }
  if (user.exec && user["auth-provider"])
    throw chosen.refused("has both exec and auth-provider", "leave one of the two");
  if (user.exec) checkExec(user.exec, chosen);
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  if (!as && (uid || groups.length > 0 || Object.keys(extra).length > 0)) {
    throw chosen.refused("has as-uid, as-groups or as-user-extra without as", "name the user to act as with `as`");
  }
}

function checkExec(exec: ExecSpec, chosen: Chosen): void {
  if (exec.command === "") throw chosen.refused("has an exec section without a command");
  if (exec.apiVersion === "") throw chosen.refused("has an exec section without an apiVersion");
  if (exec.env.some(({ name }) => name === ""))
    throw chosen.refused("has an exec section with a variable without a name");
  const mode = interactiveMode(exec);
  if (mode === "") {
    throw chosen.refused("has an exec section without an interactiveMode", "add `interactiveMode: Never`");
  }
  if (!["Never", "IfAvailable", "Always"].includes(mode)) {
    throw chosen.refused("has an exec section whose interactiveMode is not one of Never, IfAvailable and Always");
  }
}

/** client-go documents that the data override the file, but refuses both together. */
function checkPem(given: Pem | undefined, field: string, chosen: Chosen): void {
  if (given?.file && given.data.length > 0) {
    throw chosen.refused(`has both ${field} and ${field}-data`, "leave one of the two");
  }
}

/** Refuses a missing file, which would otherwise look like a cluster that does not answer. */
async function checkFile(file: string, field: string, chosen: Chosen): Promise<void> {
  if (file === "") return;
  await access(file, constants.R_OK).catch((cause: NodeJS.ErrnoException) => {
    const what = cause.code === "ENOENT" ? "is not there" : `cannot be read: ${systemReason(cause)}`;
    throw chosen.refused(`has a ${field} that ${what}`, undefined, { actual: file, cause });
  });
}

const authorityOf = (cluster: KubeconfigCluster) =>
  pem(cluster["certificate-authority-data"], cluster["certificate-authority"], cluster.file);
const certificateOf = (user: KubeconfigUser) =>
  pem(user["client-certificate-data"], user["client-certificate"], user.file);
const keyOf = (user: KubeconfigUser) => pem(user["client-key-data"], user["client-key"], user.file);

function tlsSource(cluster: KubeconfigCluster, user: KubeconfigUser): TlsSource {
  const [certificate, key] = [certificateOf(user), keyOf(user)];
  return {
    ca: authorityOf(cluster),
    client: certificate && key ? { certificate, key } : undefined,
    insecure: cluster["insecure-skip-tls-verify"],
    serverName: cluster["tls-server-name"],
  };
}

/**
 * Selects the credentials. A token takes precedence over a password, and both over a plugin; a client certificate also keeps a
 * plugin from running. A user without any of them is one whom kubectl asks for a name and a password.
 */
async function authorizationSource(
  cluster: KubeconfigCluster,
  user: KubeconfigUser,
  chosen: Chosen,
): Promise<AuthorizationSource | undefined> {
  // An unusable section is refused even if other credentials are used.
  if (user.exec && !execVersions.includes(user.exec.apiVersion)) {
    throw chosen.refused(`has an exec section whose apiVersion is neither ${execVersions.join(" nor ")}`);
  }
  const refuse = (what: string, hint?: string) => chosen.refused(what, hint);
  const oidc = user["auth-provider"] && oidcSettings(user["auth-provider"], refuse);
  const { token, tokenFile, username, password } = user;
  if (token || tokenFile) {
    if (username) throw chosen.refused("has both a token and a username", "leave one of the two");
    if (!token) await checkFile(tokenFile, "tokenFile", chosen);
    return { by: "token", token, file: tokenFile };
  }
  if (username) return { by: "password", username, password };
  const hasCertificate = certificateOf(user) !== undefined;
  if (user.exec && !hasCertificate) {
    if (interactiveMode(user.exec) !== "Always") return execSource(cluster, user.exec);
    const hint = "sign in by hand, or use a plugin that can run without a person";
    throw chosen.refused(
      "has a plugin that asks a person at a terminal (interactiveMode Always): the runtime has no terminal",
      hint,
    );
  }
  if (oidc) return { by: "oidc", settings: oidc };
  if (hasCertificate) return undefined;
  const hint = "give the user a token, a client certificate or a plugin";
  throw chosen.refused(
    "has no credentials, and the runtime cannot ask for a name and a password as kubectl does",
    hint,
  );
}

/** Before v1, a plugin without this field may use the terminal, if there is one. */
const interactiveMode = ({ apiVersion, interactiveMode: mode }: ExecSpec): string =>
  mode || (/\/v1(?:alpha1|beta1)$/.test(apiVersion) ? "IfAvailable" : "");

const execVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const execExtension = "client.authentication.k8s.io/exec";

/** Returns a plugin's source (`ConfigToExecCluster`): an authority given as a file is passed as data. */
async function execSource(cluster: KubeconfigCluster, spec: ExecSpec): Promise<AuthorizationSource> {
  if (!spec.provideClusterInfo) return { by: "exec", spec, cluster: undefined };
  const { server, "tls-server-name": serverName, "proxy-url": proxy } = cluster;
  const authority = await textOf(authorityOf(cluster));
  return {
    by: "exec",
    spec,
    cluster: {
      // If the URL has a path, its query and fragment are removed.
      server: /^https?:\/\/[^/?#]+\/[^?#]/i.test(server) ? server.replace(/[?#].*$/, "") : server,
      ...(serverName && { "tls-server-name": serverName }),
      ...(cluster["insecure-skip-tls-verify"] && { "insecure-skip-tls-verify": true }),
      ...(authority && { "certificate-authority-data": Buffer.from(authority, "latin1").toString("base64") }),
      ...(proxy && { "proxy-url": proxy }),
      ...(cluster["disable-compression"] && { "disable-compression": true }),
      config: cluster.extensions.get(execExtension) ?? null,
    },
  };
}
