import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, type Exchange, event, statusObject } from "./api-server.ts";
import { collection, configMaps, FaultFixture, isList, isPlainWatch, isWatch, isWatchList } from "./fixture.ts";

/** A source that resumes from 5, whose next watches the test answers. */
async function resuming() {
  const fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  return { fixture, subscriber, request: await fixture.server.request(isPlainWatch) };
}

test("an ERROR event 410 leads to one relist, even where the server holds the stream open", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request
    .stream()
    .lines(
      event("ADDED", configMap("a", 6)),
      event("ERROR", statusObject(410, "Expired")),
      event("ADDED", configMap("x", 7)),
    );
  const relist = await fixture.server.request(isWatchList);
  expect(relist.query.get("resourceVersion")).toBe("6");
  expect(relist.query.get("resourceVersionMatch")).toBe("NotOlderThan");
  relist.stream().lines(event("ADDED", configMap("a", 6)), bookmark(40, true));
  await subscriber.saw("bookmark 40");
  expect(subscriber.log).toEqual(["Added a 6", "list relist from 6", "item a 6", "end 40", "bookmark 40"]);
  expect(fixture.observer.gones).toBe(1);
});

test("an ERROR event 410 with members that are null is one as well, as servers that are not written in Go send it", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.stream().lines(event("ERROR", statusObject(410, "Expired", { details: null, message: null })));
  const next = await fixture.server.request((each) => isWatch(each) && each !== request);
  expect(next.query.has("sendInitialEvents")).toBe(true);
});

test("an HTTP 410 leads to a relist just as the one inside a stream", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.status(410, "Expired");
  const relist = await fixture.server.request(isWatchList);
  relist.stream().lines(bookmark(40, true));
  await subscriber.saw("bookmark 40");
  expect(subscriber.log[0]).toBe("list relist from 5");
});

test.each([
  ["500 InternalError", statusObject(500, "InternalError"), 800],
  ["429 with a wait of 7 s", statusObject(429, "TooManyRequests", { details: { retryAfterSeconds: 7 } }), 7000],
  ["a code nobody knows", statusObject(499, "Odd"), 800],
])("an ERROR event %s is waited out and resumed where it was", async (_what, status, delayMs) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.stream().lines(event("ADDED", configMap("a", 6)), event("ERROR", status));
  expect((await fixture.observer.entered("backoff")).delayMs).toBe(delayMs);
  await fixture.clock.advance(delayMs - 1);
  expect(fixture.server.count(isWatch)).toBe(1);
  await fixture.clock.advance(1);
  const resumed = await fixture.server.request(isPlainWatch, 2);
  expect(resumed.query.get("resourceVersion")).toBe("6");
  expect(fixture.server.count(isList) + fixture.server.count(isWatchList)).toBe(0);
  expect(subscriber.log).toEqual(["Added a 6"]);
});

test("a source says for how long it has not been connected, through all its tries, until it is again", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  const away = () => fixture.watches.status()[0]?.awayMs;
  const first = request.stream();
  await fixture.observer.entered("watching");
  expect(away()).toBeUndefined();
  first.lines(event("ERROR", statusObject(500, "InternalError")));
  await fixture.observer.entered("backoff");
  let waited = 0;
  for (const [failures, delayMs] of [800, 1600].entries()) {
    await fixture.clock.advance(delayMs);
    waited += delayMs;
    expect(away()).toBe(waited);
    (await fixture.server.request(isPlainWatch, failures + 2)).status(503, "ServiceUnavailable");
    await fixture.observer.ended("http_503", failures + 1);
  }
  await fixture.clock.advance(3200);
  (await fixture.server.request(isPlainWatch, 4)).stream();
  await fixture.observer.entered("watching", 2);
  expect(away()).toBeUndefined();
});

test("five odd ERROR events in a row lead to a relist", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  fixture.server.script(isPlainWatch, (each) => each.stream().lines(event("ERROR", statusObject(499, "Odd"))));
  request.stream().lines(event("ERROR", statusObject(499, "Odd")));
  for (let failure = 1; failure <= 5; failure++) {
    await fixture.observer.ended("error_499", failure);
    await fixture.clock.advance(30_000);
  }
  await fixture.server.request(isWatchList);
  expect(fixture.server.count(isPlainWatch)).toBe(5);
});

