import { type BlockList, isIP } from "node:net";
import type { Egress } from "../manifest/function.ts";
import { classOf, holds, listOf } from "./address.ts";
import { fetchFailed } from "./failure.ts";
import type { OwnListener } from "./own-listener.ts";
import { type HostResolver, systemResolver } from "./resolver.ts";

/** Names that only the cluster's own DNS can answer: they may lead to its services. */
const clusterName = /\.svc(?:\.cluster\.local)?$/;

/** Said where an address is to be declared that is no public one. */
const opensInside =
  ", if that is meant: it opens to the handler what listens there for the runtime's machine or network alone";

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
    const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
    const refusal = isIP(host) === 0 ? undefined : this.own.refusal(host, port);
    if (refusal) throw refusal;
    const allowing = egress.filter((rule) => covers(rule.host, host) && rule.ports.includes(port));
    if (allowing.length > 0) return allowing.some(({ network }) => network === "Private") ? "Private" : "Public";
    const rule = `- { host: ${JSON.stringify(host)}, ports: [${port}] }`;
    const warning = isIP(host) !== 0 && classOf(host) !== "public" ? opensInside : "";
    throw fetchFailed(`the manifest does not allow ${host}:${port}; add to its egress: ${rule}${warning}`, true);
  }

  /**
   * The addresses to connect to, every one checked: the connection is made to these, so that no later answer of DNS can
   * lead elsewhere. A literal address never comes here: it was declared as that address, so it is meant.
   */
  async resolve(host: string, network: Network): Promise<Addresses> {
    let addresses: Addresses;
    try {
      addresses = await this.resolver(host.replace(/\.$/, ""));
    } catch {
      throw fetchFailed(`${host} has no address`);
    }
    if (addresses.length === 0) throw fetchFailed(`${host} has no address`);
    // One bad address among good ones is a name that is being used to get in: none is taken.
    const bad = addresses.find(({ address }) => !this.isReachable(host, address, network));
    if (bad)
      throw fetchFailed(`${host} leads to ${bad.address}, which is no public address; ${this.remedy(bad)}`, true);
    return addresses;
  }

  private isReachable(host: string, address: string, network: Network): boolean {
    const type = classOf(address);
    if (type === "special") return false;
    if (network === "Private" || clusterName.test(host.replace(/\.$/, ""))) return true;
    return type === "public" && !holds(this.cluster, address);
  }

  private remedy({ address }: Addresses[number]): string {
    return classOf(address) === "special"
      ? "declare that address itself as the host if it is meant"
      : "add `network: Private` to its egress rule if it is meant";
  }
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
