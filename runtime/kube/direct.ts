import { type Clock, systemClock } from "../base/clock.ts";
import { version } from "../base/version.ts";
import { HttpTransport } from "./http-transport.ts";
import { bearer, fixedIdentity } from "./identity.ts";
import type { SharedTransport } from "./transport.ts";

export interface DirectConnection {
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** PEM of the authority that signed the server's certificate; default: the system's authorities. */
  readonly ca?: string | Buffer | undefined;
  readonly token?: string | undefined;
  readonly description?: string;
  readonly clock?: Clock;
}

/** Connects to a server with a known address, authority and token, without loading a kubeconfig or its library. */
export function connectDirect(connection: DirectConnection): SharedTransport {
  const { server, ca, token, clock = systemClock, description = server } = connection;
  const identity = fixedIdentity({
    headers: token === undefined ? {} : { authorization: bearer(token) },
    tls: ca === undefined ? {} : { ca },
  });
  return new HttpTransport({ server, identity, clock, userAgent: `watchfire/${version}`, description });
}
