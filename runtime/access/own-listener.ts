import { networkInterfaces } from "node:os";
import { WatchfireError } from "../base/errors.ts";
import { type CallFailure, fetchFailed } from "./failure.ts";

/**
 * The runtime's own endpoints, where everybody's dead letters are: no handler's `fetch` may come there, whatever its
 * manifest declares. Whoever connects from this machine counts there as its user.
 */
export class OwnListener {
  private readonly port: () => number | undefined;

  /** @param port where the endpoints listen; undefined as long as they do not */
  constructor(port: () => number | undefined) {
    this.port = port;
  }

  /** Why a connection to this address may not be; undefined where it may. Its port on any address of this machine is taken for it. */
  refusal(address: string | undefined, port: number): CallFailure | undefined {
    if (address === undefined || port !== this.port() || !isLocal(plain(address))) return undefined;
    const what = `${address}:${port} is where this runtime listens itself`;
    return fetchFailed(new WatchfireError("WF_ACCESS_OWN_ADDRESS", { what }).message, true);
  }
}

/** An IPv4 address within IPv6, as the kernel writes it, and one without a zone. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");

function isLocal(address: string): boolean {
  if (address.startsWith("127.") || ["0.0.0.0", "::", "::1"].includes(address)) return true;
  return Object.values(networkInterfaces()).some((all) => all?.some((own) => plain(own.address) === address));
}
