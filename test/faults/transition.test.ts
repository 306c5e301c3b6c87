import { expect, test } from "vitest";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, configMapList, type Exchange, event, statusObject } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isPlainWatch, isWatch, isWatchList } from "./fixture.ts";

test("a refusal whose body never comes is still a refusal", async () => {
  await using fixture = await FaultFixture.start();
  fixture.watches.subscribe(configMaps, new RecordingSubscriber("5"));
  const refused = await fixture.server.request(isPlainWatch);
  refused.head(429, { "content-type": "application/json", "content-length": "100", "retry-after": "7" });
  while (fixture.clock.timers === 0) await fixture.clock.advance(0);
  await fixture.clock.advance(10_000);
  expect(await fixture.observer.entered("backoff")).toMatchObject({ cause: "http_429", delayMs: 7000 });
});

test("a source stops at once in the middle of a list that a subscriber holds back", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isWatchList, (each) => each.status(422, "Invalid"));
  const subscriber = new RecordingSubscriber();
  subscriber.congested = new Promise(() => {});
  const watch = fixture.watches.subscribe(configMaps, subscriber);
  const page = await fixture.server.request(isList);
  page.reply(200, configMapList(10, [configMap("a", 6)], { continue: "t" }));
  await subscriber.saw("item a 6");
  await fixture.watches.close();
  await watch.close();
  expect(fixture.server.count(isList)).toBe(1);
  expect(fixture.clock.timers).toBe(0);
});

test("a watch ends at once while a subscriber can take no more", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  const watch = fixture.watches.subscribe(configMaps, subscriber);
  const stream = (await fixture.server.request(isPlainWatch)).stream();
  subscriber.congested = new Promise(() => {});
  stream.lines(bookmark(8));
  await subscriber.saw("bookmark 8");
  await fixture.watches.close();
  await watch.close();
  expect(fixture.clock.timers).toBe(0);
});

test("one that leaves in the middle of a list gets nothing of its end", async () => {
  await using fixture = await FaultFixture.start();
  const [leaver, stayer] = [new RecordingSubscriber(undefined, "leaver"), new RecordingSubscriber(undefined, "stayer")];
  const watch = fixture.watches.subscribe(configMaps, leaver);
  fixture.watches.subscribe(configMaps, stayer);
  const stream = (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 3)));
  await leaver.saw("item a 3");
  await watch.close();
  stream.lines(event("ADDED", configMap("b", 4)), bookmark(9, true));
  await stayer.saw("bookmark 9");
  expect(leaver.log).toEqual(["list initial from nowhere", "item a 3", "abort"]);
});

test("a replay that breaks off brings nobody what they had", async () => {
  await using fixture = await FaultFixture.start();
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("9", "young")];
  fixture.watches.subscribe(configMaps, young);
  fixture.watches.subscribe(configMaps, old);
  const replay = (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 7)));
  await old.saw("Added a 7");
  await fixture.clock.advance(1000);
  replay.end();
  (await fixture.server.request(isWatch, 2))
    .stream()
    .lines(event("ADDED", configMap("b", 9)), event("ADDED", configMap("c", 10)));
  await Promise.all([old.saw("Added c 10"), young.saw("Added c 10")]);
  expect([old.log, young.log]).toEqual([["Added a 7", "Added b 9", "Added c 10"], ["Added c 10"]]);
});

test("a deletion that carries its object's own resourceVersion reaches those who are spared a replay up to there", async () => {
  await using fixture = await FaultFixture.start();
  const old = new RecordingSubscriber("5", "old");
  const young = Object.assign(new RecordingSubscriber("9", "young"), {
    isNews: ({ meta }: Change) => meta.name === "b",
  });
  fixture.watches.subscribe(configMaps, young);
  fixture.watches.subscribe(configMaps, old);
  (await fixture.server.request(isWatch))
    .stream()
    .lines(
      event("DELETED", configMap("a", 7)),
      event("DELETED", configMap("b", 8)),
      event("ADDED", configMap("c", 10)),
    );
  await Promise.all([old.saw("Added c 10"), young.saw("Added c 10")]);
  expect(young.log).toEqual(["Deleted b 8", "Added c 10"]);
});

