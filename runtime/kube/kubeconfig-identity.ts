import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { AuthorizationSource, ClientConfig } from "./client-config.ts";
import { ExecPlugin } from "./exec-plugin.ts";
import { bearer, type Credentials, headerText, type Identity, type TlsMaterial } from "./identity.ts";
import { impersonationHeaders } from "./impersonation.ts";
import { OidcToken } from "./oidc.ts";
import { TlsFiles } from "./tls-files.ts";
import { TokenFile } from "./token-file.ts";

/** Credentials of one request: an Authorization header, and for plugins a client certificate. */
interface Signature {
  readonly authorization?: string | undefined;
  readonly client?: Pick<TlsMaterial, "cert" | "key"> | undefined;
}

interface Signer {
  /** Checks whatever can be checked before credentials are needed. */
  check?(): Promise<void>;
  sign(): Promise<Signature>;
  /** Discards the last credentials, which the server refused. */
  forget(): void;
}

/** Identity of a kubeconfig's user, or of a pod's own account. */
export class KubeconfigIdentity implements Identity {
  private readonly tls: TlsFiles;
  private readonly signer: Signer;
  private readonly impersonation: Readonly<Record<string, string | string[]>>;
  private withClient: { readonly base: TlsMaterial; readonly client: object; readonly tls: TlsMaterial } | undefined;

  /** @param environment environment of plugins, and source of the proxy towards an identity provider */
  constructor(config: ClientConfig, environment: Readonly<Record<string, string | undefined>>, clock: Clock) {
    this.tls = new TlsFiles(config.tls);
    this.signer = signerOf(config.authorization, environment, clock);
    this.impersonation = config.impersonation ? impersonationHeaders(config.impersonation) : {};
  }

  /** Reads the certificate files. @throws WatchfireError WF_KUBE_CONFIG if they cannot be used */
  async check(): Promise<void> {
    await Promise.all([this.tls.read(), this.signer.check?.()]);
  }

  async credentials(): Promise<Credentials> {
    const [tls, { authorization, client }] = await Promise.all([this.tls.read(), this.signer.sign()]);
    const signed = authorization === undefined ? this.impersonation : { ...this.impersonation, authorization };
    return { headers: headersOf(signed), tls: client ? this.with(tls, client) : tls };
  }

  async refresh(): Promise<void> {
    this.signer.forget();
  }

  /** Returns the same object for the same input, which spares the pool a comparison. */
  private with(base: TlsMaterial, client: Pick<TlsMaterial, "cert" | "key">): TlsMaterial {
    if (this.withClient?.base !== base || this.withClient.client !== client) {
      this.withClient = { base, client, tls: { ...base, ...client } };
    }
    return this.withClient.tls;
  }
}

function signerOf(
  source: AuthorizationSource | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  clock: Clock,
): Signer {
  switch (source?.by) {
    case "token": {
      if (source.file === "") return fixed({ authorization: bearer(source.token) });
      const file = new TokenFile(source.file, clock, source.token);
      return { sign: async () => ({ authorization: bearer(await file.token()) }), forget: () => file.forget() };
    }
    case "password": {
      const login = Buffer.from(`${source.username}:${source.password}`).toString("base64");
      return fixed({ authorization: `Basic ${login}` });
    }
    case "exec": {
      const plugin = new ExecPlugin(source.spec, source.cluster, environment, clock);
      const sign = async () => {
        const { token, client } = await plugin.credential();
        return { ...(token && { authorization: bearer(token) }), client };
      };
      return { sign, forget: () => plugin.forget() };
    }
    case "oidc": {
      const oidc = new OidcToken(source.settings, environment, clock);
      return {
        check: () => oidc.check(),
        sign: async () => ({ authorization: bearer(await oidc.token()) }),
        forget: () => undefined,
      };
    }
    default:
      return fixed({});
  }
}

const fixed = (signature: Signature): Signer => ({ sign: async () => signature, forget: () => undefined });

function headersOf(values: Readonly<Record<string, string | string[]>>): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(values)) {
    headers[name] = Array.isArray(value) ? value.map((each) => checked(name, each)) : checked(name, value);
  }
  return headers;
}

function checked(name: string, value: string): string {
  const text = headerText(value);
  if (text !== undefined) return text;
  const kept = name === "authorization" ? "token" : "name to act as";
  throw new WatchfireError("WF_KUBE_CONFIG", {
    what: `the user's ${kept} holds a line break or another control character`,
    hint: "take it out; a token that ends with a newline belongs in a tokenFile",
  });
}
