import { PassThrough } from "node:stream";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../runtime/kube/transport.ts";
import type { Dice } from "../laws/random.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** One change of one object. */
export interface Revision {
  readonly version: number;
  readonly name: string;
  readonly namespace: string;
  readonly type: "Added" | "Modified" | "Deleted";
}

interface Open {
  readonly body: PassThrough;
  /** The next revision that it is sent; Infinity before the stream starts. */
  next: number;
  /** True for namespaces that the watch receives; changes of others are not sent. */
  sends: (namespace: string) => boolean;
  /** Ends the pause before it is answered or continues. */
  hurry: () => void;
}

const json = { "content-type": "application/json" };
const pageSize = 3;
/** An object's namespace is derived from its name. */
const namespaceOf = (name: string) => `team-${Number(name.slice(1)) % 4}`;
const every = () => true;

/**
 * An in-memory API server with a short history and connections that break: with or without WatchList, with pages, bookmarks, and
 * all forms of 410. It keeps the promises of a real server and uses all freedom that they allow.
 */
export class UnsteadyCluster implements KubeTransport {
  readonly description = "an unsteady cluster";
  readonly log: Revision[] = [];
  /** History begins after this revision. */
  compacted = 0;
  /** True: faults have ended. */
  calm = false;
  /** Number of changes that were skipped instead of sent. */
  spared = 0;
  private readonly clock: VirtualClock;
  private readonly dice: Dice;
  private readonly watchList: boolean;
  private readonly names410: boolean;
  private readonly http410: boolean;
  private readonly open = new Set<Open>();

  constructor(clock: VirtualClock, dice: Dice) {
    this.clock = clock;
    this.dice = dice;
    this.watchList = dice.chance(0.5);
    this.names410 = dice.chance(0.5);
    this.http410 = dice.chance(0.3);
    for (let times = 0; times < 6; times++) this.append();
  }

  get newest(): number {
    return this.log.length;
  }

  /** Number of streaming watches. */
  get streams(): number {
    return [...this.open].filter(({ next }) => next < Number.POSITIVE_INFINITY).length;
  }

  /** The objects at a revision, by name. */
  at(version: number): Map<string, number> {
    const objects = new Map<string, number>();
    for (const each of this.log.slice(0, version)) {
      if (each.type === "Deleted") objects.delete(each.name);
      else objects.set(each.name, each.version);
    }
    return objects;
  }

  append(): void {
    const name = `o${this.dice.below(8)}`;
    const exists = this.at(this.newest).has(name);
    const type = !exists ? "Added" : this.dice.chance(0.3) ? "Deleted" : "Modified";
    this.log.push({ version: this.newest + 1, name, namespace: namespaceOf(name), type });
    for (const each of this.open) this.send(each);
  }

  /** Drops all but the newest few revisions. */
  compact(keep: number): void {
    this.compacted = Math.max(this.compacted, this.newest - keep);
  }

  bookmarks(): void {
    for (const { body, next } of this.open) {
      if (next === this.newest + 1) body.write(line("BOOKMARK", marked(this.newest, false)));
    }
  }

  /** Ends connections, as the server or the network may. */
  breakSome(share: number): void {
    for (const each of [...this.open]) {
      if (!this.dice.chance(share)) continue;
      if (this.dice.chance(0.5)) each.body.end();
      else each.body.destroy(Object.assign(new Error("reset"), { code: "ECONNRESET" }));
      this.close(each);
    }
  }

  async request({ path, query = {}, signal }: KubeRequest): Promise<KubeResponse> {
    if (!path.endsWith("/configmaps")) return this.status(404);
    const isWatch = query.watch === "1";
    const each: Open = {
      body: new PassThrough(),
      next: Number.POSITIVE_INFINITY,
      sends: every,
      hurry: () => {},
    };
    this.open.add(each);
    signal?.addEventListener("abort", () => {
      each.body.destroy(Object.assign(new Error("aborted"), { code: "ECONNABORTED" }));
      this.close(each);
    });
    each.body.on("error", () => {});
    const isProbe = query.fieldSelector !== undefined || query.limit === "1";
    await this.pause(each, this.dice.below(1500));
    if (!this.open.has(each)) throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
    if (!this.calm && this.dice.chance(0.15)) return this.refuse(each, this.dice.pick([429, 500, 403]));
    if (isWatch && query.sendInitialEvents === "true") return this.initial(each, isProbe);
    if (isWatch && query.shardSelector) {
      // Servers of one cluster may differ: one supports it, one ignores it, and a proxy refuses long requests.
      if (this.dice.chance(0.1)) return this.refuse(each, this.dice.pick([400, 414, 500]));
      if (this.dice.chance(0.8)) each.sends = inRangesOf(query.shardSelector);
    }
    if (isWatch) return this.watch(each, Number(query.resourceVersion));
    return this.list(each, query);
  }

