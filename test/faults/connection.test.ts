import { expect, test } from "vitest";
import { RecordingSubscriber } from "../watch/recording-subscriber.ts";
import { bookmark, configMap, event } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isPlainWatch, isWatchList } from "./fixture.ts";

test("initial events end at their mark, and changes follow on the same connection", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(configMaps, subscriber);
  const request = await fixture.server.request(isWatchList);
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

test("a connection reset in the middle of a line loses nothing and repeats nothing", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  const first = (await fixture.server.request(isPlainWatch)).stream();
  const cut = JSON.stringify(event("MODIFIED", configMap("b", 7)));
  first.lines(event("MODIFIED", configMap("a", 6))).send(cut.slice(0, 60));
  await subscriber.saw("Modified a 6");
  first.reset();
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(800);
  const second = await fixture.server.request(isPlainWatch, 2);
  expect(second.query.get("resourceVersion")).toBe("6");
  second.stream().send(`${cut}\n`);
  await subscriber.saw("Modified b 7");
  expect(subscriber.log).toEqual(["Modified a 6", "Modified b 7"]);
});
