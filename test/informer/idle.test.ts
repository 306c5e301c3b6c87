import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { silentObserver, type WatchObserver } from "../../runtime/informer/fanout/observer.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../runtime/kube/transport.ts";
import { Dice } from "../laws/random.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { RecordingSubscriber } from "./recording-subscriber.ts";

const sources = 100;
const minute = 60_000;
const newest = 7;
const collection = "/api/v1/configmaps";

interface Connection {
  readonly source: string;
  readonly openedAt: number;
  readonly timeoutMs: number;
  endedAt: number | undefined;
  endedBy: "server" | "client" | undefined;
}

/**
 * A cluster without changes. Each watch ends at its timeout and sends a bookmark each minute, unless the bookmark would not be
 * newer than the watch's start; API servers omit such a bookmark (`cache_watcher.go`).
 */
class IdleCluster implements KubeTransport {
  readonly description = "an idle cluster";
  readonly connections: Connection[] = [];
  /** Requests for the objects other than the sources' watches. */
  readonly others: string[] = [];
  /** True if it answers requests for its newest resourceVersion. */
  answers = false;
  mostOpen = 0;
  bookmarks = 0;
  private readonly clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  async request({ path, query = {}, signal }: KubeRequest): Promise<KubeResponse> {
    if (query.watch !== "1" || query.fieldSelector !== undefined) {
      if (path === collection) this.others.push(JSON.stringify(query));
      if (query.watch === "1" && this.answers) {
        const body = new PassThrough();
        body.write(bookmark(true));
        return { status: 200, headers: { "content-type": "application/json" }, body };
      }
      return { status: 404, headers: { "content-type": "application/json" }, body: new PassThrough().end("{}") };
    }
    const { clock } = this;
    const connection: Connection = {
      source: query.labelSelector ?? "",
      openedAt: clock.monotonic(),
      timeoutMs: Number(query.timeoutSeconds) * 1000,
      endedAt: undefined,
      endedBy: undefined,
    };
    this.connections.push(connection);
    this.mostOpen = Math.max(this.mostOpen, this.connections.filter((each) => each.endedAt === undefined).length);
    const body = new PassThrough();
    const end = (by: Connection["endedBy"]) => {
      connection.endedAt ??= clock.monotonic();
      connection.endedBy ??= by;
    };
    signal?.addEventListener("abort", () => {
      end("client");
      body.destroy();
    });
    if (query.sendInitialEvents === "true") body.write(bookmark(true));
    const bookmarks = () => {
      if (connection.endedAt !== undefined || newest <= Number(query.resourceVersion)) return;
      this.bookmarks++;
      body.write(bookmark(false));
      clock.after(minute, bookmarks);
    };
    clock.after(minute, bookmarks);
    clock.after(connection.timeoutMs, () => {
      end("server");
      body.end();
    });
    return { status: 200, headers: { "content-type": "application/json" }, body };
  }

  async json<T>(): Promise<T> {
    const verbs = ["get", "list", "watch"];
    const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs }];
    return { kind: "APIResourceList", groupVersion: "v1", resources } as T;
  }

  async close(): Promise<void> {}
}

const bookmark = (initialEnd: boolean) => {
  const annotations = initialEnd ? { "k8s.io/initial-events-end": "true" } : {};
  const metadata = { resourceVersion: String(newest), annotations };
  return `${JSON.stringify({ type: "BOOKMARK", object: { apiVersion: "v1", kind: "ConfigMap", metadata } })}\n`;
};

test("an idle source keeps one connection, for as long as the server was asked to hold it, and lists once", async () => {
  const clock = new VirtualClock();
  const cluster = new IdleCluster(clock);
  const discovery = new Discovery(cluster, clock);
  const random = new Dice(1).next;
  let bookmarks = 0;
  const observer: WatchObserver = {
    ...silentObserver,
    received(_, type) {
      if (type === "Bookmark") bookmarks++;
    },
  };
  const watches = new Informers({ transport: cluster, discovery, clock, random, observer });
  const subscribers = Array.from({ length: sources }, (_, index) => {
    const subscriber = new RecordingSubscriber(undefined, `subscriber-${index}`);
    watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", labelSelector: `n=${index}` }, subscriber);
    return subscriber;
  });
  while (cluster.connections.length < sources) await clock.advance(10);
  for (let second = 0; second < 15 * 60; second++) await clock.advance(1000);

  const { connections } = cluster;
  expect(connections.filter(({ endedBy }) => endedBy === "client")).toEqual([]);
  const early = connections.filter(
    ({ endedAt, openedAt, timeoutMs }) => endedAt !== undefined && endedAt - openedAt < timeoutMs,
  );
  expect(early).toEqual([]);
  expect(cluster.mostOpen).toBe(sources);
  expect(new Set(connections.map(({ source }) => source)).size).toBe(sources);
  // client-go's range: five to ten minutes. A source has had two to four connections in 15 minutes.
  expect(connections.every(({ timeoutMs }) => timeoutMs >= 300_000 && timeoutMs <= 600_000)).toBe(true);
  for (const subscriber of subscribers) {
    expect(subscriber.log.filter((line) => line.startsWith("list"))).toEqual(["list initial from nowhere"]);
  }
  expect(bookmarks).toBe(cluster.bookmarks);
  expect(bookmarks).toBeGreaterThan(sources * 4);
  expect(cluster.others).toEqual([]);
  await watches.close();
  expect(connections.every(({ endedAt }) => endedAt !== undefined)).toBe(true);
});

test("a source that resumes from a position after which nothing happened keeps each connection as long, though all are silent", async () => {
  const clock = new VirtualClock();
  const cluster = new IdleCluster(clock);
  const discovery = new Discovery(cluster, clock);
  const random = new Dice(1).next;
  const watches = new Informers({ transport: cluster, discovery, clock, random, observer: silentObserver });
  const subscriber = new RecordingSubscriber(String(newest));
  watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", labelSelector: "n=0" }, subscriber);
  for (let second = 0; second < 10 * 60; second++) await clock.advance(1000);
  const { connections } = cluster;
  expect([connections.length > 0, cluster.bookmarks, subscriber.log]).toEqual([true, 0, []]);
  expect(connections.filter(({ endedBy }) => endedBy === "client")).toEqual([]);
  await watches.close();
});

test("a server whose connections bring nothing is asked for its newest resourceVersion after two of them, and not after each", async () => {
  const clock = new VirtualClock();
  const cluster = new IdleCluster(clock);
  cluster.answers = true;
  const discovery = new Discovery(cluster, clock);
  const random = new Dice(1).next;
  const watches = new Informers({ transport: cluster, discovery, clock, random, observer: silentObserver });
  watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", labelSelector: "n=0" }, new RecordingSubscriber("7"));
  for (let second = 0; second < 2 * 60 * 60; second++) await clock.advance(1000);
  // A watch that is shorter than the interval of bookmarks does not count as silent.
  const silent = cluster.connections.filter(
    ({ openedAt, endedAt }) => endedAt !== undefined && endedAt - openedAt >= 70_000,
  );
  expect(silent.length).toBeGreaterThan(20);
  // And once when the source resumes.
  expect(cluster.others).toHaveLength(1 + Math.floor(silent.length / 2));
  await watches.close();
});
