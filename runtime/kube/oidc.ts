import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { cut } from "../base/wording.ts";
import { Agents } from "./agents.ts";
import { networkFailure } from "./http-transport.ts";
import { isBase64, type KubeconfigUser } from "./kubeconfig-file.ts";
import { proxyFromEnvironment } from "./proxy.ts";
import { pem, TlsFiles, type TlsSource } from "./tls-files.ts";

/** How long before its expiry an id token is renewed, in milliseconds (`expiryDelta` of client-go's `oidc.go`). */
const leewayMs = 10_000;
/** Time limit of each request to the identity provider, in milliseconds. */
const timeoutMs = 30_000;
/** Longest answer that is read, in characters. A provider's metadata and tokens have a few kilobytes. */
const answerLimit = 1024 * 1024;
/** Longest excerpt shown of an unexpected answer, in characters. */
const shownLimit = 200;

/** The `auth-provider` section of a user who signs in by OpenID Connect. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Empty if absent, like the tokens. */
  readonly clientSecret: string;
  readonly idToken: string;
  readonly refreshToken: string;
  /** TLS settings that verify the provider's certificate. */
  readonly tls: TlsSource;
}

type Refuse = (what: string, hint?: string) => Error;

/**
 * Reads the settings. OpenID Connect is the only one left of the sign-in methods that kubectl once had built in.
 * @param refuse creates the fault of a user that cannot be used
 */
export function oidcSettings(
  { name, config }: NonNullable<KubeconfigUser["auth-provider"]>,
  refuse: Refuse,
): OidcSettings {
  if (name === "gcp" || name === "azure") {
    const plugin = name === "gcp" ? "gke-gcloud-auth-plugin" : "kubelogin";
    throw refuse(`has the auth-provider ${name}, which kubectl no longer has`, `use the plugin ${plugin} in its place`);
  }
  if (name !== "oidc") throw refuse(`has the auth-provider ${JSON.stringify(name)}, which is not known`);
  const value = (key: string) => config[key] ?? "";
  for (const key of ["idp-issuer-url", "client-id"])
    if (value(key) === "") throw refuse(`has an auth-provider without ${key}`);
  const authority = value("idp-certificate-authority-data");
  if (!isBase64(authority)) throw refuse("has an auth-provider whose idp-certificate-authority-data is not base64");
  const data = Buffer.from(authority, "base64");
  return {
    issuer: value("idp-issuer-url").replace(/\/$/, ""),
    clientId: value("client-id"),
    clientSecret: value("client-secret"),
    idToken: value("id-token"),
    refreshToken: value("refresh-token"),
    tls: { ca: pem(data, value("idp-certificate-authority"), ""), serverName: "", insecure: false },
  };
}

const metadataSchema = z.looseObject({ token_endpoint: z.url() });
const answerSchema = z.looseObject({ id_token: z.string().min(1), refresh_token: z.string().optional() });
/** Go accepts a number in quotes as well, and treats a token without expiry as expired. */
const claimsSchema = z.looseObject({ exp: z.coerce.number().default(0) });

/**
 * Id token of a user who signs in by OpenID Connect. Ten seconds before it expires it is renewed with the refresh token, once for
 * all waiting requests. New tokens are kept in memory: the kubeconfig is not written.
 */
export class OidcToken {
  private readonly settings: OidcSettings;
  private readonly environment: Readonly<Record<string, string | undefined>>;
  private readonly clock: Clock;
  private readonly tls: TlsFiles;
  private idToken: string;
  private refreshToken: string;
  private renewing: Promise<string> | undefined;

  /** @param environment source of the proxy towards the provider */
  constructor(settings: OidcSettings, environment: Readonly<Record<string, string | undefined>>, clock: Clock) {
    this.settings = settings;
    this.environment = environment;
    this.clock = clock;
    this.tls = new TlsFiles(settings.tls);
    this.idToken = settings.idToken;
    this.refreshToken = settings.refreshToken;
  }

  /** Reads the provider's certificate authority. @throws WatchfireError WF_KUBE_CONFIG if it cannot be used */
  async check(): Promise<void> {
    await this.tls.read();
  }

