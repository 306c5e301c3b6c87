/** The TLS side of a connection, in Node's own terms. Which fields are set is what tells one pool from another. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Any certificate of `ca` ends the chain, as in Go, also one that is not signed by itself. */
  readonly allowPartialTrustChain?: boolean;
  /** The name to expect in the server's certificate, where it is not the host's. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** What one request needs to be let in. Never logged. */
export interface Credentials {
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly tls: TlsMaterial;
}

/** Who we are to one cluster. Asked before every request, because tokens and certificates rotate. */
export interface Identity {
  credentials(): Promise<Credentials>;
  /** Forgets what is cached: the server refused it. Calls that overlap do the work once. */
  refresh(): Promise<void>;
}

/** An identity that never changes. */
export function fixedIdentity(credentials: Credentials): Identity {
  return { credentials: async () => credentials, refresh: async () => {} };
}

/** The Authorization header of a bearer token. */
export const bearer = (token: string): string => `Bearer ${token}`;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const noHeaderText = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/**
 * A text as a header's value: its bytes in UTF-8, as Go sends them, each as the character that Node's HTTP makes that byte of.
 * @returns undefined where the text holds a control character, such as a newline, which no header may have
 */
export const headerText = (text: string): string | undefined =>
  noHeaderText.test(text) ? undefined : Buffer.from(text).toString("latin1");

const clientParts = ["cert", "key"] as const;
const withoutParts = new WeakMap<TlsMaterial, TlsMaterial>();

/**
 * The server's side of it alone. A client certificate speaks louder than a token (the API server tries it first), so
 * that a request which carries both is its owner's. The same object for the same, which spares the pool a comparison.
 */
export function withoutClient(tls: TlsMaterial): TlsMaterial {
  if (clientParts.every((part) => tls[part] === undefined)) return tls;
  let bare = withoutParts.get(tls);
  if (!bare) {
    const { cert: _cert, key: _key, ...rest } = tls;
    bare = rest;
    withoutParts.set(tls, bare);
  }
  return bare;
}
