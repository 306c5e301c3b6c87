import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { JetStreamClient, JetStreamManager, StreamConfig, StreamInfo } from "@nats-io/jetstream";
import type { ObjectStore } from "@nats-io/obj";
import type { Authenticator, NatsConnection } from "@nats-io/transport-node";
import { WatchfireError } from "../../base/errors.ts";
import { otherCluster } from "../cluster.ts";
import { connectFault, isStatus, natsFault, status } from "./fault.ts";

/** Which messages of a subject a stream must keep: all of a log and of objects, only the last of bodies. */
type Keeps = "all" | "last";

/**
 * Refuses a stream whose limits would delete messages that nothing has replaced. Such a stream was created or changed by hand.
 * Limits that refuse new messages are allowed.
 * @throws WatchfireError WF_CHECKPOINT_NATS_FORGETS
 */
function assertKeeps(config: StreamConfig, keeps: Keeps): void {
  const { name, retention, discard, max_age, max_msgs, max_bytes, max_msgs_per_subject } = config;
  const found = {
    ...(retention !== "limits" && { retention }),
    ...(max_age > 0 && { max_age: `${max_age / 1e9}s` }),
    ...(max_msgs >= 0 && discard !== "new" && { max_msgs, discard }),
    ...(max_bytes >= 0 && discard !== "new" && { max_bytes, discard }),
    // The limit of a subject deletes its oldest message whatever `discard` says.
    ...(max_msgs_per_subject > 0 && keeps === "all" && { max_msgs_per_subject }),
  };
  const limits = Object.entries(found).map(([key, value]) => `${key}: ${value}`);
  if (limits.length === 0) return;
  const what = `the stream ${name} has ${limits.join(", ")}`;
  throw new WatchfireError("WF_CHECKPOINT_NATS_FORGETS", { what });
}

/** Timeout of one request, in milliseconds. A cluster takes about as long to elect a new leader. */
export const requestMs = 5_000;
/** Timeout of an acknowledgement, in milliseconds. The message is then sent again; the server stores it once. */
export const ackMs = 2_000;
/** Pause before a reconnect, in milliseconds, and the maximum of the random time added to it. */
const reconnectMs = 500;
const reconnectJitterMs = 500;
/** Interval of pings to the server, in milliseconds. Two missing answers end the connection. */
const pingMs = 5_000;
/** Key in the log stream's metadata: the uid of the cluster that the streams' checkpoints belong to. */
const clusterKey = "watchfire.dev/cluster";
/**
 * Key in the log stream's metadata: an ID that is replaced each time a replica finds that NATS has lost acknowledged messages.
 */
const rewoundKey = "watchfire.dev/rewound";

export interface NatsOptions {
  /** Addresses such as `nats://nats.nats:4222`. One server of a cluster is enough. */
  readonly servers: readonly string[];
  /** A file with a user's credentials, or with the seed of its nkey alone. Read again for each connection. */
  readonly credentials?: string | undefined;
  /** PEM files: the trusted CAs, and a client certificate with its key. Any of them makes TLS mandatory. */
  readonly tls?: {
    readonly ca?: string | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  };
  /** The runtime's name, which is part of the names of its streams and subjects. Letters, digits, `-` and `_`. */
  readonly name: string;
  /** The cluster's uid, if known. New streams are marked with it. Streams of another cluster are refused and left unchanged. */
  readonly cluster?: string | undefined;
  /** Number of replicas of new streams. Default: 3 on a cluster, 1 on a single server. */
  readonly replicas?: number | undefined;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
}

/** A store that uses the connection. */
export interface NatsUser {
  /** Called when the connection is lost; `returned` follows. */
  left(): void;
  /**
   * Called when the connection is back, possibly to other servers with other files. Resolves once the store has checked what they
   * hold. Never rejects.
   */
  returned(): Promise<void>;
}

/** A connection that reconnects, and the streams of one runtime. The stores of all slots share it. */
export class Nats {
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly objects: ObjectStore;
  /** Names of the streams, and the subject prefixes before a slot's name. */
  readonly logStream: string;
  readonly bodyStream: string;
  readonly logSubject: string;
  readonly bodySubject: string;
  /** Open stores. */
  readonly users = new Set<NatsUser>();
  /** The cluster that the streams must belong to, if known. */
  readonly cluster: string | undefined;
  private marked: string | undefined;
  /** The checks of all open stores since the connection was last established. */
  private checks: Promise<unknown> = Promise.resolve();
  private readonly connection: NatsConnection;
  private readonly headersOf: () => ReturnType<typeof import("@nats-io/transport-node").headers>;
  private readonly replicas: number;
  private readonly bucket: string;

  private constructor(options: NatsOptions, connection: NatsConnection, client: Client, parts: Parts) {
    const { name, cluster } = options;
    this.connection = connection;
    this.cluster = cluster;
    this.headersOf = client.transport.headers;
    this.js = parts.js;
    this.jsm = parts.jsm;
    this.objects = parts.objects;
    this.replicas = parts.replicas;
    this.bucket = bucketOf(name);
    this.logStream = `watchfire-${name}-log`;
    this.bodyStream = `watchfire-${name}-body`;
    this.logSubject = `watchfire.${name}.log`;
    this.bodySubject = `watchfire.${name}.body`;
  }

