import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

/** The name that Node checks a certificate for where its caller gives none. The client gives none for an address. */
const unnamed = "localhost";

/**
 * Makes the check of a server's certificate, for `tls.connect`. A server that has a name must be vouched for under that name. One that
 * was given as an address must be vouched for under an address that was given: Node would ask for `localhost`.
 *
 * @param servers such as `tls://10.0.0.1:4222`
 */
export function identityCheck(servers: readonly string[]): typeof checkServerIdentity {
  const hosts = servers.map(hostOf).filter((host) => host === unnamed || isIP(host) !== 0);
  return (name: string, certificate: PeerCertificate) => {
    if (name !== unnamed || hosts.length === 0) return checkServerIdentity(name, certificate);
    const faults = hosts.map((host) => checkServerIdentity(host, certificate));
    return faults.includes(undefined) ? undefined : faults[0];
  };
}

/** The name or address of a server, without the brackets of IPv6. */
const hostOf = (server: string): string =>
  new URL(server.includes("://") ? server : `nats://${server}`).hostname.replace(/^\[|\]$/g, "");