test("an odd ERROR event after four of the server's own troubles is the first of its kind, and no reason to list", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  const ends = (code: number) => (each: Exchange) => each.stream().lines(event("ERROR", statusObject(code, "Trouble")));
  fixture.server.script(isPlainWatch, ends(500), ends(500), ends(500), ends(499), (each) => each.stream());
  ends(500)(request);
  for (let failure = 1; failure <= 5; failure++) {
    await fixture.observer.ended(failure < 5 ? "error_500" : "error_499", failure < 5 ? failure : 1);
    await fixture.clock.advance(30_000);
  }
  await fixture.server.request(isPlainWatch, 6);
  expect(fixture.server.count(isWatchList)).toBe(0);
});

const now = Date.UTC(2026, 0, 1);
test.each<[string, Record<string, string>, number]>([
  ["seconds", { "retry-after": "7" }, 7000],
  ["an HTTP date", { "retry-after": new Date(now + 9000).toUTCString() }, 9000],
  ["a date that has passed", { "retry-after": new Date(now - 9000).toUTCString() }, 800],
  ["nothing", {}, 800],
  ["more than a minute", { "retry-after": "9999" }, 60_000],
  ["garbage", { "retry-after": "soon" }, 800],
])("a 429 whose Retry-After is %s binds watch and WatchList alike", async (_what, headers, delayMs) => {
  for (const resumeFrom of ["5", undefined]) {
    await using fixture = await FaultFixture.start();
    fixture.watches.subscribe(configMaps, new RecordingSubscriber(resumeFrom));
    const refused = await fixture.server.request(isWatch);
    refused.reply(429, "slow down", { "content-type": "text/plain", ...headers });
    expect((await fixture.observer.entered("backoff")).delayMs).toBe(delayMs);
    await fixture.clock.advance(delayMs - 1);
    expect(fixture.server.count((each) => each.path === collection)).toBe(1);
    await fixture.clock.advance(1);
    const again = await fixture.server.request(isWatch, 2);
    expect(again.query.get("sendInitialEvents")).toBe(refused.query.get("sendInitialEvents"));
  }
});

test.each([500, 502, 503, 504])(
  "fifty answers %i in a row are waited out ever longer, and never given up",
  async (status) => {
    await using fixture = await FaultFixture.start(() => 0.5);
    const failures = Array.from(
      { length: 50 },
      () => (each: { reply(status: number, body: string): void }) => each.reply(status, "no"),
    );
    const subscriber = new RecordingSubscriber("5");
    fixture.server.script(isPlainWatch, ...failures, (each) => each.stream().lines(event("ADDED", configMap("a", 6))));
    fixture.watches.subscribe(configMaps, subscriber);
    for (let failure = 1; failure <= 50; failure++) {
      await fixture.observer.ended(`http_${status}`, failure);
      await fixture.clock.advance(45_000);
    }
    await subscriber.saw("Added a 6");
    expect(fixture.observer.states.filter((each) => each.to === "backoff")[0]?.delayMs).toBe(1200);
    expect(fixture.server.count(isWatchList)).toBe(0);
  },
);

test("a stream that ends at once and empty is a failure, and waits grow", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isPlainWatch, (each) => each.stream().end());
  fixture.watches.subscribe(configMaps, new RecordingSubscriber("5"));
  let waited = 0;
  for (const expected of [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]) {
    await fixture.observer.ended("eof", ++waited);
    await fixture.clock.advance(expected - 1);
    expect(fixture.server.count(isPlainWatch)).toBe(waited);
    await fixture.clock.advance(1);
    await fixture.server.request(isPlainWatch, waited + 1);
  }
  expect(fixture.server.count(isWatchList)).toBe(0);
});

