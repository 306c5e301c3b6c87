import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, event, type Stream } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isPlainWatch, isWatchList } from "./fixture.ts";

const second = 1000;

/** A fixture whose source has resumed from 5 and is connected. */
async function connected() {
  const fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  const watch = fixture.watches.subscribe(configMaps, subscriber);
  const stream = (await fixture.server.request(isPlainWatch)).stream();
  await fixture.observer.entered("watching");
  return { fixture, subscriber, stream, watch };
}

test("initial events end at their mark, and changes follow on the same connection", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(configMaps, subscriber);
  const request = await fixture.server.request(isWatchList);
  expect(request.headers.get("accept-encoding")).toBe("identity");
  request
    .stream()
    .lines(event("ADDED", configMap("b", 9)), event("ADDED", configMap("a", 3)), bookmark(12, true))
    .lines(event("MODIFIED", configMap("a", 13)));
  await subscriber.saw("Modified a 13");
  expect(subscriber.log).toEqual([
    "list initial from nowhere",
    "item b 9",
    "item a 3",
    "end 12",
    "bookmark 12",
    "Modified a 13",
  ]);
  expect(fixture.server.count(isList)).toBe(0);
});

test.each<[string, (stream: Stream) => void]>([
  ["is reset", (stream) => stream.reset()],
  ["ends without its last chunk", (stream) => stream.fin()],
  ["ends as HTTP means it", (stream) => stream.end()],
])("a line cut in half where the connection %s is neither read nor lost", async (_how, cut) => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  const line = JSON.stringify(event("MODIFIED", configMap("b", 7)));
  stream.lines(event("MODIFIED", configMap("a", 6))).send(line.slice(0, 60));
  await subscriber.saw("Modified a 6");
  cut(stream);
  while (fixture.observer.causes.length === 0) await fixture.clock.advance(0);
  await fixture.clock.advance(800);
  const resumed = await fixture.server.request(isPlainWatch, 2);
  expect(resumed.query.get("resourceVersion")).toBe("6");
  resumed.stream().send(`${line}\n`);
  await subscriber.saw("Modified b 7");
  expect(subscriber.log).toEqual(["Modified a 6", "Modified b 7"]);
  expect(fixture.server.count(isList)).toBe(0);
});

test("a body without framing that is cut in the middle of a line is resumed", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  const request = await fixture.server.request(isPlainWatch);
  request.head(200, { "content-type": "application/json", connection: "close" });
  request.socket.end(`${JSON.stringify(event("ADDED", configMap("a", 6)))}\n{"type":"ADD`);
  await fixture.observer.ended("truncated");
  const resumed = await fixture.server.request(isPlainWatch, 2);
  expect(resumed.query.get("resourceVersion")).toBe("6");
  expect(subscriber.log).toEqual(["Added a 6"]);
});

test("a stream that falls silent is left after 70 s once it has shown bookmarks", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  stream.lines(bookmark(8));
  await subscriber.saw("bookmark 8");
  await fixture.clock.advance(69 * second);
  expect(fixture.server.count(isPlainWatch)).toBe(1);
  await fixture.clock.advance(second);
  const resumed = await fixture.server.request(isPlainWatch, 2);
  expect(resumed.query.get("resourceVersion")).toBe("8");
  expect(fixture.observer.causes).toEqual(["idle"]);
});

test("a proxy's blank lines are a sign of life, and say nothing of what the server has", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  stream.lines(bookmark(8));
  await subscriber.saw("bookmark 8");
  const heard = subscriber.log.length;
  for (let beat = 1; beat <= 3; beat++) {
    await fixture.clock.advance(60 * second);
    stream.send("\n");
    while (fixture.watches.status()[0]?.lastByteAgeMs !== 0) await fixture.clock.advance(0);
  }
  expect(fixture.server.count(isPlainWatch)).toBe(1);
  expect(subscriber.log.length).toBe(heard);
  await fixture.clock.advance(70 * second);
  await fixture.server.request(isPlainWatch, 2);
  expect(fixture.observer.causes).toEqual(["idle"]);
});

