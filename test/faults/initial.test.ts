import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, configMapList, type Exchange, event, statusObject } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isListProbe, isPlainWatch, isProbe, isWatchList } from "./fixture.ts";

async function starting(resumeFrom?: string) {
  const fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber(resumeFrom);
  fixture.watches.subscribe(configMaps, subscriber);
  return { fixture, subscriber };
}

/** Like `starting`, on a server without WatchList. */
async function listing() {
  const started = await starting();
  started.fixture.server.script(isWatchList, (each) => each.status(422, "Invalid"));
  (await started.fixture.server.request(isWatchList)).status(422, "Invalid");
  return { ...started, page: await started.fixture.server.request(isList) };
}

test("live events before the end mark wait until the list is complete, which ends just before them", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  (await fixture.server.request(isWatchList))
    .stream()
    .lines(event("ADDED", configMap("b", 9)), event("ADDED", configMap("a", 3)))
    .lines(
      event("MODIFIED", configMap("a", 21)),
      event("DELETED", configMap("b", 22)),
      event("ADDED", configMap("c", 23)),
    )
    .lines(bookmark(25, true));
  await subscriber.saw("bookmark 25");
  expect(subscriber.log).toEqual([
    "list initial from nowhere",
    "item b 9",
    "item a 3",
    "end 20",
    "Modified a 21",
    "Deleted b 22",
    "Added c 23",
    "bookmark 25",
  ]);
});

test("initial events that break off count for nothing", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  const first = (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 3)));
  await subscriber.saw("item a 3");
  first.reset();
  await fixture.observer.entered("backoff");
  expect(subscriber.log).toEqual(["list initial from nowhere", "item a 3", "abort"]);
  await fixture.clock.advance(800);
  (await fixture.server.request(isWatchList, 2)).stream().lines(event("ADDED", configMap("a", 3)), bookmark(4, true));
  await subscriber.saw("end 4");
});

test("initial events whose end is not marked for 30 s are read by LIST instead, for an hour", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 3)));
  await subscriber.saw("item a 3");
  await fixture.clock.advance(30_000);
  const list = await fixture.server.request(isList);
  expect(subscriber.log.at(2)).toBe("abort");
  list.reply(200, configMapList(10, [configMap("a", 3)]));
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(800);
  (await fixture.server.request(isList, 2)).reply(200, configMapList(20, []));
  (await fixture.server.request(isPlainWatch, 2)).stream();
  await fixture.observer.entered("watching");
  expect(fixture.server.count(isWatchList)).toBe(1);
  await fixture.clock.advance(3_600_000);
  (await fixture.server.request(isPlainWatch, 3)).status(410, "Expired");
  await fixture.server.request(isWatchList, 2);
});

test("a proxy's blank lines do not excuse initial events whose end is not marked for 30 s", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  const stream = (await fixture.server.request(isWatchList)).stream();
  stream.lines(event("ADDED", configMap("a", 3)));
  await subscriber.saw("item a 3");
  await fixture.clock.advance(20_000);
  stream.send("\n").send(`\n${JSON.stringify(event("ADDED", configMap("b", 4)))}\n`);
  await subscriber.saw("item b 4");
  await fixture.clock.advance(20_000);
  expect(fixture.server.count(isList)).toBe(0);
  stream.send("\n \n");
  await fixture.clock.advance(10_000);
  await fixture.server.request(isList);
  expect(fixture.observer.causes).toEqual(["idle"]);
});

test("initial events that trickle for five minutes without an end are read by LIST instead", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  const stream = (await fixture.server.request(isWatchList)).stream();
  for (let count = 1; count <= 15; count++) {
    expect(fixture.server.count(isList)).toBe(0);
    stream.lines(event("ADDED", configMap(`n${count}`, count)));
    await subscriber.saw(`item n${count} ${count}`);
    await fixture.clock.advance(20_000);
  }
  await fixture.server.request(isList);
  expect(fixture.observer.causes).toEqual(["unmarked"]);
});