  /** @throws WatchfireError WF_KUBE_CREDENTIALS if no token can be obtained; WF_KUBE_UNREACHABLE */
  async token(): Promise<string> {
    if (this.idToken !== "" && this.clock.now() + leewayMs < this.endOf(this.idToken)) return this.idToken;
    if (this.refreshToken === "") throw this.fault("the id-token has expired, and there is no refresh-token");
    this.renewing ??= this.renew().finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  /** Returns a token's expiry in milliseconds since 1970. */
  private endOf(token: string): number {
    const parts = token.split(".");
    try {
      if (parts.length !== 3) throw new Error("not three parts");
      const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString("utf8"));
      return claimsSchema.parse(claims).exp * 1000;
    } catch {
      throw this.fault("the id-token is not a JSON Web Token with an expiry");
    }
  }

  private async renew(): Promise<string> {
    const { issuer } = this.settings;
    const metadata = await this.ask("GET", `${issuer}/.well-known/openid-configuration`);
    const endpoint = metadataSchema.safeParse(metadata.body);
    if (metadata.status !== 200 || !endpoint.success) throw this.fault(`${issuer} names no token endpoint`);
    const answer = await this.tokens(endpoint.data.token_endpoint);
    const read = answerSchema.safeParse(answer.body);
    if (answer.status >= 300) throw this.fault(`${issuer} refuses the refresh-token: ${cut(answer.text, shownLimit)}`);
    if (!read.success) throw this.fault(`${issuer} gives no new id_token for the refresh-token`);
    this.idToken = read.data.id_token;
    this.refreshToken = read.data.refresh_token || this.refreshToken;
    return this.idToken;
  }

  /**
   * Requests tokens. The provider decides whether a client authenticates in the header or in the body, so one is tried after the
   * other.
   */
  private async tokens(endpoint: string): Promise<OidcResponse> {
    const { clientId, clientSecret } = this.settings;
    const form = { grant_type: "refresh_token", refresh_token: this.refreshToken };
    const login = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
    const authorization = `Basic ${Buffer.from(login).toString("base64")}`;
    const first = await this.ask("POST", endpoint, new URLSearchParams(form), { authorization });
    if (first.status < 300) return first;
    const named = { ...form, client_id: clientId, ...(clientSecret && { client_secret: clientSecret }) };
    return this.ask("POST", endpoint, new URLSearchParams(named));
  }

  private async ask(
    method: "GET" | "POST",
    url: string,
    form?: URLSearchParams,
    headers?: object,
  ): Promise<OidcResponse> {
    const agents = new Agents(proxyFromEnvironment(url, this.environment), this.clock);
    const limit = new AbortController();
    const timer = this.clock.after(timeoutMs, () => limit.abort(new Error(`timeout after ${timeoutMs} ms`)));
    try {
      const { origin, pathname, search } = new URL(url);
      const response = await agents.for(await this.tls.read(), "rest").request({
        origin,
        path: pathname + search,
        method,
        headers: { ...headers, ...(form && { "content-type": "application/x-www-form-urlencoded" }) },
        body: form ? form.toString() : null,
        signal: limit.signal,
      });
      let text = "";
      for await (const chunk of response.body.setEncoding("utf8")) {
        text += chunk;
        if (text.length > answerLimit) throw new Error(`an answer of more than ${answerLimit} characters`);
      }
      return { status: response.statusCode, text, body: jsonOf(text) };
    } catch (error) {
      if (error instanceof WatchfireError) throw error;
      const what = `no answer from the identity provider at ${url}: ${networkFailure(error)}`;
      throw new WatchfireError("WF_KUBE_UNREACHABLE", { what, cause: error });
    } finally {
      timer.cancel();
      await agents.close();
    }
  }

  private fault(what: string): WatchfireError {
    return new WatchfireError("WF_KUBE_CREDENTIALS", { what, hint: "sign in again" });
  }
}

interface OidcResponse {
  readonly status: number;
  readonly text: string;
  /** The text parsed as JSON; `undefined` if it is not JSON. */
  readonly body: unknown;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
