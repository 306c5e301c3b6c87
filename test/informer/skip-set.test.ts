import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import { SkipSet } from "../../runtime/informer/fanout/skip-set.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { allBut } from "../../runtime/informer/stream/connection.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../runtime/kube/transport.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { RecordingSubscriber } from "./recording-subscriber.ts";

const hour = 3_600_000;
const json = { "content-type": "application/json" };
const ours = (namespace: string) => namespace.startsWith("ours");

/** A server that sends what the test writes, on the newest connection. */
class ScriptedServer implements KubeTransport {
  readonly description = "a scripted server";
  /** The selector of each watch that started from a position; "" without a selector. */
  readonly asked: string[] = [];
  refuses = false;
  private body = new PassThrough();
  private version = 10;

  async request({ query = {}, signal }: KubeRequest): Promise<KubeResponse> {
    const body = new PassThrough();
    body.on("error", () => {});
    signal?.addEventListener("abort", () => body.destroy());
    if (query.fieldSelector !== undefined) return { status: 404, headers: json, body: body.end("{}") };
    this.asked.push(query.shardSelector ?? "");
    if (this.refuses && query.shardSelector) return { status: 414, headers: json, body: body.end("{}") };
    this.body = body;
    return { status: 200, headers: json, body };
  }

  async json<T>({ path }: KubeRequest): Promise<T> {
    if (path.endsWith("/configmaps")) throw new Error("away");
    const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["list", "watch"] }];
    return { kind: "APIResourceList", groupVersion: "v1", resources } as T;
  }

  change(namespace: string): void {
    const metadata = { name: "a", namespace, uid: namespace, resourceVersion: String(++this.version) };
    this.body.write(
      `${JSON.stringify({ type: "ADDED", object: { apiVersion: "v1", kind: "ConfigMap", metadata } })}\n`,
    );
  }

  /** Ends the connection, as a server does at a shutdown. */
  hangUp(): void {
    this.body.end();
  }

  async close(): Promise<void> {}
}

const open: Informers[] = [];
afterEach(() => Promise.all(open.splice(0).map((watches) => watches.close())));

/** A subscriber that wants only `ours…`, in a started stream. */
async function streaming() {
  const clock = new VirtualClock();
  const server = new ScriptedServer();
  const discovery = new Discovery(server, clock);
  const watches = new Informers({ transport: server, discovery, clock, random: () => 0, observer: silentObserver });
  open.push(watches);
  const subscriber = Object.assign(new RecordingSubscriber("10"), { wants: ours });
  const subscribe = (one: RecordingSubscriber) => watches.subscribe({ apiVersion: "v1", kind: "ConfigMap" }, one);
  subscribe(subscriber);
  await clock.advance(2_000);
  const bring = async (...namespaces: string[]) => {
    for (const namespace of namespaces) server.change(namespace);
    await clock.advance(100);
  };
  const again = async () => {
    server.hangUp();
    await clock.advance(5_000);
  };
  return { clock, server, watches, subscriber, subscribe, bring, again };
}