test("fifty lists refused in a row are waited out, and never given up", async () => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  fixture.server.script(isWatchList, (each) => each.status(422, "Invalid"));
  const failures = Array.from({ length: 50 }, () => (each: Exchange) => each.status(500, "InternalError"));
  fixture.server.script(isList, ...failures, (each) => each.reply(200, configMapList(10, [configMap("a", 3)])));
  for (let failure = 1; failure <= 50; failure++) {
    await fixture.observer.ended("http_500", failure);
    await fixture.clock.advance(30_000);
  }
  await subscriber.saw("end 10");
  expect([fixture.server.count(isList), fixture.server.count(isWatchList)]).toEqual([51, 1]);
  expect(subscriber.log.filter((line) => line.startsWith("item"))).toEqual(["item a 3"]);
});

test.each([400, 422])("a server that answers WatchList with %i is listed at once", async (status) => {
  const { fixture, subscriber } = await starting();
  await using _ = fixture;
  (await fixture.server.request(isWatchList)).status(status, "Invalid");
  const list = await fixture.server.request(isList);
  expect(Object.fromEntries(list.query)).toEqual({ limit: "500" });
  list.reply(200, configMapList(10, [configMap("a", 3)]));
  const watch = await fixture.server.request(isPlainWatch);
  expect(watch.query.get("resourceVersion")).toBe("10");
  expect(subscriber.log.slice(-3)).toEqual(["list initial from nowhere", "item a 3", "end 10"]);
  expect(JSON.parse(subscriber.changes[0]?.body.toString() ?? "")).toEqual(configMap("a", 3));
});

test("later pages carry the token alone, and the first page's resourceVersion counts", async () => {
  const { fixture, subscriber, page } = await listing();
  await using _ = fixture;
  page.reply(200, configMapList(10, [configMap("a", 3)], { continue: "t1" }));
  const second = await fixture.server.request(isList, 2);
  expect(Object.fromEntries(second.query)).toEqual({ limit: "500", continue: "t1" });
  second.reply(200, configMapList(11, [configMap("b", 4)]));
  await subscriber.saw("end 10");
  expect(subscriber.log.slice(-3)).toEqual(["item a 3", "item b 4", "end 10"]);
});

test("a first page without a resourceVersion is not followed from that of a later one", async () => {
  const { fixture, subscriber, page } = await listing();
  await using _ = fixture;
  page.reply(200, configMapList("", [configMap("a", 3)], { continue: "t1" }));
  const { message } = await fixture.observer.entered("degraded");
  expect(message).toContain("no resourceVersion");
  expect(subscriber.log.slice(-1)).toEqual(["abort"]);
});

test("a continue token that expires restarts the list, the second time in one piece", async () => {
  const { fixture, subscriber, page } = await listing();
  await using _ = fixture;
  page.reply(200, configMapList(10, [configMap("a", 3)], { continue: "t1" }));
  const expired = statusObject(410, "Expired", { metadata: { continue: "inconsistent" } });
  (await fixture.server.request(isList, 2)).reply(410, JSON.stringify(expired));
  const whole = await fixture.server.request(isList, 3);
  expect(Object.fromEntries(whole.query)).toEqual({});
  whole.reply(200, configMapList(30, [configMap("b", 4)]));
  await subscriber.saw("end 30");
  expect(subscriber.log.slice(-6)).toEqual([
    "list initial from nowhere",
    "item a 3",
    "abort",
    "list initial from nowhere",
    "item b 4",
    "end 30",
  ]);
});

test.each<[string, string, string]>([
  [
    "is cut short",
    '{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[{"metadata":',
    "application/json",
  ],
  ["is a page", "\n<html>Please sign in</html>", "text/html"],
  ["is a page that says it is JSON", "<html>Please sign in</html>", "application/json"],
])("a list that %s counts for nothing, and is shown where it is a page", async (_what, body, type) => {
  const { fixture, subscriber, page } = await listing();
  await using _ = fixture;
  page.reply(200, body, { "content-type": type });
  const { message } = await fixture.observer.entered("backoff");
  if (body.includes("<html>")) expect(message).toContain("Please sign in");
  expect(subscriber.log.slice(-1)).toEqual(["abort"]);
});

