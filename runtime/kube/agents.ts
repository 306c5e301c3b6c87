import { createHash } from "node:crypto";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { Clock, Timer } from "../base/clock.ts";
import type { TlsMaterial } from "./identity.ts";
import type { KubeRequest } from "./transport.ts";

/**
 * Idle time before Node probes a connection, in milliseconds. With ten probes a second apart, a dead peer is found in about 25 s.
 */
const keepAliveDelayMs = 15_000;
const connectTimeoutMs = 10_000;
/**
 * Connections for reads and writes. client-go's default is one HTTP/2 connection; on HTTP/1.1 this many keep a busy handler from
 * queueing.
 */
const restConnections = 16;
/** Delay before agents of replaced certificates are closed, in milliseconds: the longest watch that may still use them. */
const retireMs = 600_000;

type Purpose = NonNullable<KubeRequest["purpose"]>;
type Agency = Readonly<Record<Purpose, Dispatcher>>;

/**
 * Connection pools to one server. Requests with the same TLS material share an agent; a rotated certificate gets new agents, and
 * the old ones are closed 10 minutes later. Watches have a separate agent on HTTP/1.1, so that each has its own connection and a
 * stalled or slow watch cannot delay another. Functions' calls have a separate agent without a limit: their number is limited
 * where they are made, and under a smaller limit one function could take every connection.
 */
export class Agents {
  private readonly proxy: string | undefined;
  private readonly clock: Clock;
  private readonly agencies = new Map<string, Agency>();
  private readonly retiring = new Set<Timer>();
  /** Current TLS material of each user of the pool: the runtime, and all functions' accounts together. */
  private readonly current = new Map<string, { readonly tls: TlsMaterial; readonly key: string }>();

  /** @param proxy the URL of an http, https or socks5 proxy. */
  constructor(proxy: string | undefined, clock: Clock) {
    this.proxy = proxy;
    this.clock = clock;
  }

  /**
   * Returns the agent for these credentials and this purpose. Newer material retires only the previous material of the same user.
   */
  for(tls: TlsMaterial, purpose: Purpose, user = ""): Dispatcher {
    const before = this.current.get(user);
    const key = before && tls === before.tls ? before.key : hash(tls);
    this.current.set(user, { tls, key });
    let agency = this.agencies.get(key);
    if (!agency) {
      agency = { rest: this.agent(tls, restConnections), watch: this.agent(tls), call: this.agent(tls) };
      this.agencies.set(key, agency);
    }
    if (before && before.key !== key) this.retire(before.key);
    return agency[purpose];
  }

  async close(): Promise<void> {
    for (const timer of this.retiring) timer.cancel();
    this.retiring.clear();
    const agents = [...this.agencies.values()].flatMap((agency) => Object.values(agency));
    this.agencies.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  private retire(key: string): void {
    const timer = this.clock.after(
      retireMs,
      () => {
        this.retiring.delete(timer);
        const agency = this.agencies.get(key);
        if (!agency || [...this.current.values()].some((each) => each.key === key)) return;
        this.agencies.delete(key);
        for (const agent of Object.values(agency)) void agent.close();
      },
      { unref: true },
    );
    this.retiring.add(timer);
  }

  private agent(tls: TlsMaterial, connections?: number): Dispatcher {
    const options = {
      allowH2: false,
      pipelining: 1,
      bodyTimeout: 0,
      keepAliveTimeout: 30_000,
      ...(connections === undefined ? {} : { connections }),
    };
    const connect = { keepAlive: true, keepAliveInitialDelay: keepAliveDelayMs, timeout: connectTimeoutMs };
    if (this.proxy === undefined) return new Agent({ ...options, connect: { ...tls, ...connect } });
    return new ProxyAgent({ ...options, uri: this.proxy, requestTls: { ...tls, ...connect }, connect });
  }
}

function hash(tls: TlsMaterial): string {
  const digest = createHash("sha256");
  const fields = [tls.ca, tls.cert, tls.key, tls.servername, String(tls.rejectUnauthorized)];
  for (const field of fields) {
    digest.update(field === undefined ? "-" : `${field.length}:`);
    if (field !== undefined) digest.update(field);
  }
  return digest.digest("base64");
}