  /**
   * Connects, and creates missing streams. Writes nothing if the streams belong to another cluster.
   * @throws WatchfireError of NATS, WF_CHECKPOINT_OTHER_CLUSTER
   */
  static async connect(options: NatsOptions): Promise<Nats> {
    const client = await loadClient();
    const { servers, credentials, tls, name, log } = options;
    let connection: NatsConnection;
    try {
      connection = await client.transport.connect({
        servers: [...servers],
        name: `watchfire ${name}`,
        maxReconnectAttempts: -1,
        // A user that was refused twice may be accepted later: credentials are replaced, and accounts may be created late.
        ignoreAuthErrorAbort: true,
        reconnectTimeWait: reconnectMs,
        reconnectJitter: reconnectJitterMs,
        reconnectJitterTLS: reconnectJitterMs,
        pingInterval: pingMs,
        maxPingOut: 2,
        // A stack for each request would cost more than the request.
        noAsyncTraces: true,
        timeout: requestMs,
        inboxPrefix: `_INBOX.watchfire.${name}`,
        ...(credentials !== undefined && { authenticator: authenticatorOf(client, credentials) }),
        ...(tls && {
          tls: {
            caFile: tls.ca,
            certFile: tls.cert,
            keyFile: tls.key,
            checkServerIdentity: identityCheck(servers),
          } as object,
        }),
      });
    } catch (error) {
      throw connectFault(error, servers);
    }
    try {
      const js = client.jetstream.jetstream(connection, { timeout: requestMs });
      const jsm = await client.jetstream.jetstreamManager(connection, { timeout: requestMs, checkAPI: false });
      const replicas = options.replicas ?? (connection.info?.cluster ? 3 : 1);
      const bucket = bucketOf(name);
      const manager = new client.objects.Objm(js);
      const objects = await manager.open(bucket, { check: false });
      const nats = new Nats(options, connection, client, { js, jsm, objects, replicas });
      void nats.logState(log);
      await nats.identity();
      const found = await jsm.streams.info(`OBJ_${bucket}`).catch(unlessAbsent);
      // The parts of an object are messages of one subject.
      if (found) assertKeeps(found.config, "all");
      else await manager.create(bucket, { replicas, compression: true });
      return nats;
    } catch (error) {
      await connection.close();
      throw natsFault(error, "the streams could not be made");
    }
  }

  /** The cluster that the streams are marked with. `undefined` if they have no mark. */
  get owner(): string | undefined {
    return this.marked;
  }

  /**
   * Returns a string that distinguishes the streams from later ones of the same name, and from themselves before `rewound`.
   * Creates missing streams.
   * @throws WatchfireError WF_CHECKPOINT_OTHER_CLUSTER, without having written; WF_CHECKPOINT_NATS_FORGETS; what the client
   * throws
   */
  async identity(): Promise<string> {
    const common = {
      storage: "file",
      num_replicas: this.replicas,
      discard: "new",
      compression: "s2",
    } as const;
    const { cluster } = this;
    const mark = cluster !== undefined && { metadata: { [clusterKey]: cluster } };
    const log = await this.stream({ ...common, ...mark, name: this.logStream, subjects: [`${this.logSubject}.*`] });
    this.marked = log.config.metadata?.[clusterKey];
    if (cluster !== undefined && this.marked !== undefined && this.marked !== cluster)
      throw this.othersStreams(this.marked);
    const bodies = { name: this.bodyStream, subjects: [`${this.bodySubject}.>`], max_msgs_per_subject: 1 };
    const body = await this.stream({ ...common, ...bodies });
    assertKeeps(log.config, "all");
    assertKeeps(body.config, "last");
    const { [rewoundKey]: mend } = log.config.metadata ?? {};
    return `${log.created} ${body.created}${mend === undefined ? "" : ` ${mend}`}`;
  }

  /** Resolves once each open store has checked what the servers of the current connection hold. Never rejects. */
  async checked(): Promise<void> {
    await this.checks;
  }

  /**
   * Records in the streams that they have lost acknowledged messages, so that every slot that is opened from now on counts as incomplete:
   * its own messages may be gone too. Does nothing if another replica has done so.
   * @param before the identity that the streams had when they were whole
   * @throws what the client throws
   */
  async rewound(before: string): Promise<void> {
    const log = await this.jsm.streams.info(this.logStream).catch(unlessAbsent);
    // A stream that is made in its place has another identity by itself.
    if (!log || (await this.identity()) !== before) return;
    const metadata = { ...log.config.metadata, [rewoundKey]: crypto.randomUUID() };
    await this.jsm.streams.update(this.logStream, { metadata });
  }

