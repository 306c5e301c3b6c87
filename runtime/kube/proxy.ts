import { BlockList, isIP } from "node:net";

/** The variables that name proxies, as read by config.ts. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the proxy that the environment names for `server`, by the rules of Go's `httpproxy`, which kubectl follows. The
 * server's scheme selects HTTPS_PROXY or HTTP_PROXY, in upper or lower case. No proxy is used for loopback addresses and for
 * entries of NO_PROXY. An entry is a host with everything below it, `.suffix`, an address or a CIDR, each with an optional port,
 * or `*`.
 */
export function proxyFromEnvironment(server: string, environment: ProxyEnvironment): string | undefined {
  const url = new URL(server);
  const name = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  const proxy = environment[name.toUpperCase()] || environment[name];
  if (!proxy) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (host === "localhost" || isLoopback(host)) return undefined;
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const exceptions = (environment.NO_PROXY || environment.no_proxy || "").split(",");
  if (exceptions.some((exception) => excludes(exception.trim().toLowerCase(), host, port))) return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function excludes(rule: string, host: string, port: string): boolean {
  if (rule === "") return false;
  if (rule === "*") return true;
  if (rule.includes("/")) return inNetwork(rule, host);
  const [, name = rule, rulePort] = /^(.*?):(\d+)$/.exec(isIP(rule) === 6 ? "" : rule) ?? [];
  if (rulePort !== undefined && rulePort !== port) return false;
  if (isIP(name)) return name === host;
  const suffix = name.replace(/^\*?\./, "");
  return host.endsWith(`.${suffix}`) || (name === suffix && host === suffix);
}

function inNetwork(rule: string, host: string): boolean {
  const family = isIP(host);
  const [network = "", bits = ""] = rule.split("/");
  if (family === 0 || isIP(network) !== family || !/^\d+$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) {
    return false;
  }
  const type = family === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, Number(bits), type);
  return list.check(host, type);
}
