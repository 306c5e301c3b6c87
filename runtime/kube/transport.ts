// Interface of HTTP connections to an API server. Each watch has its own connection; everything else shares a pool.
import type { Readable } from "node:stream";
import type { LastLook } from "./last-look.ts";

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path without query; must be checked and encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
  /**
   * Kind of request. `watch`: own connection, no body timeout, identity encoding. `call`: like `rest` over other connections, so
   * that functions' requests do not delay the runtime's own. Default `rest`.
   */
  readonly purpose?: "rest" | "watch" | "call";
  /** Limit of the whole request in milliseconds, for `rest`; default 30 000. */
  readonly timeoutMs?: number;
  /**
   * Called when the request is written to the network; if it returns an error, the request rejects with it. Default: not called.
   */
  readonly lastLook?: LastLook | undefined;
}

export interface KubeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Unread body, content-decoded. The receiver of the response must read or destroy it. */
  readonly body: Readable;
}

/** Connection to one cluster with one identity. Redirects are never followed. */
export interface KubeTransport {
  /** Server and identity, for messages: `https://127.0.0.1:6443 (context dev)`. */
  readonly description: string;
  /** Rejects only on network failure; an HTTP error status is a response. */
  request(request: KubeRequest): Promise<KubeResponse>;
  /** Reads the whole body, at most `limit` bytes (default 64 MiB), and throws an ApiError for status >= 400. */
  json<T>(request: KubeRequest, limit?: number): Promise<T>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** Source of the bearer token of one account. */
export interface TokenSource {
  /** Returns a valid token. Rejects with a WatchfireError if there is no token. */
  token(): Promise<string>;
  /** Reports that the server refused the last token. */
  refused(): void;
}

/** Connection that several accounts can share: one pool, each request with its own token. */
export interface SharedTransport extends KubeTransport {
  /**
   * Returns a transport to the same server over the same connections with another identity. It ends with this transport; its own
   * `close` does nothing.
   */
  as(tokens: TokenSource, description: string): KubeTransport;
}
