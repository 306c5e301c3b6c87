import { lookup } from "node:dns/promises";

/** Turns a host name into its addresses. */
export type HostResolver = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

/** The system's: `/etc/hosts`, search domains and all, as every other program of the machine sees it. */
export const systemResolver: HostResolver = (host) => lookup(host, { all: true, verbatim: true });
