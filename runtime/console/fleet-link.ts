// First: the server extends the Web classes as it is loaded.
import "../observe/web-classes.ts";
import { createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync, type KeyObject } from "node:crypto";
import { createServer, type RequestOptions, request, type Server } from "node:https";
import { type AddressInfo, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { getRequestListener } from "@hono/node-server";
import { z } from "zod";
import { systemReason } from "../base/wording.ts";
import { limitConnections, serverLimits } from "../observe/connections.ts";

/** Milliseconds that another replica has for an answer, if nothing else is given: to a read, and to a change, which may report after 8 s. */
const readMs = 5_000;
const changeMs = 12_000;
/** Largest answer of another replica, in bytes. */
const mostAnswerBytes = 16 * 1024 * 1024;

/** Keys are agreed by the replicas' public keys, so there are no certificates. The keys of a connection are new each time. */
const protocol = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const;

/** An announcement on a replica's own Lease: where it answers other replicas, and its public key. */
const announcementSchema = z.object({
  host: z.string().min(1).max(253),
  port: z.number().int().min(1).max(65_535),
  key: z.base64().max(200),
});

/** A live replica of the fleet. */
export interface FleetPeer {
  /** Its name and the term of its Lease, as slots' Leases have it. */
  readonly owner: string;
  /** The text of its announcement. Absent if it answers no other replica. */
  readonly announcement?: string | undefined;
}

interface FleetLinkParts {
  /** This replica, once it has joined. */
  readonly self: () => string | undefined;
  /** The live replicas, by their Leases. */
  readonly peers: () => readonly FleetPeer[];
  /** Answers another replica: for this replica alone. */
  readonly answer: (request: Request) => Response | Promise<Response>;
  /** Milliseconds that another replica has for an answer. Default: 5,000 for a read, 12,000 for a change. */
  readonly askMs?: number;
}

/** An answer of another replica. */
interface PeerAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Connects the replicas of a fleet. Each makes a pair of keys when it starts, and announces the public one on its own Lease, which
 * only the runtime's account may write. Two replicas agree on a key that nobody else can compute, and it both encrypts the
 * connection and proves who asks whom. So no token and no Secret is needed, and nothing has to be stored.
 */
export class FleetLink {
  private readonly parts: FleetLinkParts;
  private readonly pair = generateKeyPairSync("x25519");
  private readonly key = publicText(this.pair.publicKey);
  private readonly server: Server;
  private at: { readonly host: string; readonly port: number } | undefined;

  private constructor(parts: FleetLinkParts) {
    this.parts = parts;
    this.server = createServer(
      {
        ...protocol,
        ...serverLimits,
        pskCallback: (_socket, identity: string) => this.keyFor(identity, parts.self(), identity) ?? null,
      },
      getRequestListener(parts.answer),
    );
    limitConnections(this.server as never);
    // A stranger's handshake fails: there is nobody to report it to.
    this.server.on("tlsClientError", () => undefined);
  }

  /**
   * Listens for other replicas on `host:port`; on any port if that is taken.
   * @param host `0.0.0.0`, `::` or one address; it is announced, or this machine's first address for a wildcard
   */
  static async open(host: string, port: number, parts: FleetLinkParts): Promise<FleetLink> {
    const link = new FleetLink(parts);
    const bound = await link.listen(host, port).catch(() => link.listen(host, 0));
    link.at = { host: announcedHost(host), port: bound };
    return link;
  }

  /** The text for this replica's Lease. */
  get announcement(): string {
    return JSON.stringify({ ...this.at, key: this.key });
  }

  /** The other live replicas, by `owner`. */
  get others(): readonly FleetPeer[] {
    const self = this.parts.self();
    return self === undefined ? [] : this.parts.peers().filter(({ owner }) => owner !== self);
  }

  /**
   * Asks another replica. It answers for itself alone, and asks no further one. Rejects with an Error that says why it did not
   * answer.
   */
  async ask(owner: string, method: string, path: string, body?: string): Promise<PeerAnswer> {
    const { askMs = method === "GET" ? readMs : changeMs } = this.parts;
    const self = this.parts.self();
    const peer = this.announced(owner);
    const psk = this.keyFor(owner, owner, self);
    if (!peer || !psk || self === undefined) throw new Error("it announces no address");
    const options = {
      ...protocol,
      host: peer.host,
      port: peer.port,
      method,
      path,
      agent: false,
      headers: { host: "replica", ...(body !== undefined && { "content-type": "application/json" }) },
      signal: AbortSignal.timeout(askMs),
      checkServerIdentity: () => undefined,
      // Known to TLS, and passed on to it by HTTPS.
      pskCallback: () => ({ identity: self, psk }),
    };
    try {
      return await send(options, body);
    } catch (error) {
      const isLate = error instanceof Error && error.name === "AbortError";
      throw new Error(isLate ? `no answer within ${askMs / 1000} s` : systemReason(error));
    }
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private announced(owner: string): z.infer<typeof announcementSchema> | undefined {
    const text = this.parts.peers().find((peer) => peer.owner === owner)?.announcement;
    if (text === undefined) return undefined;
    try {
      return announcementSchema.parse(JSON.parse(text));
    } catch {
      return undefined;
    }
  }

  /** Returns the key that this replica and a peer agree on, for requests to `asked`. */
  private keyFor(peer: string, asked: string | undefined, asker: string | undefined): Buffer | undefined {
    const announced = this.announced(peer);
    if (!announced || asked === undefined || asker === undefined || asked === asker) return undefined;
    try {
      const publicKey = createPublicKey({ key: Buffer.from(announced.key, "base64"), format: "der", type: "spki" });
      const secret = diffieHellman({ privateKey: this.pair.privateKey, publicKey });
      return Buffer.from(hkdfSync("sha256", secret, "", `watchfire fleet\n${asker}\n${asked}`, 32));
    } catch {
      return undefined;
    }
  }

  private listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(port, host, () => {
        this.server.off("error", reject);
        resolve((this.server.address() as AddressInfo).port);
      });
    });
  }
}

const publicText = (key: KeyObject): string => key.export({ type: "spki", format: "der" }).toString("base64");

/** A wildcard is replaced by the first address of this machine that is not a loopback one. */
function announcedHost(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const own = all.find(({ internal, family }) => !internal && (host === "::" || family === "IPv4"));
  return own?.address ?? (isIPv6(host) ? "::1" : "127.0.0.1");
}

function send(options: RequestOptions, body: string | undefined): Promise<PeerAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on("data", (part: Buffer) => {
        parts.push(part);
        size += part.length;
        if (size > mostAnswerBytes) sent.destroy(new Error("its answer is too large"));
      });
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
