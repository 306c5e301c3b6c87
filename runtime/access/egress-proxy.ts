import { type Dispatcher, ProxyAgent } from "undici";
import { type LastLook, withLastLook } from "../kube/last-look.ts";
import { type ProxyEnvironment, proxyFromEnvironment } from "../kube/proxy.ts";
import { fetchFailed } from "./failure.ts";

/** Supported protocols of a proxy. */
const protocols = new Set(["http:", "https:", "socks5:"]);
/** The same as without a proxy. */
const connectTimeoutMs = 10_000;

/**
 * Chooses the proxy of each request that a handler sends, by the runtime's environment. HTTPS_PROXY, HTTP_PROXY and NO_PROXY are
 * interpreted as for the API server.
 */
export class EgressProxy {
  private readonly environment: ProxyEnvironment;
  private readonly lastLook: LastLook | undefined;
  private readonly agents = new Map<string, Dispatcher>();

  constructor(environment: ProxyEnvironment, lastLook: LastLook | undefined) {
    this.environment = environment;
    this.lastLook = lastLook;
  }

  /**
   * Returns the dispatcher for requests to this URL. `undefined` if no proxy applies. Throws a FetchError if the proxy's URL is
   * invalid.
   */
  agentFor(url: URL): Dispatcher | undefined {
    const proxy = proxyFromEnvironment(url.origin, this.environment);
    if (proxy === undefined) return undefined;
    const found = this.agents.get(proxy);
    if (found) return found;
    // The proxy's URL is not shown, because it may contain a password.
    if (!URL.canParse(proxy) || !protocols.has(new URL(proxy).protocol)) {
      throw fetchFailed(`the runtime's proxy for ${url.protocol}// is not an http, https or socks5 URL`);
    }
    const timeout = { timeout: connectTimeoutMs };
    const agent = new ProxyAgent({ uri: proxy, requestTls: timeout, proxyTls: timeout, maxHeaderSize: 32 * 1024 });
    const made = this.lastLook ? withLastLook(agent, this.lastLook) : agent;
    this.agents.set(proxy, made);
    return made;
  }

  async close(): Promise<void> {
    await Promise.all([...this.agents.values()].map((agent) => agent.destroy()));
  }
}
