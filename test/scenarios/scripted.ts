// A runtime on a scripted API server that serves only one namespace's ConfigMaps.
import { onTestFinished } from "vitest";
import {
  bookmark,
  configMapList,
  type Exchange,
  event,
  ScriptedServer,
  type Stream,
  statusObject,
} from "../faults/api-server.ts";
import { Installation } from "../tools/installation.ts";

const path = "/api/v1/namespaces/team-a/configmaps";
const resources = {
  kind: "APIResourceList",
  groupVersion: "v1",
  resources: [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["get", "list", "watch"] }],
};

const isProbe = ({ query }: Exchange) => query.get("fieldSelector") === "metadata.name=-";
const isCollection = (exchange: Exchange) => exchange.path === path && !isProbe(exchange);
/** Matches a request for only the newest resourceVersion. */
const isListProbe = (exchange: Exchange) => exchange.path === path && exchange.query.get("limit") === "1";
export const isInitial = (exchange: Exchange) => isCollection(exchange) && exchange.query.has("sendInitialEvents");
export const isFollowing = (exchange: Exchange) =>
  isCollection(exchange) && exchange.isWatch && !exchange.query.has("sendInitialEvents");
export const isList = (exchange: Exchange) => isCollection(exchange) && !exchange.isWatch && !isListProbe(exchange);

/** A ConfigMap whose one value is `v`. */
export function item(name: string, resourceVersion: number, v: string | number = 1, uid = `uid-${name}`): object {
  const metadata = { name, namespace: "team-a", uid, resourceVersion: String(resourceVersion) };
  return { kind: "ConfigMap", apiVersion: "v1", metadata, data: { v: String(v) } };
}

/**
 * A source's wait after so many consecutive failures, in milliseconds: 0.8 s, doubled each time, at the middle of its jitter.
 */
const backOffMs = (failures: number): number => 800 * 2 ** (failures - 1) * 1.5;

export class Scripted {
  readonly server: ScriptedServer;
  readonly runtime: Installation;
  /** The newest resourceVersion in answers to probes. */
  newest = 0;

  private constructor(server: ScriptedServer, runtime: Installation) {
    this.server = server;
    this.runtime = runtime;
    server.script(
      () => true,
      (exchange) => exchange.status(404, "NotFound"),
    );
    server.script(
      ({ path }) => path === "/api/v1",
      (exchange) => exchange.reply(200, JSON.stringify(resources)),
    );
    server.script(isProbe, (exchange) => {
      exchange.stream().lines(bookmark(this.newest, true));
    });
    // Requests that a test does not script stay open.
    server.script(isCollection, () => {});
  }

  /** Starts with one function, `follower`, on its ConfigMaps. */
  static async start(work?: string, spec: object = {}): Promise<Scripted> {
    const server = await ScriptedServer.start();
    const runtime = await Installation.on({ server: server.url });
    onTestFinished(async () => {
      await runtime[Symbol.asyncDispose]();
      await server.close();
    });
    const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["team-a"] } };
    await runtime.define("follower", { watch, spec, ...(work === undefined ? {} : { work }) });
    const scripted = new Scripted(server, runtime);
    await runtime.open();
    return scripted;
  }

  /** Answers the `count`th request for initial events; the stream stays open. */
  async initial(resourceVersion: number, items: readonly object[], count = 1): Promise<Stream> {
    this.newest = Math.max(this.newest, resourceVersion);
    const stream = (await this.server.request(isInitial, count)).stream();
    return stream.lines(...items.map((each) => event("ADDED", each)), bookmark(resourceVersion, true));
  }

  /** Resolves once the source waits after `from` to `to` consecutive failures, and skips the wait. */
  async backedOff(from = 1, to = 3): Promise<void> {
    const waits = [backOffMs(from), backOffMs(to) + 1] as const;
    await this.runtime.sees("it backs off", () => this.runtime.clock.cutShort(...waits) > 0);
  }

  /** The `count`th watch that resumes from a checkpoint. */
  following(count = 1): Promise<Exchange> {
    return this.server.request(isFollowing, count);
  }
}

export const expired = () => event("ERROR", statusObject(410, "Expired"));
export { bookmark, configMapList, event };