test("a server that has no time to say which kinds it serves is asked when it wants to be", async () => {
  await using fixture = await FaultFixture.start();
  const isDiscovery = (each: Exchange) => each.path === "/api/v1";
  const discover = { kind: "APIResourceList", groupVersion: "v1", resources: [] };
  fixture.server.script(
    isDiscovery,
    (each) => each.status(429, "TooManyRequests", {}, { "retry-after": "20" }),
    (each) => each.reply(200, JSON.stringify(discover)),
  );
  fixture.watches.subscribe(configMaps, new RecordingSubscriber());
  await fixture.server.request(isDiscovery);
  await fixture.pass(18);
  expect(fixture.server.count(isDiscovery)).toBe(1);
  await fixture.pass(4);
  expect(fixture.server.count(isDiscovery)).toBeGreaterThan(1);
});

test("after two minutes without a failure the next one is the first again, however short the server keeps its streams", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.status(500, "InternalError");
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(800);
  (await fixture.server.request(isPlainWatch, 2)).status(503, "ServiceUnavailable");
  expect((await fixture.observer.entered("backoff", 2)).delayMs).toBe(1600);
  await fixture.clock.advance(1600);
  for (let session = 1; session <= 3; session++) {
    const stream = (await fixture.server.request(isPlainWatch, 2 + session)).stream();
    stream.lines(bookmark(5 + session));
    await fixture.pass(50);
    stream.end();
  }
  (await fixture.server.request(isPlainWatch, 6)).status(500, "InternalError");
  expect((await fixture.observer.entered("backoff", 3)).delayMs).toBe(800);
});

test("a refusal for want of rights deletes nothing, and is tried again after a second, then ever later", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const refuse = (each: Exchange) =>
    each.status(403, "Forbidden", { message: 'configmaps is forbidden: User "u" cannot watch' });
  refuse(request);
  for (const [refusals, delayMs] of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].entries()) {
    await fixture.observer.ended("http_403", refusals + 1);
    expect(fixture.watches.status()[0]).toMatchObject({ state: "forbidden", cause: "Forbidden", resourceVersion: "5" });
    await fixture.clock.advance(delayMs - 1);
    expect(fixture.server.count(isPlainWatch)).toBe(refusals + 1);
    await fixture.clock.advance(1);
    const again = await fixture.server.request(isPlainWatch, refusals + 2);
    if (refusals < 6) refuse(again);
    else again.stream().lines(event("ADDED", configMap("a", 6)));
  }
  await subscriber.saw("Added a 6");
  expect(fixture.observer.states.find(({ to }) => to === "forbidden")?.message).toContain("cannot watch");
  expect(subscriber.log).toEqual(["Added a 6"]);
});

test("rights that were there at last are asked for again at once when they are gone again", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.status(403, "Forbidden");
  await fixture.observer.ended("http_403");
  await fixture.clock.advance(1000);
  const stream = (await fixture.server.request(isPlainWatch, 2)).stream().lines(bookmark(6));
  await fixture.observer.entered("watching");
  await fixture.clock.advance(1000);
  stream.end();
  (await fixture.server.request(isPlainWatch, 3)).status(403, "Forbidden");
  await fixture.observer.ended("http_403", 2);
  await fixture.clock.advance(1000);
  await fixture.server.request(isPlainWatch, 4);
});

test("a 401 is tried again once at once, and then with backoff", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.status(401, "Unauthorized");
  (await fixture.server.request(isPlainWatch, 2)).status(401, "Unauthorized");
  await fixture.observer.entered("backoff");
  expect(fixture.server.count(isPlainWatch)).toBe(2);
  await fixture.clock.advance(800);
  await fixture.server.request(isPlainWatch, 3);
});

test("a collection that is gone while its definition cannot be read deletes nothing", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.reply(404, "404 page not found", { "content-type": "text/plain" });
  await fixture.observer.entered("missing");
  for (let seconds = 0; seconds < 120; seconds++) await fixture.clock.advance(1000);
  expect(subscriber.log).toEqual([]);
  expect(fixture.server.count(isPlainWatch)).toBeGreaterThan(1);
});
