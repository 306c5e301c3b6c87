import {
  type SourceState,
  type StateChange,
  silentObserver,
  type WatchObserver,
} from "../../runtime/informer/fanout/observer.ts";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { Waiters } from "../tools/waiters.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { type Exchange, ScriptedServer } from "./api-server.ts";

const coreResources = {
  kind: "APIResourceList",
  groupVersion: "v1",
  resources: [
    { name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["get", "list", "watch"] },
    { name: "namespaces", namespaced: false, kind: "Namespace", verbs: ["get", "list", "watch"] },
    { name: "nodes", namespaced: false, kind: "Node", verbs: ["get", "list", "watch"] },
    { name: "bindings", namespaced: true, kind: "Binding", verbs: ["create"] },
  ],
};

/** The source that a test follows by default. */
export const configMaps: SourceSpec = { apiVersion: "v1", kind: "ConfigMap" };

export const collection = "/api/v1/configmaps";
export const isWatch = (exchange: Exchange) => exchange.path === collection && exchange.isWatch && !isProbe(exchange);
export const isPlainWatch = (exchange: Exchange) => isWatch(exchange) && !exchange.query.has("sendInitialEvents");
export const isWatchList = (exchange: Exchange) => isWatch(exchange) && exchange.query.has("sendInitialEvents");
/** The request for the newest resourceVersion, in its two forms. */
export const isProbe = (exchange: Exchange) => exchange.query.get("fieldSelector") === "metadata.name=-";
export const isListProbe = (exchange: Exchange) =>
  exchange.path === collection && !exchange.isWatch && exchange.query.get("limit") === "1";
export const isList = (exchange: Exchange) =>
  exchange.path === collection && !exchange.isWatch && !isListProbe(exchange);

/** Records the states of sources, and their other notifications. */
export class RecordingObserver implements WatchObserver {
  readonly states: (StateChange & { readonly spec: SourceSpec })[] = [];
  readonly causes: string[] = [];
  readonly poison: string[] = [];
  stales = 0;
  gones = 0;
  private readonly waiters = new Waiters();

  stateChanged(spec: SourceSpec, change: StateChange): void {
    this.states.push({ spec, ...change });
    this.waiters.wake();
  }
  reconnected(_spec: SourceSpec, cause: string): void {
    this.causes.push(cause);
    this.waiters.wake();
  }
  poisoned(_spec: SourceSpec, message: string): void {
    this.poison.push(message);
  }
  stale(): void {
    this.stales++;
  }
  gone(): void {
    this.gones++;
  }
  listed = silentObserver.listed;
  received = silentObserver.received;

  /** Resolves when a state is entered for the `count`th time. */
  entered(state: SourceState, count = 1): Promise<StateChange> {
    const found = () => this.states.filter((change) => change.to === state)[count - 1];
    return this.waiters.until(`state ${state}, ${count} times`, found);
  }

  /** Resolves once `cause` has ended a connection `count` times. */
  async ended(cause: string, count = 1): Promise<void> {
    const isOver = () => this.causes.filter((each) => each === cause).length >= count;
    await this.waiters.until(`an end by ${cause}, ${count} times`, isOver);
  }
}

/** A scripted server, with sources that watch it on a clock that the test moves. */
export class FaultFixture {
  readonly server: ScriptedServer;
  readonly clock = new VirtualClock();
  readonly observer = new RecordingObserver();
  readonly transport: KubeTransport;
  readonly watches: Informers;

  private constructor(server: ScriptedServer, random: () => number) {
    this.server = server;
    this.transport = connectDirect({ server: server.url, clock: this.clock });
    const { clock, transport, observer } = this;
    const discovery = new Discovery(transport, clock);
    this.watches = new Informers({ transport, discovery, clock, random, observer });
    server.script(
      (exchange) => !exchange.path.startsWith(collection),
      (exchange) => exchange.status(404, "NotFound"),
    );
    server.script(
      (exchange) => exchange.path === "/api/v1",
      (exchange) => exchange.reply(200, JSON.stringify(coreResources)),
    );
    // By default the newest resourceVersion cannot be read.
    server.script(isProbe, (exchange) => exchange.status(422, "Invalid"));
    server.script(isListProbe, (exchange) => exchange.status(403, "Forbidden"));
  }

  /** @param random 0 unless given: no jitter, and no wait before an ordinary reconnect. */
  static async start(random: () => number = () => 0): Promise<FaultFixture> {
    return new FaultFixture(await ScriptedServer.start(), random);
  }

  /** Advances by `seconds`, and lets pending requests and answers arrive in between. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await this.clock.advance(1000);
      await this.roundTrip();
    }
  }

  /** After two more answers, those to earlier requests have been read. */
  private async roundTrip(): Promise<void> {
    for (let trip = 0; trip < 2; trip++) {
      const { body } = await this.transport.request({ method: "GET", path: "/round-trip" });
      for await (const _ of body);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.watches.close();
    await this.transport.close();
    await this.server.close();
  }
}
