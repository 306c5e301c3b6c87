import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Dispatcher } from "undici";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { parseExactly } from "../base/exact-json.ts";
import { abortable } from "./abortable.ts";
import { Agents } from "./agents.ts";
import { ApiError, readApiError } from "./api-error.ts";
import { bearer, type Credentials, type Identity, withoutClient } from "./identity.ts";
import { withLastLook } from "./last-look.ts";
import type { KubeRequest, KubeResponse, KubeTransport, SharedTransport, TokenSource } from "./transport.ts";

/**
 * Time limit for the headers of a watch, in milliseconds. Some proxies hold them back until the first event (client-go
 * `reflector.go` allows for it too).
 */
const watchHeadersTimeoutMs = 90_000;
const restTimeoutMs = 30_000;
const jsonLimit = 64 * 1024 * 1024;
/** How long credentials are reused, in milliseconds: reading certificate files for each of a burst of calls would be waste. */
const credentialsMs = 1000;

interface HttpTransportOptions {
  /** `https://host:port`, followed by the path below which the API is served, if any. */
  readonly server: string;
  readonly identity: Identity;
  readonly clock: Clock;
  /** User-Agent header: `watchfire/` and the version. */
  readonly userAgent: string;
  readonly description: string;
  /** URL of an http, https or socks5 proxy. */
  readonly proxy?: string | undefined;
  /** Whether responses to requests other than watches may be compressed; default true. */
  readonly compression?: boolean;
}

/** Borrowed connections of another transport, and the user of its pool. */
interface Lent {
  readonly agents: Agents;
  readonly user: string;
}

/** KubeTransport over pooled connections; asks the identity for credentials at each request. */
export class HttpTransport implements SharedTransport {
  readonly description: string;
  private readonly options: HttpTransportOptions;
  private readonly agents: Agents;
  private readonly lent: Lent | undefined;
  private readonly origin: string;
  private readonly prefix: string;
  private cached: { readonly at: number; readonly credentials: Promise<Credentials> } | undefined;

  constructor(options: HttpTransportOptions, lent?: Lent) {
    const url = new URL(options.server);
    this.options = options;
    this.description = options.description;
    this.origin = url.origin;
    this.prefix = url.pathname.replace(/\/+$/, "");
    this.lent = lent;
    this.agents = lent?.agents ?? new Agents(options.proxy, options.clock);
  }

  as(tokens: TokenSource, description: string): KubeTransport {
    const { identity: own } = this.options;
    const identity: Identity = {
      credentials: async () => {
        const [token, { tls }] = await Promise.all([tokens.token(), own.credentials()]);
        return { headers: { authorization: bearer(token) }, tls: withoutClient(tls) };
      },
      refresh: async () => tokens.refused(),
    };
    return new HttpTransport({ ...this.options, identity, description }, { agents: this.agents, user: "accounts" });
  }

  async request(request: KubeRequest): Promise<KubeResponse> {
    const { response, credentials } = await this.send(request);
    if (response.status !== 401) return response;
    response.body.on("error", () => {}).destroy();
    await this.renew(credentials);
    return (await this.send(request)).response;
  }

  async json<T>(request: KubeRequest, limit = jsonLimit): Promise<T> {
    const response = await this.request(request);
    if (response.status >= 300) throw await readApiError(response, this.options.clock.now());
    const bytes = await readWhole(response.body, limit, request.path);
    try {
      return parseExactly(bytes.toString("utf8")) as T;
    } catch {
      throw new ApiError({
        status: 502,
        reason: "NotJSON",
        message: `${request.path} answered with something other than JSON: ${bytes.toString("utf8", 0, 256)}`,
      });
    }
  }

  async close(): Promise<void> {
    if (!this.lent) await this.agents.close();
  }

  private async send(request: KubeRequest): Promise<{ response: KubeResponse; credentials: Credentials }> {
    request.signal?.throwIfAborted();
    const watch = request.purpose === "watch";
    const limit = new RequestLimit(this.options.clock, request, watch);
    let objection: Error | undefined;
    try {
      const credentials = await abortable(this.credentials(), limit.signal);
      const agent = this.agents.for(credentials.tls, request.purpose ?? "rest", this.lent?.user);
      const { lastLook } = request;
      const dispatcher = lastLook ? withLastLook(agent, () => (objection = lastLook())) : agent;
      const response = await dispatcher.request({
        origin: this.origin,
        path: this.prefix + request.path + queryString(request.query),
        method: request.method,
        headers: {
          accept: "application/json",
          "accept-encoding": watch || this.options.compression === false ? "identity" : "gzip",
          "user-agent": this.options.userAgent,
          ...(request.body === undefined ? {} : { "content-type": "application/json" }),
          ...request.headers,
          ...credentials.headers,
        },
        body: request.body ?? null,
        signal: limit.signal,
        headersTimeout: watch ? watchHeadersTimeoutMs : (request.timeoutMs ?? restTimeoutMs),
      });
      const body = decoded(response);
      limit.endWith(response.body);
      return { response: { status: response.statusCode, headers: response.headers, body }, credentials };
    } catch (error) {
      limit.end();
      if (objection) throw objection;
      if (request.signal?.aborted) throw request.signal.reason;
      throw this.unreachable(error);
    }
  }

