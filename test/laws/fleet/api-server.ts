import { Readable } from "node:stream";
import type { Clock } from "../../../runtime/base/clock.ts";
import { readApiError } from "../../../runtime/kube/api-error.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../../runtime/kube/transport.ts";
import type { Dice } from "../random.ts";
import type { Cluster } from "./cluster.ts";
import { Collection } from "./collection.ts";
import { expired, status } from "./status.ts";
import { WatchStream } from "./watch-stream.ts";

/** How a seed's server behaves. */
export interface Manners {
  /** False: WatchList is refused, as before Kubernetes 1.32. */
  readonly watchList: boolean;
  /** Number of items per page, regardless of the request, so that short lists have several pages, too. */
  readonly pageSize: number;
  /** True if streams end, connections break and requests are sometimes refused. */
  readonly faults: boolean;
  /** True if a 410 names the oldest available resourceVersion, as the watch cache does and etcd does not. */
  readonly namesOldest: boolean;
  /**
   * True if a list that asks for a resourceVersion older than the history is answered with 410, which etcd never does.
   */
  readonly refusesOldLists: boolean;
}

/**
 * An API server's answers, in memory and without a socket: a request waits until the world lets it be answered. One
 * instance is one process's connection; after `cut` nothing arrives any more.
 */
export class ApiServer implements KubeTransport {
  readonly description = "a simulated API server";
  calm = false;
  /** True while the server is down and refuses every connection. */
  down = false;
  private readonly cluster: Cluster;
  private readonly manners: Manners;
  private readonly dice: Dice;
  private readonly clock: Clock;
  private pending: { readonly answer: () => void; readonly fail: (error: Error) => void }[] = [];
  private streams = new Set<WatchStream>();
  private dead = false;

  constructor(cluster: Cluster, manners: Manners, dice: Dice, clock: Clock) {
    this.cluster = cluster;
    this.manners = manners;
    this.dice = dice;
    this.clock = clock;
  }

  request(request: KubeRequest): Promise<KubeResponse> {
    const { signal } = request;
    return new Promise((resolve, reject) => {
      if (this.dead) return;
      if (this.down) return reject(broken("ECONNREFUSED"));
      const stop = () => reject(signal?.reason);
      if (signal?.aborted) return stop();
      signal?.addEventListener("abort", stop, { once: true });
      const answer = () => {
        if (this.dead || signal?.aborted) return;
        const response = this.answer(request);
        signal?.addEventListener("abort", () => response.body.destroy(), { once: true });
        resolve(response);
      };
      const waits = request.path.endsWith("/configmaps") || request.path === "/api/v1/namespaces";
      if (waits && !this.calm) this.pending.push({ answer, fail: reject });
      else answer();
    });
  }

  async json<T>(request: KubeRequest): Promise<T> {
    const response = await this.request(request);
    if (response.status >= 400) throw await readApiError(response, this.clock.now());
    let text = "";
    for await (const chunk of response.body) text += String(chunk);
    return JSON.parse(text) as T;
  }

  async close(): Promise<void> {}

  /** Ends the process's connection. */
  cut(): void {
    this.dead = true;
    this.pending = [];
    for (const { body } of this.streams) body.destroy();
  }

  /** Answers some requests, and makes random events happen to the streams. */
  step(): void {
    const { dice } = this;
    const waiting = this.pending;
    this.pending = [];
    for (const each of waiting) {
      if (this.calm || dice.chance(0.6)) each.answer();
      else this.pending.push(each);
    }
    for (const stream of this.open()) if (dice.chance(0.6)) stream.step(dice, this.manners.faults && !this.calm);
  }

  /** Answers all pending requests, and sends everything on every stream. */
  flush(): void {
    const waiting = this.pending;
    this.pending = [];
    for (const { answer } of waiting) answer();
    for (const stream of this.open()) stream.flush();
  }

  /** Simulates a restart of the server itself: every open stream is reset. */
  disconnect(): void {
    for (const stream of this.open()) stream.reset();
    for (const { fail } of this.pending.splice(0)) fail(broken("ECONNRESET"));
  }

  private open(): WatchStream[] {
    this.streams = new Set([...this.streams].filter((stream) => stream.isOpen));
    return [...this.streams];
  }

  private answer(request: KubeRequest): KubeResponse {
    const { method, path, query = {} } = request;
    if (path.includes("/secrets/")) return this.secret(request);
    const { served } = this.cluster;
    if (path === "/api/v1") return reply(200, served ? resources : resourcesBefore);
    const isCollection = path === "/api/v1/namespaces" || (served && path.endsWith("/configmaps"));
    if (method !== "GET" || !isCollection) {
      return reply(404, status(404, "NotFound", "there is nothing here"));
    }
    if (this.manners.faults && !this.calm && this.dice.chance(0.04)) {
      return reply(...this.dice.pick([unavailable, tooMany]));
    }
    const collection = new Collection(this.cluster, path, query);
    return query.watch === undefined ? this.list(collection, query) : this.watch(collection, query);
  }

