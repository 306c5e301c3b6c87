/** TLS settings of a connection, in Node's terms. Differences in these fields separate connection pools. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Lets any certificate of `ca` end the chain, as in Go, even one that is not self-signed. */
  readonly allowPartialTrustChain?: boolean;
  /** Name to expect in the server's certificate, if not the host's. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** Credentials of one request. Never logged. */
export interface Credentials {
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly tls: TlsMaterial;
}

/** Identity towards one cluster. Queried before every request, because tokens and certificates rotate. */
export interface Identity {
  credentials(): Promise<Credentials>;
  /** Discards cached credentials that the server refused. Overlapping calls do the work once. */
  refresh(): Promise<void>;
}

/** Returns an identity that never changes. */
export function fixedIdentity(credentials: Credentials): Identity {
  return { credentials: async () => credentials, refresh: async () => {} };
}

/** Returns the Authorization header of a bearer token. */
export const bearer = (token: string): string => `Bearer ${token}`;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const noHeaderText = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/**
 * Returns a text as a header value: its UTF-8 bytes, as Go sends them, each as the character that Node's HTTP encodes as that
 * byte.
 * @returns `undefined` if the text contains a control character, such as a newline, which a header must not have
 */
export const headerText = (text: string): string | undefined =>
  noHeaderText.test(text) ? undefined : Buffer.from(text).toString("latin1");

const clientParts = ["cert", "key"] as const;
const withoutParts = new WeakMap<TlsMaterial, TlsMaterial>();

/**
 * Returns the TLS settings without the client certificate. The API server tries a client certificate before a token, so a request
 * with both would act as the certificate's owner. Returns the same object for the same input, which spares the pool a comparison.
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
