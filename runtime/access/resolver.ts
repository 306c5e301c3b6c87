import { lookup } from "node:dns/promises";

/** Resolves a host name to its addresses. */
export type HostResolver = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

/** The system's resolver, with `/etc/hosts` and search domains, as other programs of the machine use it. */
export const systemResolver: HostResolver = (host) => lookup(host, { all: true, verbatim: true });