  /** Marks streams of an older runtime with this cluster. @throws as `identity` */
  async mark(): Promise<void> {
    if (this.cluster === undefined) return;
    const { config } = await this.jsm.streams.info(this.logStream);
    const metadata = { [clusterKey]: this.cluster, ...config.metadata };
    await this.jsm.streams.update(this.logStream, { metadata });
    // A runtime of another cluster may have been faster.
    await this.identity();
  }

  /** The error for streams that hold checkpoints of another cluster. */
  othersStreams(owner: string): WatchfireError {
    return otherCluster(`the checkpoints of the stream ${this.logStream} on NATS are`, owner, this.cluster, natsHint);
  }

  /** Maximum message size, in bytes, including headers. */
  get maxPayload(): number {
    return this.connection.info?.max_payload ?? 1024 * 1024;
  }

  /** The id of the connected server, if it is not in a cluster. Changes with each start of that server. */
  get loneServer(): string | undefined {
    const info = this.connection.info;
    return info && !info.cluster ? info.server_id : undefined;
  }

  headers(fields: Readonly<Record<string, string>>): ReturnType<typeof import("@nats-io/transport-node").headers> {
    const headers = this.headersOf();
    for (const [key, value] of Object.entries(fields)) headers.set(key, value);
    return headers;
  }

  /**
   * Deletes an object. The client alone would leave a message for each name that ever existed.
   * @throws what the client throws
   */
  async deleteObject(name: string): Promise<void> {
    await this.objects.delete(name);
    // The encoding that the client uses for names in subjects: base64url, padded.
    const coded = Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
    await this.jsm.streams.purge(`OBJ_${this.bucket}`, { filter: `$O.${this.bucket}.M.${coded}` });
  }

  /** Returns the number of stored parts of an object. @throws what the client throws */
  async partsOf(nuid: string): Promise<number> {
    const filter = `$O.${this.bucket}.C.${nuid}`;
    const { state } = await this.jsm.streams.info(`OBJ_${this.bucket}`, { subjects_filter: filter });
    return state.subjects?.[filter] ?? 0;
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  /** Logs when the connection is lost or restored, and notifies the stores. */
  private async logState(log: NatsOptions["log"]): Promise<void> {
    for await (const state of this.connection.status()) {
      if (state.type === "disconnect") {
        log.warn({ server: state.server }, "connection to nats lost");
        for (const user of this.users) user.left();
      }
      if (state.type === "reconnect") {
        log.info({ server: state.server }, "connection to nats is back");
        this.checks = Promise.all([...this.users].map((user) => user.returned()));
      }
      if (state.type === "error") log.warn({ error: state.error.message }, "nats reports an error");
    }
  }

  private async stream(config: Partial<StreamConfig> & { readonly name: string }): Promise<StreamInfo> {
    const found = await this.jsm.streams.info(config.name).catch(unlessAbsent);
    if (found) return found;
    try {
      return await this.jsm.streams.add(config);
    } catch (error) {
      // Another replica has created it meanwhile.
      if (isStatus(error, status.streamExists)) return this.jsm.streams.info(config.name);
      throw error;
    }
  }
}

/** The hint for whoever finds checkpoints of another cluster. */
const natsHint =
  "give each cluster a separate account on NATS (runtime/docs/nats.md#rights). If that cluster no longer exists, delete its three streams";

/** The bucket for snapshots and for everything larger than a message. */
const bucketOf = (name: string): string => `watchfire-${name}`;

interface Parts {
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly objects: ObjectStore;
  readonly replicas: number;
}

type Client = Awaited<ReturnType<typeof loadClient>>;

/** Loads the client on demand, because installations without NATS need not have it. */
async function loadClient() {
  try {
    return (await import("./client.ts")).client;
  } catch (cause) {
    throw new WatchfireError("WF_CHECKPOINT_NATS_CLIENT", { what: "its packages cannot be loaded", cause });
  }
}

/** Reads the file at each use, because a mounted Secret changes while it is used. */
function authenticatorOf({ transport }: Client, file: string): Authenticator {
  const read = () => {
    try {
      return readFileSync(file);
    } catch (cause) {
      throw new WatchfireError("WF_CHECKPOINT_NATS", {
        what: "the credentials cannot be read",
        place: { file },
        cause,
      });
    }
  };
  const text = read().toString("utf8");
  const isSeed = /^\s*SU[A-Z2-7]{56}\s*$/.test(text);
  if (!isSeed && !/BEGIN NATS USER JWT[\s\S]*BEGIN USER NKEY SEED/.test(text)) {
    const what = "its file holds neither a user's credentials nor an nkey's seed";
    throw new WatchfireError("WF_CHECKPOINT_NATS", { what, place: { file } });
  }
  if (!isSeed) return transport.credsAuthenticator(read);
  return transport.nkeyAuthenticator(() => Buffer.from(read().toString("utf8").trim()));
}

const unlessAbsent = (error: unknown): undefined => {
  if (!isStatus(error, status.streamNotFound)) throw error;
};

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