describe("a stream", () => {
  test("asks the server, when it next connects, to leave out what brought changes that nobody wants", async () => {
    const { server, watches, bring, again } = await streaming();
    await bring("theirs-1", "ours-1", "theirs-2");
    await again();
    expect(server.asked).toEqual(["", allBut(["theirs-1", "theirs-2"])]);
    expect(watches.status()[0]?.leftOut).toBe(2);
  });

  test("leaves it out again after a connection that went well", async () => {
    const { server, bring, again } = await streaming();
    await bring("theirs-1", "theirs-1", "theirs-1", "theirs-1");
    await again();
    await again();
    expect(server.asked).toEqual(["", allBut(["theirs-1"]), allBut(["theirs-1"])]);
  });

  test("asks for all where one of those who share it wants all", async () => {
    const { server, subscribe, bring, again } = await streaming();
    subscribe(new RecordingSubscriber("10"));
    await bring("theirs-1");
    await again();
    expect(server.asked.at(-1)).toBe("");
  });

  test("connects anew, where it is, for one that joins it and wants what is left out", async () => {
    const { clock, server, subscriber, subscribe, bring, again } = await streaming();
    await bring("theirs-1");
    await again();
    const other = Object.assign(new RecordingSubscriber("11"), { wants: (namespace: string) => !ours(namespace) });
    subscribe(other);
    await clock.advance(5_000);
    expect(server.asked.at(-1)).toBe("");
    await bring("theirs-1");
    expect(other.log).toEqual(["Added a 12"]);
    expect(subscriber.log.filter((line) => line.startsWith("list"))).toEqual([]);
  });

  test("asks a server that sends what is to be left out for all, for an hour", async () => {
    const { clock, server, bring, again } = await streaming();
    await bring("theirs-1", "theirs-1", "theirs-1", "theirs-1");
    await again();
    await bring("theirs-1");
    await again();
    expect(server.asked.slice(1)).toEqual([allBut(["theirs-1"]), ""]);
    await bring("theirs-1");
    await clock.advance(hour);
    await bring("theirs-1");
    await again();
    expect(server.asked.at(-1)).toBe(allBut(["theirs-1"]));
  });

  test("asks a server that refuses it for all, for ten minutes, and misses nothing", async () => {
    const { clock, server, subscriber, bring, again } = await streaming();
    server.refuses = true;
    await bring("theirs-1", "theirs-1", "theirs-1", "theirs-1");
    await again();
    await clock.advance(5_000);
    expect(server.asked).toEqual(["", allBut(["theirs-1"]), ""]);
    await bring("ours-1");
    expect(subscriber.log.at(-1)).toBe("Added a 15");
    server.refuses = false;
    await bring("theirs-1");
    await clock.advance(600_000);
    await bring("theirs-1");
    await again();
    expect(server.asked.at(-1)).toBe(allBut(["theirs-1"]));
  });
});

describe("what is left out", () => {
  const counted = (brought: readonly string[]) => {
    const unwanted = new SkipSet(new VirtualClock());
    for (const namespace of brought) unwanted.came(namespace);
    return unwanted;
  };

  test("is what brought most, in 64 namespaces at most, and none that is wanted by now", () => {
    const brought = Array.from({ length: 100 }, (_, index) => Array.from({ length: index + 1 }, () => `n${index}`));
    const left = counted(brought.flat()).leaveOut((namespace) => namespace === "n99");
    expect(left).toEqual(new Set(Array.from({ length: 64 }, (_, index) => `n${98 - index}`)));
  });

  test("is asked for again after some connections, to see whether it still brings so much", () => {
    const unwanted = counted(["busy", "busy", "busy", "busy", "rare"]);
    const sizes = Array.from({ length: 4 }, () => unwanted.leaveOut(() => false).size);
    expect(sizes).toEqual([2, 1, 1, 0]);
  });

  test("fits into a request line, and is counted in bounded memory", () => {
    const longest = Array.from({ length: 2_000 }, (_, index) => `${index}`.padStart(63, "a"));
    const selector = allBut(counted(longest).leaveOut(() => false));
    expect(new URLSearchParams({ shardSelector: selector }).toString().length).toBeLessThan(7_500);
    const unwanted = counted([...longest, ...longest]);
    const kept: string[] = [];
    unwanted.leaveOut((namespace) => kept.push(namespace) > 0);
    expect(kept).toHaveLength(1_000);
  });
});

describe("a selector of all but some namespaces", () => {
  const names = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);

  test("leaves out their hashes and no other", () => {
    fc.assert(
      fc.property(fc.uniqueArray(names, { minLength: 1, maxLength: 64 }), (namespaces) => {
        const bounds = [...allBut(namespaces).matchAll(/'0x([0-9a-f]{16,17})'/g)].map(([, hex]) => BigInt(`0x${hex}`));
        // Ranges in order, each separated from the next by one hash.
        expect(bounds[0]).toBe(0n);
        expect(bounds.at(-1)).toBe(2n ** 64n);
        const gaps = bounds.slice(1, -1).filter((_, index) => index % 2 === 0);
        expect(bounds.slice(2).filter((_, index) => index % 2 === 0)).toEqual(gaps.map((gap) => gap + 1n));
        expect(gaps).toEqual(namespaces.map(fnv).sort((a, b) => (a < b ? -1 : 1)));
      }),
    );
    expect(allBut([])).toBe("");
  });
});

/** FNV as its authors define it. */
function fnv(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) % 2n ** 64n;
  return hash;
}