  /**
   * Renews refused credentials, once and past every cache, because a rotated token is indistinguishable from a wrong one. Does
   * nothing if another refused request has renewed them already.
   */
  private async renew(refused: Credentials): Promise<void> {
    const current = await this.credentials();
    const { headers, tls } = current;
    if (headers.authorization !== refused.headers.authorization || tls.cert !== refused.tls.cert) return;
    this.cached = undefined;
    await this.options.identity.refresh();
  }

  private credentials(): Promise<Credentials> {
    const now = this.options.clock.monotonic();
    if (this.cached && now - this.cached.at < credentialsMs) return this.cached.credentials;
    const credentials = this.options.identity.credentials();
    this.cached = { at: now, credentials };
    credentials.catch(() => {
      this.cached = undefined;
    });
    return credentials;
  }

  private unreachable(error: unknown): unknown {
    if (error instanceof WatchfireError) return error;
    return new WatchfireError("WF_KUBE_UNREACHABLE", {
      what: `no answer from ${this.origin}: ${networkFailure(error)}`,
      cause: error,
    });
  }
}

/**
 * Aborts a request when its caller aborts or its time limit passes; leaves neither timer nor listener behind. A function's call
 * has the limit of its caller's signal.
 */
class RequestLimit {
  readonly signal: AbortSignal;
  private readonly stop: () => void;

  constructor(clock: Clock, { signal: callers, purpose, timeoutMs: ms = restTimeoutMs }: KubeRequest, watch: boolean) {
    if (purpose === "call" && callers) {
      this.signal = callers;
      this.stop = () => {};
      return;
    }
    const controller = new AbortController();
    const timer = watch ? undefined : clock.after(ms, () => controller.abort(timeout(ms)));
    const onAbort = () => {
      this.stop();
      controller.abort(callers?.reason);
    };
    callers?.addEventListener("abort", onAbort, { once: true });
    this.signal = controller.signal;
    this.stop = () => {
      timer?.cancel();
      callers?.removeEventListener("abort", onAbort);
    };
  }

  end(): void {
    this.stop();
  }

  endWith(body: Readable): void {
    body.once("close", this.stop);
  }
}

/** Has a code, as a socket's own errors do, so that it counts as a network failure. */
function timeout(ms: number): Error {
  return Object.assign(new Error(`timeout after ${ms} ms`), { code: "ETIMEDOUT" });
}

/** Decodes the body's content coding. Watches request no coding, but a proxy may add one. */
function decoded(response: Dispatcher.ResponseData): Readable {
  const header = response.headers["content-encoding"];
  const coding = (Array.isArray(header) ? header.join() : (header ?? "identity")).trim().toLowerCase();
  if (coding === "" || coding === "identity") return response.body;
  const decoder = decoderOf(coding);
  if (!decoder) {
    response.body.on("error", () => {}).destroy();
    throw new WatchfireError("WF_KUBE_PROTOCOL", {
      what: "the answer has a content coding that was not asked for",
      actual: coding,
    });
  }
  response.body.on("error", (error) => decoder.destroy(error));
  decoder.once("close", () => response.body.destroy());
  return response.body.pipe(decoder);
}

function decoderOf(coding: string) {
  if (coding === "gzip" || coding === "x-gzip") return createGunzip();
  if (coding === "deflate") return createInflate();
  return coding === "br" ? createBrotliDecompress() : undefined;
}

async function readWhole(body: Readable, limit: number, path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) {
      throw new WatchfireError("WF_KUBE_PROTOCOL", { what: `the answer to ${path} is longer than ${limit} bytes` });
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
}

function queryString(query: KubeRequest["query"]): string {
  if (!query) return "";
  const entries = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`;
}

/** Returns the code and message of the innermost cause: `ECONNREFUSED connect ECONNREFUSED 127.0.0.1:1`. */
export function networkFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  if (inner instanceof Error) return networkFailure(inner);
  const code = (error as NodeJS.ErrnoException).code;
  return code && !error.message.includes(code) ? `${code} ${error.message}` : error.message;
}
