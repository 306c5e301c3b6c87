import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, event } from "./api-server.ts";
import { configMaps, FaultFixture, isPlainWatch, isProbe, isWatchList } from "./fixture.ts";

test("a function that joins a source does not make the others relist", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber(undefined, "second")];
  fixture.watches.subscribe(configMaps, first);
  const stream = (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 7)));
  await first.saw("Added a 7");
  fixture.watches.subscribe(configMaps, second);
  const list = (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 7)));
  await second.saw("item a 7");
  stream.lines(event("ADDED", configMap("b", 8)));
  await first.saw("Added b 8");
  list.lines(event("ADDED", configMap("b", 8)), bookmark(9, true));
  await second.saw("bookmark 9");
  stream.lines(event("MODIFIED", configMap("b", 9)), event("ADDED", configMap("c", 10)));
  await Promise.all([first.saw("Added c 10"), second.saw("Added c 10")]);
  expect(first.log).toEqual(["Added a 7", "Added b 8", "Modified b 9", "Added c 10"]);
  expect(second.log).toEqual([
    "list initial from nowhere",
    "item a 7",
    "item b 8",
    "end 9",
    "bookmark 9",
    "Added c 10",
  ]);
  expect([fixture.server.count(isPlainWatch), fixture.server.count(isWatchList)]).toEqual([1, 1]);
  expect(fixture.watches.status()).toMatchObject([{ subscribers: 2, state: "watching" }]);
});

test("of functions that start together, those with a position get their history and the others a list", async () => {
  await using fixture = await FaultFixture.start();
  const [old, fresh] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, fresh);
  fixture.watches.subscribe(configMaps, old);
  const list = (await fixture.server.request(isWatchList)).stream();
  list.lines(event("ADDED", configMap("a", 4)), bookmark(9, true));
  await fresh.saw("bookmark 9");
  const resumed = await fixture.server.request(isPlainWatch);
  expect(resumed.query.get("resourceVersion")).toBe("5");
  resumed
    .stream()
    .lines(
      event("ADDED", configMap("x", 6)),
      event("DELETED", configMap("x", 8)),
      event("MODIFIED", configMap("a", 10)),
    );
  list.lines(event("MODIFIED", configMap("a", 10)));
  await Promise.all([old.saw("Modified a 10"), fresh.saw("Modified a 10")]);
  expect(old.log).toEqual(["Added x 6", "Deleted x 8", "Modified a 10"]);
  expect(fresh.log).toEqual(["list initial from nowhere", "item a 4", "end 9", "bookmark 9", "Modified a 10"]);
  expect(fixture.server.count(isWatchList)).toBe(1);
});

test("a list that ends where the stream was already is followed beside it, until it has caught up", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber(undefined, "second")];
  fixture.watches.subscribe(configMaps, first);
  const stream = (await fixture.server.request(isPlainWatch)).stream();
  stream.lines(event("ADDED", configMap("a", 7)));
  await first.saw("Added a 7");
  fixture.watches.subscribe(configMaps, second);
  const list = (await fixture.server.request(isWatchList)).stream();
  stream.lines(event("ADDED", configMap("b", 12)));
  await first.saw("Added b 12");
  list.lines(event("ADDED", configMap("a", 7)), bookmark(9, true), event("ADDED", configMap("b", 12)));
  await second.saw("Added b 12");
  stream.lines(event("ADDED", configMap("c", 13)));
  await Promise.all([first.saw("Added c 13"), second.saw("Added c 13")]);
  expect(first.log).toEqual(["Added a 7", "Added b 12", "Added c 13"]);
  expect(second.log.slice(2)).toEqual(["end 9", "bookmark 9", "Added b 12", "Added c 13"]);
  expect([fixture.server.count(isPlainWatch), fixture.server.count(isWatchList)]).toEqual([1, 1]);
});

test("functions that join in the middle of another's first list share a list of their own", async () => {
  await using fixture = await FaultFixture.start();
  const all = [1, 2, 3].map((n) => new RecordingSubscriber(undefined, `n${n}`));
  const [first, second, third] = all as [RecordingSubscriber, RecordingSubscriber, RecordingSubscriber];
  fixture.watches.subscribe(configMaps, first);
  const list = (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 4)));
  await first.saw("item a 4");
  fixture.watches.subscribe(configMaps, second);
  fixture.watches.subscribe(configMaps, third);
  list.lines(bookmark(5, true));
  await first.saw("bookmark 5");
  await fixture.pass(1);
  (await fixture.server.request(isWatchList, 2)).stream().lines(event("ADDED", configMap("a", 4)), bookmark(6, true));
  await Promise.all([second.saw("bookmark 6"), third.saw("bookmark 6")]);
  list.lines(event("ADDED", configMap("b", 7)));
  await Promise.all(all.map((each) => each.saw("Added b 7")));
  expect(first.log).toEqual(["list initial from nowhere", "item a 4", "end 5", "bookmark 5", "Added b 7"]);
  expect(fixture.server.count(isWatchList)).toBe(2);
});

test("a list that fails keeps nobody's stream from running", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isWatchList, (each) => each.status(429, "TooManyRequests"));
  const [old, fresh] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, fresh);
  fixture.watches.subscribe(configMaps, old);
  await fixture.observer.entered("backoff");
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await old.saw("Added a 6");
  expect([old.log, fresh.log]).toEqual([["Added a 6"], ["list initial from nowhere", "abort"]]);
});

test("one that leaves while it lists alone ends its list, and the others notice nothing", async () => {
  await using fixture = await FaultFixture.start();
  const [old, fresh] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, old);
  const watch = fixture.watches.subscribe(configMaps, fresh);
  (await fixture.server.request(isWatchList)).stream();
  const stream = (await fixture.server.request(isPlainWatch)).stream();
  await watch.close();
  stream.lines(event("ADDED", configMap("a", 6)));
  await old.saw("Added a 6");
  expect(fresh.log).toEqual(["list initial from nowhere", "abort"]);
  expect(fixture.watches.status()).toHaveLength(1);
});

test("a stream that joins another takes its doubt along whether resourceVersions went back", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const [old, fresh] = [new RecordingSubscriber("900", "old"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, old);
  (await fixture.server.request(isPlainWatch)).stream();
  await fixture.server.request(isProbe);
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(41, true)));
  fixture.watches.subscribe(configMaps, fresh);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(40, true));
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(41, true));
  await old.saw("bookmark 41");
  expect(old.log).toEqual(["list rv-rewind from 900", "end 41", "bookmark 41"]);
});

test("functions that come one by one soon after a list share the next one", async () => {
  await using fixture = await FaultFixture.start();
  const named = (name: string) => new RecordingSubscriber(undefined, name);
  const [first, second, third] = [named("first"), named("second"), named("third")];
  fixture.server.script(isWatchList, (each) => each.stream().lines(bookmark(9, true)));
  fixture.watches.subscribe(configMaps, first);
  await first.saw("bookmark 9");
  fixture.watches.subscribe(configMaps, second);
  await fixture.clock.advance(4);
  fixture.watches.subscribe(configMaps, third);
  expect(fixture.server.count(isWatchList)).toBe(1);
  await fixture.clock.advance(1);
  await Promise.all([second.saw("bookmark 9"), third.saw("bookmark 9")]);
  expect(fixture.server.count(isWatchList)).toBe(2);
});
