import type { LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import { bodyFault } from "../../sdk/operations.ts";
import { WatchfireError } from "../base/errors.ts";
import { cut, shorten } from "../base/wording.ts";
import { type LastLook, withLastLook } from "../kube/last-look.ts";
import type { ProxyEnvironment } from "../kube/proxy.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { AnswerReader } from "./answer-reader.ts";
import type { ArgumentsOf } from "./arguments.ts";
import { acceptEncoding, BadCoding, codingsOf, decoded } from "./content-coding.ts";
import type { OnDryRunWrite } from "./dry-run.ts";
import { EgressPolicy, type Network } from "./egress.ts";
import { EgressProxy } from "./egress-proxy.ts";
import { EndpointGuard } from "./endpoint-guard.ts";
import { CallFailure, fetchFailed } from "./failure.ts";
import { checkedHeaders, type Headers, redirectedHeaders, responseHeaders, sentHeaders } from "./http-headers.ts";
import type { HostResolver } from "./resolver.ts";

const responseLimit = 5 * 1024 * 1024;
const mostRedirects = 5;
/** Maximum number of characters shown of a body that is not sent. */
const longestShown = 2_000;
const connectTimeoutMs = 10_000;
/** Methods that the fetch standard forbids. */
const forbiddenMethods = new Set(["CONNECT", "TRACE", "TRACK"]);
const redirects = new Set([301, 302, 303, 307, 308]);

interface FetcherParts {
  readonly answers: AnswerReader;
  readonly resolver?: HostResolver;
  readonly clusterNetworks?: readonly string[];
  /** The port of the runtime's endpoints, once they listen. */
  readonly ownPort?: () => number | undefined;
  /** The variables that name proxies. Default: no proxies. */
  readonly proxies?: ProxyEnvironment;
  /** Receives every request other than GET and HEAD instead of sending it. Default: all are sent. */
  readonly unsent?: OnDryRunWrite | undefined;
  /** Called as each request is sent. */
  readonly lastLook?: LastLook | undefined;
}

interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Buffer | undefined;
}

/** The parent's side of `ctx.fetch`. Each redirect is checked like the first request. */
export class Fetcher {
  private readonly policy: EgressPolicy;
  private readonly agents: Readonly<Record<Network, Dispatcher>>;
  private readonly proxy: EgressProxy;
  private readonly answers: AnswerReader;
  private readonly unsent: OnDryRunWrite | undefined;

  constructor(parts: FetcherParts) {
    const { answers, resolver, clusterNetworks, lastLook, proxies = {}, ownPort = () => undefined } = parts;
    this.answers = answers;
    this.unsent = parts.unsent;
    this.proxy = new EgressProxy(proxies, lastLook);
    const own = new EndpointGuard(ownPort);
    this.policy = new EgressPolicy(own, resolver, clusterNetworks);
    // Separate agents for each network, because an open connection may lead to a destination that only some functions may use.
    this.agents = { Public: this.agentFor("Public", own, lastLook), Private: this.agentFor("Private", own, lastLook) };
  }

