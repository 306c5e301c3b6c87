// Door: HTTP to an API server. Watches have connections of their own; everything else shares a pool.
import type { Readable } from "node:stream";
import type { LastLook } from "./last-look.ts";

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path without query; already checked and encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
  /**
   * `watch`: a connection of its own, no body timeout, identity encoding. `call`: as `rest`, over other connections, so that
   * what a function asks for keeps nothing of the runtime's own waiting. Default `rest`.
   */
  readonly purpose?: "rest" | "watch" | "call";
  /** Whole-request limit in milliseconds for `rest`; default 30 000. */
  readonly timeoutMs?: number;
  /** Asked as the request is written to the network; what it gives, the request rejects with. Default: nothing is asked. */
  readonly lastLook?: LastLook | undefined;
}

export interface KubeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Unread body, content-decoded. Whoever holds the response reads or destroys it. */
  readonly body: Readable;
}

/** A connection to one cluster with one identity. Redirects are never followed. */
export interface KubeTransport {
  /** Where and as whom, for people: `https://127.0.0.1:6443 (context dev)`. */
  readonly description: string;
  /** Rejects on network failure only; an HTTP error status is a response. */
  request(request: KubeRequest): Promise<KubeResponse>;
  /** Reads the whole body, at most `limit` bytes (default 64 MiB), and throws an ApiError for status >= 400. */
  json<T>(request: KubeRequest, limit?: number): Promise<T>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** Gives the bearer token of one account. */
export interface TokenSource {
  /** A token that is good now. Rejects with a WatchfireError where there is none. */
  token(): Promise<string>;
  /** The server refused what `token` gave. */
  refused(): void;
}

/** A connection that can be shared by several accounts: one pool, each request with its own token. */
export interface SharedTransport extends KubeTransport {
  /** The same server, by the same connections, as somebody else. Ends with this transport; its own `close` does nothing. */
  as(tokens: TokenSource, description: string): KubeTransport;
}
