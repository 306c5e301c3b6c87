import type { RequestOptions } from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { ExecPlugin } from "./exec-plugin.ts";
import { bearer, type Credentials, type Identity, type TlsMaterial } from "./identity.ts";
import { TokenFile } from "./token-file.ts";

/**
 * The identity of a kubeconfig's current user. client-node supplies certificates (files are read again each time),
 * static tokens, impersonation, OIDC and cloud providers. Token files and exec plugins are ours. Its own neither trim a
 * token, share a running plugin among requests, limit its time nor react to a refusal.
 */
export class KubeconfigIdentity implements Identity {
  private readonly config: KubeConfig;
  private readonly own: TokenFile | ExecPlugin | undefined;
  private readonly more: Readonly<Record<string, string | string[]>>;

  /** @param more headers that client-node does not know of. */
  constructor(
    config: KubeConfig,
    own: TokenFile | ExecPlugin | undefined,
    more: Readonly<Record<string, string | string[]>> = {},
  ) {
    this.config = config;
    this.own = own;
    this.more = more;
    if (own) {
      const user = config.getCurrentUser();
      // What we renew ourselves is hidden from client-node, which would do it as well.
      config.users = config.users.map((each) =>
        each === user || each.name === user?.name ? { ...each, exec: undefined, authProvider: undefined } : each,
      );
    }
  }

  async credentials(): Promise<Credentials> {
    const options: RequestOptions = {};
    await this.config.applyToHTTPSOptions(options);
    const headers = { ...textHeaders(options.headers), ...this.more };
    if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString("base64")}`;
    const tls = tlsOf(options);
    if (this.own instanceof TokenFile) headers.authorization = bearer(await this.own.token());
    if (this.own instanceof ExecPlugin) {
      const { token, clientCertificateData, clientKeyData } = await this.own.credential();
      if (token !== undefined) headers.authorization = bearer(token);
      if (clientCertificateData !== undefined && clientKeyData !== undefined) {
        return { headers, tls: { ...tls, cert: clientCertificateData, key: clientKeyData } };
      }
    }
    return { headers, tls };
  }

  async refresh(): Promise<void> {
    this.own?.forget();
  }
}

/** Header names in lower case, values trimmed: a token read from a file may end with a newline. */
function textHeaders(headers: RequestOptions["headers"]): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (value !== undefined) result[name.toLowerCase()] = Array.isArray(value) ? value : String(value).trim();
  }
  return result;
}

type TlsField = string | Buffer | undefined;

function tlsOf(options: RequestOptions): TlsMaterial {
  const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized } = options;
  return {
    ...(ca ? { ca: ca as NonNullable<TlsField> } : {}),
    ...(cert ? { cert: cert as NonNullable<TlsField> } : {}),
    ...(key ? { key: key as NonNullable<TlsField> } : {}),
    ...(pfx ? { pfx: pfx as NonNullable<TlsField> } : {}),
    ...(passphrase ? { passphrase } : {}),
    ...(servername ? { servername } : {}),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}
