import { isIP } from "node:net";

/**
 * Whether a request may name this host. A web page can have its own name lead to this machine, and then read the
 * answers (DNS rebinding). It cannot be called by an address, nor by a name that only a cluster or a local network
 * resolves. So these are allowed: addresses, `localhost`, names without a dot, and a Service's name to its end
 * (`NAME.NAMESPACE.svc`, with or without `cluster.local`). `own` is allowed as well: the name that is listened on, and
 * this machine's.
 */
export function isOwnHost(header: string, own: readonly string[]): boolean {
  const host = header.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
  if (host.startsWith("[") && host.endsWith("]")) return isIP(host.slice(1, -1)) === 6;
  if (isIP(host) !== 0 || own.includes(host)) return true;
  return /^[a-z0-9_-]+$/.test(host) || /\.(localhost|svc|svc\.cluster\.local)$/.test(host);
}
