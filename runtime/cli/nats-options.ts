import { accessSync, constants } from "node:fs";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import type { NatsOptions } from "../journal/nats/connection.ts";
import type { Option, Values } from "./command.ts";

/** The options that name the NATS servers that hold the checkpoints. */
export const natsOptions = {
  nats: {
    value: "URL[,URL]",
    summary: "for --store nats: a server, or some of a cluster, such as nats://nats.nats:4222",
  },
  "nats-creds": { value: "FILE", summary: "a user's credentials for NATS, or its nkey's seed" },
  "nats-ca": { value: "FILE", summary: "CA certificates of NATS, PEM; implies TLS" },
  "nats-cert": { value: "FILE", summary: "a certificate to show to NATS, PEM" },
  "nats-key": { value: "FILE", summary: "that certificate's key, PEM" },
  "nats-replicas": { value: "N", summary: "the number of servers that store a new stream; default: 3 on a cluster" },
} as const satisfies Record<string, Option>;

/**
 * Returns the NATS servers. `undefined` if they are neither given nor needed.
 * @param assertReadable throws for a file that cannot be read
 * @throws WatchfireError WF_CLI_USAGE
 */
export function readNats(
  options: Values<typeof natsOptions>,
  store: StoreKind,
  assertReadable: (file: string) => void = (file) => accessSync(file, constants.R_OK),
): Omit<NatsOptions, "name" | "log"> | undefined {
  const { nats, "nats-creds": credentials, "nats-ca": ca, "nats-cert": cert, "nats-key": key } = options;
  if (nats === undefined) {
    if (store !== "nats") return undefined;
    throw new WatchfireError("WF_CLI_USAGE", { what: "--store nats needs --nats URL" });
  }
  const servers = nats.split(",").map((server) => server.trim());
  for (const server of servers) {
    const url = URL.parse(server.includes("://") ? server : `nats://${server}`);
    if (!url || !["nats:", "tls:"].includes(url.protocol) || url.hostname === "") {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--nats takes nats://HOST:PORT or tls://HOST:PORT" });
    }
    // Others can read command lines, and logs contain the address.
    if (url.username !== "" || url.password !== "") {
      throw new WatchfireError("WF_CLI_USAGE", {
        what: "--nats takes no user and no password",
        hint: "name a file of credentials with --nats-creds",
      });
    }
  }
  if ((cert === undefined) !== (key === undefined))
    throw new WatchfireError("WF_CLI_USAGE", { what: "--nats-cert and --nats-key belong together" });
  assertFiles(options, assertReadable);
  const isTls = ca !== undefined || cert !== undefined || servers.some((server) => server.startsWith("tls://"));
  return {
    servers,
    credentials,
    ...(isTls && { tls: { ca, cert, key } }),
    replicas: readReplicas(options["nats-replicas"]),
  };
}

/** Checks the files immediately, because a standby may only connect to NATS days later. */
function assertFiles(options: Values<typeof natsOptions>, assertReadable: (file: string) => void): void {
  for (const option of ["nats-creds", "nats-ca", "nats-cert", "nats-key"] as const) {
    const file = options[option];
    if (file === undefined) continue;
    try {
      assertReadable(file);
    } catch (cause) {
      const what = `--${option} names a file that cannot be read: ${systemReason(cause)}`;
      throw new WatchfireError("WF_CLI_USAGE", {
        what,
        actual: file,
        hint: "name a file that this process may read; in a pod, look at the volume that contains it",
        cause,
      });
    }
  }
}

function readReplicas(text: string | undefined): number | undefined {
  if (text === undefined || /^[1-5]$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new WatchfireError("WF_CLI_USAGE", { what: "--nats-replicas takes 1 to 5", actual: text });
}
