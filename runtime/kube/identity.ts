/** The TLS side of a connection, in Node's own terms. Which fields are set is what tells one pool from another. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly pfx?: string | Buffer;
  readonly passphrase?: string;
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

/** A bearer token's header; files and plugins end tokens with a newline, which no header may hold. */
export function bearer(token: string): string {
  return `Bearer ${token.trim()}`;
}
