import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

/** The name that Node checks a certificate against by default. The client sets no name for a server given by its address. */
const unnamed = "localhost";

/**
 * Returns the certificate check for `tls.connect`. The certificate of a server given by name must be valid for that name. For a
 * server given by address, the certificate must be valid for one of the given addresses, where Node would check `localhost`.
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

/** Returns the name or address of a server, without the brackets of IPv6. */
const hostOf = (server: string): string =>
  new URL(server.includes("://") ? server : `nats://${server}`).hostname.replace(/^\[|\]$/g, "");
