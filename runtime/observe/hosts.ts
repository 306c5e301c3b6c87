import { isIP } from "node:net";

/**
 * Whether a request's Host header is allowed. A web page can make its own name resolve to this machine and then read the answers
 * (DNS rebinding). Such a page has neither an address nor a name that only a cluster or a local network resolves. So addresses,
 * `localhost`, names without a dot, and full names of Services (`NAME.NAMESPACE.svc`, with or without `cluster.local`) are
 * allowed. `own` is allowed as well: the name that is listened on, and this machine's.
 */
export function isOwnHost(header: string, own: readonly string[]): boolean {
  const host = header.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
  if (host.startsWith("[") && host.endsWith("]")) return isIP(host.slice(1, -1)) === 6;
  if (isIP(host) !== 0 || own.includes(host)) return true;
  return /^[a-z0-9_-]+$/.test(host) || /\.(localhost|svc|svc\.cluster\.local)$/.test(host);
}

/** Whether a peer's address is this machine's own. */
export const isLoopback = (address: string | undefined): boolean =>
  address !== undefined && (address === "::1" || /^(::ffff:)?127\./.test(address));

/** Whether a Host header is a loopback name. Only a page of this machine can have it in its URL. */
export const isLoopbackHost = (host: string | undefined): boolean =>
  host !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
