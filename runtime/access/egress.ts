import { type BlockList, isIP } from "node:net";
import type { Egress } from "../manifest/function.ts";
import { isMachine } from "../manifest/surroundings-schema.ts";
import { classOf, holds, listOf } from "./address.ts";
import { fetchFailed } from "./failure.ts";
import type { OwnListener } from "./own-listener.ts";
import { type HostResolver, systemResolver } from "./resolver.ts";

/** Names that only the cluster's own DNS can answer: they may lead to its services. */
const clusterName = /\.svc(?:\.cluster\.local)?$/;

/** Said where an address is to be declared that is no public one. */
const opensInside =
  ", if that is meant: it opens to the handler what listens there for the runtime's machine or network alone";

const byAddress = "no name may lead to the machine itself: fetch by its address, and add to the manifest's egress";

/** Where the names of a rule may lead. */
export type Network = Egress["network"];

type Addresses = Awaited<ReturnType<HostResolver>>;

/** Decides where a function's `fetch` may go: by its manifest's `egress` alone, and by the address behind the name. */
export class EgressPolicy {
  private readonly resolver: HostResolver;
  private readonly cluster: BlockList;
  private readonly own: OwnListener;

  constructor(own: OwnListener, resolver: HostResolver = systemResolver, clusterNetworks: readonly string[] = []) {
    this.own = own;
    this.resolver = resolver;
    this.cluster = listOf(clusterNetworks);
  }

  /**
   * Where the URL's name may lead, by the rules that allow it. The name's addresses are checked when it is connected to.
   * Throws a FetchError that says what is refused and what to declare.
   */
  admit(url: URL, egress: readonly Egress[]): Network {
    if (url.protocol !== "https:" && url.protocol !== "http:") throw refusedUrl(url, "only http and https are spoken");
    if (url.username !== "" || url.password !== "") {
      throw refusedUrl(url, "a URL carries no user or password; use a header");
    }
    const host = plainHost(url);
    const port = portOf(url);
    const refusal = isIP(host) === 0 ? undefined : this.own.refusal(host, port);
    if (refusal) throw refusal;
    const allowing = egress.filter((rule) => covers(rule.host, host) && rule.ports.includes(port));
    if (allowing.length > 0) return allowing.some(({ network }) => network === "Private") ? "Private" : "Public";
    // A rule for the machine's name would admit nothing.
    const named = isMachine(host) ? "127.0.0.1" : host;
    const way = named === host ? "add to its egress" : byAddress;
    const warning = isIP(named) !== 0 && classOf(named) !== "public" ? opensInside : "";
    const rule = `- { host: ${JSON.stringify(named)}, ports: [${port}] }${warning}`;
    throw fetchFailed(`the manifest does not allow ${host}:${port}; ${way}: ${rule}`, true);
  }

  /**
   * The addresses to connect to, every one checked: the connection is made to these, so that no later answer of DNS can
   * lead elsewhere. A literal address never comes here: it was declared as that address, so it is meant.
   */
  async resolve(host: string, network: Network): Promise<Addresses> {
    const addresses = await this.addressesOf(host);
    if (addresses.length === 0) throw fetchFailed(`${host} has no address`);
    this.check(host, addresses, network);
    return addresses;
  }

  /**
   * Checks where a name leads that a proxy will look up. A name that has no address here passes: behind such a proxy
   * there often is no other DNS, and its own rules decide.
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

  /** One bad address among good ones is a name that is being used to get in: none is taken. */
  private check(host: string, addresses: Addresses, network: Network): void {
    const bad = addresses.find(({ address }) => !this.isReachable(host, address, network));
    if (bad)
      throw fetchFailed(`${host} leads to ${bad.address}, which is no public address; ${this.remedy(bad)}`, true);
  }

  private isReachable(host: string, address: string, network: Network): boolean {
    const type = classOf(address);
    if (type === "special") return false;
    if (network === "Private" || clusterName.test(host.replace(/\.$/, ""))) return true;
    return type === "public" && !holds(this.cluster, address);
  }

  private remedy({ address }: Addresses[number]): string {
    return classOf(address) === "special"
      ? "fetch by that address, and declare it as the host, if it is meant"
      : "add `network: Private` to its egress rule if it is meant";
  }
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

/** The URL's host as the allow-list has it: no brackets, no final dot, no zone. */
function plainHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** Whether a rule's host is the URL's, or a domain above it. */
function covers(declared: string, host: string): boolean {
  if (!declared.startsWith("*.")) return declaredHost(declared) === host;
  return isIP(host) === 0 && host.endsWith(`.${declaredHost(declared.slice(2))}`);
}

/** A declared host in the form that a URL gives to it, so that two notations of one address are equal. */
function declaredHost(host: string): string {
  const text = `http://${host.includes(":") ? `[${host}]` : host}`;
  return URL.canParse(text) ? plainHost(new URL(text)) : host;
}

const refusedUrl = (url: URL, why: string) => fetchFailed(`${url.protocol}//${url.host}: ${why}`, true);
