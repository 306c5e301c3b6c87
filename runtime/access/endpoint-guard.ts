import { networkInterfaces } from "node:os";
import { WatchfireError } from "../base/errors.ts";
import { type CallFailure, fetchFailed } from "./failure.ts";

/**
 * Protects the runtime's endpoints, which serve the dead letters of all functions, from handlers' `fetch`, whatever the manifest
 * declares. They would trust a connection from this machine as one of its user.
 */
export class EndpointGuard {
  private readonly port: () => number | undefined;

  /** @param port returns the endpoints' port; `undefined` while they do not listen */
  constructor(port: () => number | undefined) {
    this.port = port;
  }

  /**
   * Returns why a connection to this address is refused. `undefined` if it is allowed. The port is refused on every address of
   * this machine.
   */
  refusal(address: string | undefined, port: number): CallFailure | undefined {
    if (address === undefined || port !== this.port() || !isLocal(plain(address))) return undefined;
    const what = `${address}:${port} is where this runtime listens itself`;
    return fetchFailed(new WatchfireError("WF_ACCESS_OWN_ADDRESS", { what }).message, true);
  }
}

/** Returns the IPv4 address inside an IPv6 one, as the kernel writes it, and an address without its zone. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");

function isLocal(address: string): boolean {
  if (address.startsWith("127.") || ["0.0.0.0", "::", "::1"].includes(address)) return true;
  return Object.values(networkInterfaces()).some((all) => all?.some((own) => plain(own.address) === address));
}
