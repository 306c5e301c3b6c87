import { type BlockList, isIP } from "node:net";
import type { Egress } from "../manifest/function.ts";
import { isMachine } from "../manifest/surroundings-schema.ts";
import { classOf, holds, listOf } from "./address.ts";
import type { EndpointGuard } from "./endpoint-guard.ts";
import { fetchFailed } from "./failure.ts";
import { type HostResolver, systemResolver } from "./resolver.ts";

/** Names that only the cluster's DNS can answer. They may lead to its services. */
const clusterName = /\.svc(?:\.cluster\.local)?$/;

/** Warning in a message that suggests to declare a private address. */
const opensInside =
  ", if that is intended: the handler then reaches services that listen only for the runtime's machine or network";

const byAddress = "no name may resolve to the machine itself: fetch by its address, and add to the manifest's egress";

/** The network that a rule's names may lead to: `Private` includes private addresses. */
export type Network = Egress["network"];

type Addresses = Awaited<ReturnType<HostResolver>>;

/** Decides where a function's `fetch` may connect: by the manifest's `egress`, and by the addresses of the name. */
export class EgressPolicy {
  private readonly resolver: HostResolver;
  private readonly cluster: BlockList;
  private readonly own: EndpointGuard;

  constructor(own: EndpointGuard, resolver: HostResolver = systemResolver, clusterNetworks: readonly string[] = []) {
    this.own = own;
    this.resolver = resolver;
    this.cluster = listOf(clusterNetworks);
  }

  /**
   * Returns the network that the URL's name may lead to, by the rules that allow it. The name's addresses are checked when it is
   * connected to. Throws a FetchError that names the refused destination and the rule to declare.
   */
  admit(url: URL, egress: readonly Egress[]): Network {
    if (url.protocol !== "https:" && url.protocol !== "http:")
      throw refusedUrl(url, "only http and https are supported");
    if (url.username !== "" || url.password !== "") {
      throw refusedUrl(url, "a URL carries no user or password; use a header");
    }
    const host = plainHost(url);
    const port = portOf(url);
    const refusal = isIP(host) === 0 ? undefined : this.own.refusal(host, port);
    if (refusal) throw refusal;
    const allowing = egress.filter((rule) => covers(rule.host, host) && rule.ports.includes(port));
    if (allowing.length > 0) return allowing.some(({ network }) => network === "Private") ? "Private" : "Public";
    // A rule with the machine's name would allow nothing.
    const named = isMachine(host) ? "127.0.0.1" : host;
    const way = named === host ? "add to its egress" : byAddress;
    const warning = isIP(named) !== 0 && classOf(named) !== "public" ? opensInside : "";
    const rule = `- { host: ${JSON.stringify(named)}, ports: [${port}] }${warning}`;
    throw fetchFailed(`the manifest does not allow ${host}:${port}; ${way}: ${rule}`, true);
  }

  /**
   * Returns the addresses to connect to, each checked. The connection uses exactly these, so a later DNS answer has no effect.
   * Not called for a literal address, which was declared as such. The runtime's own port is refused by the fetcher, by the address of the
   * connected socket.
   */
  async resolve(host: string, network: Network): Promise<Addresses> {
    const addresses = await this.addressesOf(host);
    if (addresses.length === 0) throw fetchFailed(`${host} has no address`);
    this.check(host, addresses, network);
    return addresses;
  }

  /**
   * Checks the addresses of a name that a proxy will resolve. A name without an address here is allowed: there is often no other
   * DNS behind such a proxy, and the proxy's rules decide.
   */
  async checkAhead(url: URL, network: Network): Promise<void> {
    const host = plainHost(url);
    if (isIP(host) !== 0) return;
    const addresses = await this.addressesOf(host);
    const port = portOf(url);
    for (const { address } of addresses) {
      const refusal = this.own.refusal(address, port);
      if (refusal) throw refusal;
    }
    this.check(host, addresses, network);
  }

  private async addressesOf(host: string): Promise<Addresses> {
    try {
      return await this.resolver(host.replace(/\.$/, ""));
    } catch {
      return [];
    }
  }

  /** Refuses all addresses if one is not allowed, because such a name may be an attempt to reach the network. */
  private check(host: string, addresses: Addresses, network: Network): void {
    const bad = addresses.find(({ address }) => !this.isReachable(host, address, network));
    if (bad)
      throw fetchFailed(`${host} leads to ${bad.address}, which is not a public address; ${this.remedy(bad)}`, true);
  }

  private isReachable(host: string, address: string, network: Network): boolean {
    const type = classOf(address);
    if (type === "special") return false;
    if (network === "Private" || clusterName.test(host.replace(/\.$/, ""))) return true;
    return type === "public" && !holds(this.cluster, address);
  }

  private remedy({ address }: Addresses[number]): string {
    return classOf(address) === "special"
      ? "fetch by that address, and declare it as the host, if that is intended"
      : "add `network: Private` to its egress rule if that is intended";
  }
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

/** Returns the URL's host in the form of the allow-list: without brackets or a final dot. */
function plainHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** True if a rule's host is the URL's host or a parent domain of it. */
function covers(declared: string, host: string): boolean {
  if (!declared.startsWith("*.")) return declaredHost(declared) === host;
  return isIP(host) === 0 && host.endsWith(`.${declaredHost(declared.slice(2))}`);
}

/** Returns a declared host in the form that a URL gives it, so that two notations of one address are equal. */
function declaredHost(host: string): string {
  const text = `http://${host.includes(":") ? `[${host}]` : host}`;
  return URL.canParse(text) ? plainHost(new URL(text)) : host;
}

const refusedUrl = (url: URL, why: string) => fetchFailed(`${url.protocol}//${url.host}: ${why}`, true);