test("a stream without bookmarks may be silent until it should have ended", async () => {
  const { fixture } = await connected();
  await using _ = fixture;
  await fixture.clock.advance(304 * second);
  expect(fixture.server.count(isPlainWatch)).toBe(1);
  await fixture.clock.advance(2 * second);
  await fixture.server.request(isPlainWatch, 2);
  expect(fixture.observer.causes).toEqual(["idle"]);
});

test("after two sessions without a bookmark, watches are asked to end within two minutes", async () => {
  const { fixture } = await connected();
  await using _ = fixture;
  const timeouts = [];
  for (let count = 1; count <= 3; count++) {
    const request = await fixture.server.request(isPlainWatch, count);
    const seconds = Number(request.query.get("timeoutSeconds"));
    timeouts.push(seconds);
    if (count > 1) request.stream();
    await fixture.observer.entered("watching");
    if (count < 3) await advanceUntil(fixture, seconds + 5, () => fixture.server.count(isPlainWatch) > count);
  }
  expect(timeouts).toEqual([300, 300, 60]);
});

/** Advances by whole seconds, at most `seconds`, and lets sockets work in between. */
async function advanceUntil(fixture: FaultFixture, seconds: number, done: () => boolean): Promise<void> {
  for (let passed = 0; passed < seconds && !done(); passed++) await fixture.clock.advance(second);
  while (!done()) await fixture.clock.advance(0);
}

test("a stream that trickles beyond its time is ended by us", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  for (let rv = 6; rv < 12; rv++) {
    stream.lines(bookmark(rv));
    await subscriber.saw(`bookmark ${rv}`);
    await fixture.clock.advance(52 * second);
  }
  expect(fixture.server.count(isPlainWatch)).toBe(1);
  await fixture.clock.advance(4 * second);
  await fixture.server.request(isPlainWatch, 2);
  expect(fixture.observer.causes).toEqual(["overdue"]);
});

test("bookmarks alone for ten minutes keep one connection, but for the server's own ends", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  let current = stream;
  let ends = 0;
  for (let minute = 1; minute <= 10; minute++) {
    current.lines(bookmark(100 + minute));
    await subscriber.saw(`bookmark ${100 + minute}`);
    await fixture.clock.advance(59 * second);
    if (minute % 5 !== 0) continue;
    current.end();
    ends++;
    current = (await fixture.server.request(isPlainWatch, 1 + ends)).stream();
  }
  expect(fixture.observer.causes).toEqual(["eof", "eof"]);
});

test("silence that our own backpressure makes does not count", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  let free = () => {};
  subscriber.congested = new Promise((resolve) => {
    free = resolve;
  });
  stream.lines(bookmark(8));
  await subscriber.saw("bookmark 8");
  await fixture.clock.advance(200 * second);
  stream.lines(event("ADDED", configMap("a", 9)));
  subscriber.congested = undefined;
  free();
  await subscriber.saw("Added a 9");
  expect(fixture.observer.causes).toEqual([]);
});

test("a machine that slept does not trust its connections", async () => {
  const { fixture, subscriber, stream } = await connected();
  await using _ = fixture;
  stream.lines(bookmark(8));
  await subscriber.saw("bookmark 8");
  fixture.clock.suspend(3600 * second);
  await fixture.clock.advance(70 * second);
  await fixture.server.request(isPlainWatch, 2);
  expect(fixture.observer.causes).toEqual(["suspended"]);
});

test("the last to leave closes the connection and leaves no timer behind", async () => {
  const { fixture, watch } = await connected();
  await using _ = fixture;
  const [request] = fixture.server.requests.filter(isPlainWatch);
  const closed = new Promise((resolve) => request?.socket.once("close", resolve));
  await watch.close();
  await closed;
  expect(fixture.clock.timers).toBe(0);
  expect(fixture.watches.status()).toEqual([]);
});