  async json<T>({ path, query, signal }: KubeRequest): Promise<T> {
    if (path.endsWith("/configmaps")) {
      const response = await this.request({ method: "GET", path, query: query ?? {}, ...(signal && { signal }) });
      const chunks: Buffer[] = [];
      for await (const chunk of response.body) chunks.push(chunk as Buffer);
      return JSON.parse(Buffer.concat(chunks).toString());
    }
    const verbs = ["get", "list", "watch"];
    const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs }];
    return { kind: "APIResourceList", groupVersion: "v1", resources } as T;
  }

  async close(): Promise<void>;
  close(each: Open): void;
  close(each?: Open): Promise<void> | void {
    if (!each) return Promise.resolve();
    this.open.delete(each);
    each.hurry();
  }

  /** A cancelled request does not wait: its answer is discarded. */
  private pause(each: Open, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.clock.after(ms, () => resolve());
      each.hurry = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  private refuse(each: Open, code: number, more: object = {}): KubeResponse {
    const reason =
      { 403: "Forbidden", 410: "Expired", 422: "Invalid", 429: "TooManyRequests" }[code] ?? "InternalError";
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason, ...more };
    each.body.end(JSON.stringify(status));
    this.open.delete(each);
    return { status: code, headers: json, body: each.body };
  }

  private status(code: number): KubeResponse {
    return { status: code, headers: json, body: new PassThrough().end("{}") };
  }

  private watch(each: Open, from: number): KubeResponse {
    if (from < this.compacted) {
      const oldest = `too old resource version: ${from} (${this.compacted})`;
      const message = this.names410 ? oldest : "The resourceVersion for the provided watch is too old.";
      if (this.http410) return this.refuse(each, 410, { message });
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 410, reason: "Expired", message };
      each.body.end(line("ERROR", status));
      this.open.delete(each);
      return { status: 200, headers: json, body: each.body };
    }
    each.next = from + 1;
    this.send(each);
    return { status: 200, headers: json, body: each.body };
  }

  private initial(each: Open, isProbe: boolean): KubeResponse {
    if (!this.watchList) return this.refuse(each, 422);
    const begun = this.newest;
    const items = isProbe ? [] : this.dice.chance(0.5) ? [...this.at(begun)] : [...this.at(begun)].toReversed();
    const tell = async () => {
      for (const [name, version] of items) {
        await this.pause(each, this.dice.below(400));
        if (!this.open.has(each)) return;
        each.body.write(line("ADDED", object(name, version)));
      }
      if (!this.open.has(each)) return;
      // Live events that arrive before the mark are sent before it.
      const sent = begun + this.dice.below(this.newest - begun + 1);
      for (const revision of isProbe ? [] : this.log.slice(begun, sent)) each.body.write(event(revision));
      each.body.write(line("BOOKMARK", marked(sent, true)));
      if (isProbe) return;
      each.next = sent + 1;
      this.send(each);
    };
    void tell();
    return { status: 200, headers: json, body: each.body };
  }

  private list(each: Open, query: Readonly<Record<string, string | undefined>>): KubeResponse {
    const [version = this.newest, from = 0] = (query.continue ?? "").split("/").filter(Boolean).map(Number);
    if (query.continue && version < this.compacted) return this.refuse(each, 410);
    const all = [...this.at(version)];
    const items = query.limit === undefined ? all : all.slice(from, from + pageSize);
    const rest = from + items.length < all.length ? `${version}/${from + items.length}` : undefined;
    const metadata = { resourceVersion: String(version), ...(rest && { continue: rest }) };
    const page = { kind: "ConfigMapList", apiVersion: "v1", metadata, items: items.map((item) => object(...item)) };
    const answer = async () => {
      await this.pause(each, this.dice.below(this.dice.chance(0.2) ? 90_000 : 2000));
      if (this.open.delete(each)) each.body.end(JSON.stringify(page));
    };
    void answer();
    return { status: 200, headers: json, body: each.body };
  }

  private send(each: Open): void {
    for (; each.next <= this.newest; each.next++) {
      const revision = this.log[each.next - 1];
      if (revision && each.sends(revision.namespace)) each.body.write(event(revision));
      else this.spared++;
    }
  }
}

/** True for namespaces in a range of a `shardSelector`, as an API server evaluates it. */
function inRangesOf(selector: string): (namespace: string) => boolean {
  const ranges = selector.split("||").map((range) => {
    const [, from = "", to = ""] =
      /^shardRange\(object\.metadata\.namespace,'(0x[0-9a-f]{16,17})','(0x[0-9a-f]{16,17})'\)$/.exec(range) ?? [];
    return [BigInt(from), BigInt(to)] as const;
  });
  return (namespace) => {
    let hash = 0xcbf29ce484222325n;
    for (const byte of Buffer.from(namespace)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) % 2n ** 64n;
    return ranges.some(([from, to]) => from <= hash && hash < to);
  };
}

const line = (type: string, of: object) => `${JSON.stringify({ type, object: of })}\n`;
const event = ({ type, name, version }: Revision) => line(type.toUpperCase(), object(name, version));
const object = (name: string, version: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: namespaceOf(name), uid: `uid-${name}`, resourceVersion: String(version) },
});
const marked = (version: number, initialEnd: boolean) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    resourceVersion: String(version),
    ...(initialEnd && { annotations: { "k8s.io/initial-events-end": "true" } }),
  },
});
