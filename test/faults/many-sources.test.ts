import { expect, test } from "vitest";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import type { KubeRequest } from "../../runtime/kube/transport.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMapList, type Exchange } from "./api-server.ts";
import { configMaps, FaultFixture, isListProbe, isPlainWatch, isProbe, isWatchList } from "./fixture.ts";

const inNamespaces = (exchange: Exchange) => exchange.path.startsWith("/api/v1/namespaces/");
const isStream = (exchange: Exchange) => inNamespaces(exchange) && exchange.isWatch && !isProbe(exchange);

/** Records the newest resourceVersion of the server. */
class Asking extends RecordingSubscriber {
  serverIsAt(resourceVersion: string): void {
    this.note(`server is at ${resourceVersion}`);
  }
}

/** Sources of one kind in so many namespaces, all of which resume from 5. */
async function resuming(count: number, kinds: readonly Partial<SourceSpec>[] = [{}]) {
  const fixture = await FaultFixture.start();
  fixture.server.script(isStream, (each) => each.stream());
  fixture.server.script(isProbe, () => {});
  const all = Array.from({ length: count }, (_, index) => {
    const subscriber = new Asking("5", `n${index}`);
    fixture.watches.subscribe(
      { ...configMaps, ...kinds[index % kinds.length], namespace: `team-${index}` },
      subscriber,
    );
    return subscriber;
  });
  return { fixture, all };
}

test("a hundred sources of one kind that resume learn with two questions how new the server is", async () => {
  const { fixture, all } = await resuming(100);
  await using _ = fixture;
  const first = await fixture.server.request(isProbe);
  await fixture.server.request(isStream, all.length);
  await fixture.pass(1);
  expect(fixture.server.count(isProbe)).toBe(1);
  first.stream().lines(bookmark(40, true));
  (await fixture.server.request(isProbe, 2)).stream().lines(bookmark(41, true));
  while (all.some(({ log }) => log.length === 0)) await fixture.pass(1);
  expect(new Set(all.flatMap(({ log }) => log))).toEqual(new Set(["server is at 40", "server is at 41"]));
  expect(fixture.server.count(isProbe)).toBe(2);
});

test("a namespace that may not be asked in leaves the question to another", async () => {
  const { fixture, all } = await resuming(3);
  await using _ = fixture;
  fixture.server.script(
    (each) => inNamespaces(each) && !each.isWatch,
    (each) => each.status(403, "Forbidden"),
  );
  const asked = await fixture.server.request(isProbe);
  asked.status(403, "Forbidden");
  const next = await fixture.server.request(isProbe, 2);
  expect(next.path).not.toBe(asked.path);
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(41, true)));
  next.stream().lines(bookmark(40, true));
  while (all.filter(({ log }) => log.length > 0).length < 2) await fixture.pass(1);
});

test("a source that ends waits for no other's question how new the server is", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isStream, (each) => each.stream());
  fixture.server.script(isProbe, () => {});
  const watches = ["team-1", "team-2", "team-3"].map((namespace) =>
    fixture.watches.subscribe({ ...configMaps, namespace }, new RecordingSubscriber("5", namespace)),
  );
  await fixture.server.request(isProbe);
  await fixture.server.request(isStream, 3);
  await fixture.pass(1);
  let closed = false;
  const closing = watches[2]?.close().then(() => (closed = true));
  await fixture.pass(1);
  expect(closed).toBe(true);
  await closing;
});

test("a source that waits for its turn to list ends at once", async () => {
  await using fixture = await FaultFixture.start();
  const lists = Array.from({ length: 5 }, (_, index) => ({ ...configMaps, labelSelector: `n=${index}` }));
  const watches = lists.map((spec) => fixture.watches.subscribe(spec, new RecordingSubscriber()));
  await fixture.server.request(isWatchList, 4);
  await fixture.pass(1);
  let closed = false;
  const closing = watches[4]?.close().then(() => {
    closed = true;
  });
  await fixture.pass(1);
  expect(closed).toBe(true);
  await closing;
  expect(fixture.server.count(isWatchList)).toBe(4);
});

test("the question how new the server is takes a list's place, and comes after the lists that wait", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const lists = Array.from({ length: 5 }, (_, index) => ({ ...configMaps, labelSelector: `n=${index}` }));
  for (const spec of lists.slice(0, 4)) fixture.watches.subscribe(spec, new RecordingSubscriber());
  await fixture.server.request(isWatchList, 4);
  fixture.watches.subscribe(configMaps, new RecordingSubscriber("5"));
  (await fixture.server.request(isPlainWatch)).stream();
  await fixture.observer.entered("watching");
  fixture.watches.subscribe(lists[4] ?? configMaps, new RecordingSubscriber());
  await fixture.pass(1);
  expect([fixture.server.count(isWatchList), fixture.server.count(isProbe)]).toEqual([4, 0]);
  const [first, second] = fixture.server.requests.filter(isWatchList);
  first?.stream().lines(bookmark(5, true));
  await fixture.server.request(isWatchList, 5);
  expect(fixture.server.count(isProbe)).toBe(0);
  second?.stream().lines(bookmark(5, true));
  await fixture.server.request(isProbe);
});

test.each<[string, (fixture: FaultFixture) => void]>([
  ["with WatchList", ({ server }) => server.script(isProbe, (each) => each.stream().lines(bookmark(60, true)))],
  ["without WatchList", ({ server }) => server.script(isListProbe, (each) => each.reply(200, configMapList(60, [])))],
])("a reconnect asks a server %s once how new it is", async (_what, prepare) => {
  await using fixture = await FaultFixture.start();
  prepare(fixture);
  const isAsked = (each: Exchange) => isProbe(each) || isListProbe(each);
  const subscriber = new Asking("50");
  fixture.watches.subscribe(configMaps, subscriber);
  let stream = (await fixture.server.request(isPlainWatch)).stream();
  await subscriber.saw("server is at 60");
  const before = fixture.server.count(isAsked);
  for (let broken = 1; broken <= 3; broken++) {
    stream.reset();
    await fixture.observer.entered("backoff", broken);
    await fixture.pass(10);
    stream = (await fixture.server.request(isPlainWatch, broken + 1)).stream();
    await subscriber.saw("server is at 60", broken + 1);
  }
  expect(fixture.server.count(isAsked) - before).toBe(3);
});

test("sources that come at once connect over many turns of the event loop", async () => {
  await using fixture = await FaultFixture.start();
  const count = 400;
  let turn = 0;
  let connected = 0;
  const perTurn = new Map<number, number>();
  const request = fixture.transport.request.bind(fixture.transport);
  fixture.transport.request = (each: KubeRequest) => {
    if (each.path.startsWith("/api/v1/namespaces/")) perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
    return request(each);
  };
  fixture.server.script(isStream, (each) => {
    connected++;
    each.stream();
  });
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  for (let index = 0; index < count; index++) {
    fixture.watches.subscribe({ ...configMaps, namespace: `team-${index}` }, new RecordingSubscriber("5"));
  }
  while (connected < count) {
    turn++;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(16);
});