test("one that throws at the end of a list gets the list again, and so does everybody", async () => {
  await using fixture = await FaultFixture.start();
  const [faulty, other] = [new RecordingSubscriber("5", "faulty"), new RecordingSubscriber("5", "other")];
  const list = faulty.list.bind(faulty);
  faulty.list = (reason, gapFrom) => {
    const receiver = list(reason, gapFrom);
    faulty.list = list;
    return {
      ...receiver,
      end: () => {
        throw new Error("a bug of ours");
      },
    };
  };
  fixture.watches.subscribe(configMaps, faulty);
  fixture.watches.subscribe(configMaps, other);
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 8)), bookmark(9, true));
  expect(await fixture.observer.entered("backoff")).toMatchObject({ cause: "internal" });
  await fixture.clock.advance(800);
  (await fixture.server.request(isWatchList, 2)).stream().lines(event("ADDED", configMap("a", 8)), bookmark(9, true));
  await Promise.all([faulty.saw("end 9"), other.saw("end 9")]);
});

test("a server whose history is gone again right after a list is not listed in a loop", async () => {
  await using fixture = await FaultFixture.start();
  fixture.watches.subscribe(configMaps, new RecordingSubscriber("5"));
  const gone = event("ERROR", statusObject(410, "Expired"));
  (await fixture.server.request(isPlainWatch)).stream().lines(gone);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(9, true), gone);
  expect((await fixture.observer.entered("backoff")).delayMs).toBe(800);
  await fixture.clock.advance(800);
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(10, true), gone);
  expect((await fixture.observer.entered("backoff", 2)).delayMs).toBe(1600);
});

test("initial events that break off three times are read by LIST instead, with waits in between", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(configMaps, subscriber);
  for (const [index, delayMs] of [800, 1600].entries()) {
    const stream = (await fixture.server.request(isWatchList, index + 1)).stream();
    stream.lines(event("ADDED", configMap("a", 3)));
    await subscriber.saw("item a 3", index + 1);
    await fixture.clock.advance(1000);
    stream.end();
    expect((await fixture.observer.entered("backoff", index + 1)).delayMs).toBe(delayMs);
    await fixture.clock.advance(delayMs);
  }
  (await fixture.server.request(isWatchList, 3)).stream().end();
  (await fixture.server.request(isList)).reply(200, configMapList(10, [configMap("a", 3)]));
  await subscriber.saw("end 10");
});

const notice = (code: number, reason: string) => event("ERROR", statusObject(code, reason));
test.each<[string, (exchange: Exchange) => void]>([
  ["an ERROR event of a bad request", (each) => each.stream().lines(notice(400, "BadRequest"))],
  ["an ERROR event of the server's trouble", (each) => each.stream().lines(notice(500, "InternalError"))],
  ["an ERROR event of history that is gone", (each) => each.stream().lines(notice(410, "Expired"))],
  ["a line that cannot be read", (each) => each.stream().send("<html>\n")],
  ["a page for people", (each) => each.reply(200, "<html></html>", { "content-type": "text/html" })],
])("initial events in whose place %s comes three times are read by LIST instead, and not before", async (_, answer) => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(configMaps, subscriber);
  for (const index of [1, 2]) {
    answer(await fixture.server.request(isWatchList, index));
    const { delayMs = 0 } = await fixture.observer.entered("backoff", index);
    expect(fixture.server.count(isList)).toBe(0);
    await fixture.clock.advance(delayMs);
  }
  answer(await fixture.server.request(isWatchList, 3));
  (await fixture.server.request(isList)).reply(200, configMapList(10, [configMap("a", 3)]));
  await subscriber.saw("end 10");
});

test("a source that stops when its turn to list has just come gives it to the next", async () => {
  await using fixture = await FaultFixture.start();
  const subscribe = (index: number) => {
    const subscriber = new RecordingSubscriber(undefined, `subscriber-${index}`);
    const watch = fixture.watches.subscribe({ ...configMaps, labelSelector: `n=${index}` }, subscriber);
    return { subscriber, watch };
  };
  const listing = [0, 1, 2, 3].map(subscribe);
  await fixture.server.request(isWatchList, 4);
  const waiting = [4, 5, 6, 7].map(subscribe);
  await fixture.clock.advance(0);
  for (const [index, { subscriber }] of listing.entries()) {
    // The bookmark arrives in the turn of the event loop in which the list released its slot.
    subscriber.bookmark = () => void waiting[index]?.watch.close();
    (await fixture.server.request(isWatchList, index + 1)).stream().lines(bookmark(5, true));
    await subscriber.saw("end 5");
  }
  subscribe(8);
  await fixture.server.request((each) => isWatchList(each) && each.query.get("labelSelector") === "n=8");
});