  private list(collection: Collection, query: NonNullable<KubeRequest["query"]>): KubeResponse {
    const { cluster, manners } = this;
    const [at, from] = (query.continue ?? `${cluster.now}:0`).split(":").map(Number) as [number, number];
    if (query.continue !== undefined && at < cluster.compacted) {
      return reply(410, expired("The provided continue parameter is too old"));
    }
    // A page of a state that etcd does not have yet.
    if (at > cluster.now) return reply(500, status(500, "InternalError", "required revision is a future revision"));
    const refusal = this.refusal(query);
    if (refusal) return refusal;
    const items = collection.items(at);
    const size = query.limit === undefined ? items.length : manners.pageSize;
    const more = from + size < items.length ? { continue: `${at}:${from + size}` } : {};
    const metadata = { resourceVersion: String(at), ...more };
    const kind = `${collection.kind}List`;
    return reply(200, { kind, apiVersion: "v1", metadata, items: items.slice(from, from + size) });
  }

  /** The refusal of a list or WatchList that would be older than requested. */
  private refusal({ resourceVersion }: NonNullable<KubeRequest["query"]>): KubeResponse | undefined {
    const { cluster, manners } = this;
    const least = Number(resourceVersion || 0);
    if (least > cluster.now) return reply(504, tooLarge(least, cluster.now));
    if (!manners.refusesOldLists || least === 0 || least >= cluster.compacted) return undefined;
    return reply(410, expired("The provided resourceVersion for the list is too old."));
  }

  private watch(collection: Collection, query: NonNullable<KubeRequest["query"]>): KubeResponse {
    const { cluster, manners, dice } = this;
    const initial = query.sendInitialEvents !== undefined;
    if (initial && !manners.watchList) return reply(422, status(422, "Invalid", "sendInitialEvents is forbidden"));
    const from = Number(query.resourceVersion || 0);
    const refusal = initial ? this.refusal(query) : undefined;
    if (refusal) return refusal;
    if (!initial && from < cluster.compacted) {
      const words = manners.namesOldest
        ? `too old resource version: ${from} (${cluster.compacted})`
        : "The resourceVersion for the provided watch is too old.";
      if (dice.chance(0.5)) return reply(410, expired(words));
      return stream(Readable.from([Buffer.from(`${JSON.stringify({ type: "ERROR", object: expired(words) })}\n`)]));
    }
    const opened = new WatchStream(cluster, collection, initial ? "initial" : from);
    this.streams.add(opened);
    if (this.calm) opened.flush();
    return stream(opened.body);
  }

  /** Reads a Secret, or replaces it if its resourceVersion is still current. */
  private secret({ method, path, body }: KubeRequest): KubeResponse {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const { secrets } = this.cluster;
    const found = secrets.get(name) ?? { resourceVersion: "1", data: {} };
    if (method !== "GET") {
      const sent = JSON.parse(String(body)) as {
        metadata: { resourceVersion?: string };
        data?: Record<string, string>;
      };
      const { resourceVersion } = sent.metadata;
      if (resourceVersion !== undefined && resourceVersion !== found.resourceVersion) {
        return reply(409, status(409, "Conflict", "the object has been modified"));
      }
      secrets.set(name, { resourceVersion: String(this.cluster.next()), data: sent.data ?? {} });
    }
    const { resourceVersion, data } = secrets.get(name) ?? found;
    return reply(200, { kind: "Secret", apiVersion: "v1", metadata: { name, resourceVersion }, type: "Opaque", data });
  }
}

const resource = (name: string, kind: string, namespaced: boolean) => ({
  name,
  kind,
  namespaced,
  verbs: ["get", "list", "watch"],
});

const resourceList = (...resources: object[]) => ({ kind: "APIResourceList", groupVersion: "v1", resources });
const resourcesBefore = resourceList(resource("namespaces", "Namespace", false));
const resources = resourceList(...resourcesBefore.resources, resource("configmaps", "ConfigMap", true));

const broken = (code: string): Error => Object.assign(new Error("the connection is broken"), { code });

const unavailable: [number, object] = [503, status(503, "ServiceUnavailable", "the server is starting")];
const tooMany: [number, object] = [429, status(429, "TooManyRequests", "please try again later")];

const tooLarge = (asked: number, now: number): object => ({
  ...status(504, "Timeout", `Too large resource version: ${asked}, current: ${now}`),
  details: { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] },
});

const reply = (code: number, body: object): KubeResponse => ({
  status: code,
  headers: { "content-type": "application/json" },
  body: Readable.from([Buffer.from(JSON.stringify(body))]),
});

const stream = (body: Readable): KubeResponse => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body,
});