  /** Returns the response as JSON text of the SDK's `FetchResult`. Throws CallFailure. */
  async fetch(
    manifest: FunctionManifest,
    args: ArgumentsOf<"fetch">,
    signal: AbortSignal,
    { traceparent }: { readonly traceparent?: string | undefined } = {},
  ): Promise<string> {
    let hop = firstHop(args);
    // A handler may set its own.
    if (traceparent !== undefined && !hop.headers.some(([name]) => name === "traceparent"))
      hop = { ...hop, headers: [...hop.headers, ["traceparent", traceparent]] };
    for (let followed = 0; ; followed++) {
      const network = this.policy.admit(hop.url, manifest.egress);
      if (this.unsent && hop.method !== "GET" && hop.method !== "HEAD") {
        const { method, url, body } = hop;
        const shown = body && { body: cut(body.toString(), longestShown) };
        this.unsent({ function: manifest.name, method, to: url.href, ...shown });
        return asResult(url, followed > 0, { status: 200, statusText: "OK", headers: [], bytes: Buffer.alloc(0) });
      }
      const agent = await this.agentOf(hop.url, network);
      const response = await this.send(agent, hop, signal);
      const location = redirects.has(response.statusCode) ? locationOf(response) : undefined;
      if (location === undefined || args.redirect === "manual")
        return await this.result(manifest.name, response, hop, followed > 0, signal);
      response.body.on("error", () => {}).destroy();
      if (args.redirect === "error") throw fetchFailed(`${hop.url.host} answered with a redirect`);
      if (followed === mostRedirects) throw fetchFailed(`more than ${mostRedirects} redirects`);
      hop = nextHop(hop, location, response.statusCode);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.proxy.close(), ...Object.values(this.agents).map((agent) => agent.destroy())]);
  }

  /**
   * Returns the dispatcher for a URL. With a proxy the name is checked before each request, because the connection's far end is
   * not visible here.
   */
  private async agentOf(url: URL, network: Network): Promise<Dispatcher> {
    const proxied = this.proxy.agentFor(url);
    if (proxied) await this.policy.checkAhead(url, network);
    return proxied ?? this.agents[network];
  }

  private agentFor(network: Network, own: EndpointGuard, lastLook: LastLook | undefined): Dispatcher {
    const lookup: LookupFunction = (host, options, callback) => {
      this.policy.resolve(host, network).then(
        (addresses) => {
          const [first] = addresses;
          if (options.all) callback(null, [...addresses]);
          else callback(null, first?.address ?? "", first?.family);
        },
        (error: Error) => callback(error, "", 0),
      );
    };
    // An open connection goes to an address that was checked when it was made. There are as many connections as the functions'
    // gates allow; with fewer, one function could hold them all.
    const connect = buildConnector({ lookup, timeout: connectTimeoutMs });
    const agent = new Agent({
      // Checked by the address actually connected to, however it was written, before anything is sent.
      connect: (options, callback) =>
        connect(options, (error, socket) => {
          if (error) return callback(error, null);
          const refusal = own.refusal(socket.remoteAddress, socket.remotePort ?? 0);
          if (!refusal) return callback(null, socket);
          socket.destroy();
          callback(refusal, null);
        }),
      maxHeaderSize: 32 * 1024,
    });
    return lastLook ? withLastLook(agent, lastLook) : agent;
  }

  private async send(
    agent: Dispatcher,
    { url, method, headers, body }: Hop,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    try {
      return await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: method as Dispatcher.HttpMethod,
        headers: [...sentHeaders(headers), ["accept-encoding", acceptEncoding(url.protocol)]].flat() as string[],
        body: body ?? null,
        signal,
      });
    } catch (error) {
      throw failureOf(error, url, signal);
    }
  }

  /** Reads and decodes the whole body. Refuses it as soon as it exceeds the limit, however small it was on the wire. */
  private async result(
    functionName: string,
    response: Dispatcher.ResponseData,
    { url, method }: Hop,
    redirected: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const tooLarge = () => fetchFailed(`the answer of ${url.host} is larger than ${responseLimit} bytes`);
    const reading = { functionName, limit: responseLimit, tooLarge, signal };
    const { statusCode: status, statusText, body } = response;
    try {
      const isBodiless = method === "HEAD" || bodiless.has(status);
      const codings = isBodiless ? [] : codingsOf(response.headers["content-encoding"]);
      const headers = responseHeaders(response.headers, codings.length > 0);
      return await this.answers.read(decoded(body, codings, reading), reading, (bytes) =>
        asResult(url, redirected, { status, statusText, headers, bytes }),
      );
    } catch (error) {
      throw failureOf(error, url, signal);
    } finally {
      response.body.on("error", () => {}).destroy();
    }
  }
}

interface FetchedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** Returns the JSON text of the SDK's `FetchResult`. */
function asResult(url: URL, redirected: boolean, { status, statusText, headers, bytes }: FetchedResponse): string {
  return JSON.stringify({
    url: url.href.replace(/#.*$/, ""),
    redirected,
    status,
    statusText,
    headers,
    body: bytes.toString("base64"),
  });
}

function firstHop({ url, method, headers, body }: ArgumentsOf<"fetch">): Hop {
  if (!URL.canParse(url)) throw fetchFailed(`${shorten(url)} is not an absolute URL`);
  const upper = method.toUpperCase();
  if (!/^[A-Z-]+$/.test(upper) || forbiddenMethods.has(upper))
    throw fetchFailed(`the method ${JSON.stringify(method)} cannot be used`);
  const bytes = body === undefined ? undefined : Buffer.from(body, "base64");
  if (bytes && (upper === "GET" || upper === "HEAD")) throw fetchFailed(`a ${upper} request has no body`);
  const fault = bytes && bodyFault(bytes.length);
  if (fault) throw fetchFailed(fault);
  return { url: new URL(url), method: upper, headers: checkedHeaders(headers), body: bytes };
}

function nextHop({ url, method, headers, body }: Hop, location: string, status: number): Hop {
  if (!URL.canParse(location, url.href)) throw fetchFailed(`${url.host} redirects to something that is not a URL`);
  const next = new URL(location, url);
  // By the standard, a moved POST becomes a GET, and so does any other method but GET and HEAD after "see other".
  const becomesGet =
    status === 303 ? method !== "GET" && method !== "HEAD" : (status === 301 || status === 302) && method === "POST";
  return {
    url: next,
    method: becomesGet ? "GET" : method,
    headers: redirectedHeaders(headers, next.origin === url.origin, !becomesGet),
    body: becomesGet ? undefined : body,
  };
}

/** Returns the target of a redirect. Header values are decoded as Latin-1, but servers write non-ASCII addresses in UTF-8. */
function locationOf({ headers }: Dispatcher.ResponseData): string | undefined {
  const { location } = headers;
  const text = Array.isArray(location) ? location[0] : location;
  return text === undefined ? undefined : Buffer.from(text, "latin1").toString("utf8");
}

/** Statuses without a body, whatever the headers say. */
const bodiless = new Set([204, 205, 304]);

function failureOf(error: unknown, url: URL, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof CallFailure) return error;
  if (error instanceof BadCoding) {
    const what = `the body of the answer of ${url.host} cannot be decoded: ${error.message}`;
    return fetchFailed(new WatchfireError("WF_ACCESS_CODING", { what }).message);
  }
  // Only the code is shown, because an error's message may contain addresses that the handler must not see.
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return fetchFailed(`no answer from ${url.host}${code ? `: ${code}` : ""}`);
}
