import { WatchfireError } from "../errors.ts";

/** @throws WatchfireError WF_CLI_USAGE unless `text` is a port, 0 to 65535 */
export function readPort(option: string, text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new WatchfireError("WF_CLI_USAGE", { what: `${option} takes a port, 0 to 65535`, actual: text });
}

/** Splits `HOST:PORT`; an IPv6 host stands in brackets. @throws WatchfireError WF_CLI_USAGE */
export function readListen(option: string, text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  if (!host || match?.[3] === undefined) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: `${option} takes HOST:PORT`,
      actual: text,
      hint: "such as 127.0.0.1:9464",
    });
  }
  return { host, port: readPort(option, match[3]) };
}