test("a list refused with a Retry-After is listed again after it, never watched for instead", async () => {
  const { fixture, page } = await listing();
  await using _ = fixture;
  page.status(429, "TooManyRequests", {}, { "retry-after": "9" });
  expect((await fixture.observer.entered("backoff")).delayMs).toBe(9000);
  await fixture.clock.advance(9000);
  await fixture.server.request(isList, 2);
  expect(fixture.server.count(isWatchList)).toBe(1);
});

test("a subscriber that doubts a list gets a second one after 30 s, and no events before", async () => {
  const { fixture, subscriber } = await starting("5");
  await using _ = fixture;
  subscriber.outcomes.push("held");
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(20, true), event("ADDED", configMap("x", 21)));
  await subscriber.saw("end 20 held");
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(29_999);
  expect(fixture.server.count(isWatchList)).toBe(1);
  await fixture.clock.advance(1);
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(22, true));
  await subscriber.saw("end 22");
  expect(subscriber.log).toEqual(["list relist from 5", "end 20 held", "list relist from 5", "end 22", "bookmark 22"]);
});

test("a position that lies in the server's future is found out at the start, and everything is compared", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const subscriber = new RecordingSubscriber("900");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).stream();
  const relist = await fixture.server.request((each) => isWatchList(each) && !isProbe(each));
  expect(relist.query.get("resourceVersion")).toBe("");
  relist.stream().lines(event("ADDED", configMap("a", 30)), bookmark(41, true));
  await subscriber.saw("bookmark 41");
  expect(subscriber.log).toEqual(["list rv-rewind from 900", "item a 30", "end 41", "bookmark 41"]);
  expect(fixture.server.count(isList) + fixture.server.count(isListProbe)).toBe(0);
});

test("a position that the server has passed is resumed without any LIST", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await subscriber.saw("Added a 6");
  await fixture.server.request(isProbe);
  expect(fixture.server.count(isList) + fixture.server.count(isListProbe) + fixture.server.count(isWatchList)).toBe(0);
});

test("a server that has not seen the resourceVersion yet is asked again, not answered with a rewind", async () => {
  const { fixture, subscriber } = await starting("50");
  await using _ = fixture;
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  fixture.server.script(isListProbe, (each) => each.reply(200, configMapList(60, [])));
  const causes = { details: { retryAfterSeconds: 1, causes: [{ reason: "ResourceVersionTooLarge" }] } };
  (await fixture.server.request(isWatchList)).status(504, "Timeout", causes);
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(1000);
  const again = await fixture.server.request(isWatchList, 2);
  expect(again.query.get("resourceVersion")).toBe("50");
  again.stream().lines(bookmark(60, true));
  await subscriber.saw("bookmark 60");
  expect(subscriber.log.filter((line) => line.startsWith("list"))).toEqual([
    "list relist from 50",
    "list relist from 50",
  ]);
});

test("a bookmark older than what was received makes the source ask whether time went back", async () => {
  const { fixture, subscriber } = await starting("50");
  await using _ = fixture;
  const stream = (await fixture.server.request(isPlainWatch)).stream();
  await fixture.server.request(isListProbe);
  fixture.server.script(isListProbe, (each) => each.reply(200, configMapList(40, [])));
  stream.lines(bookmark(39));
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await subscriber.saw("bookmark 41");
  expect(subscriber.log).toEqual(["list rv-rewind from 50", "end 41", "bookmark 41"]);
  expect(fixture.observer.stales).toBe(1);
});

test("a list without a resourceVersion is no place to watch from, and says so", async () => {
  const { fixture, subscriber, page } = await listing();
  await using _ = fixture;
  page.reply(200, configMapList("", []));
  const { cause, message } = await fixture.observer.entered("degraded");
  expect([cause, message]).toEqual(["unsupported", "the list has no resourceVersion, so it cannot be watched from"]);
  expect(subscriber.log.at(-1)).toBe("abort");
});
