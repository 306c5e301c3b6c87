import { expect, test } from "vitest";
import type { Registration } from "../../runtime/informer/fanout/subscriber.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, event } from "./api-server.ts";
import { configMaps, FaultFixture, isWatch, isWatchList } from "./fixture.ts";

test("subscribers of one source share one connection, whatever the order of its selector", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber("5", "second")];
  fixture.watches.subscribe({ ...configMaps, labelSelector: "a=1,b in (x,y)" }, first);
  fixture.watches.subscribe({ ...configMaps, labelSelector: "b in (y, x),a==1" }, second);
  (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await Promise.all([first.saw("Added a 6"), second.saw("Added a 6")]);
  expect(fixture.server.count(isWatch)).toBe(1);
  expect(fixture.watches.status()).toHaveLength(1);
});

test("a group starts from its smallest position, and nobody gets what it has", async () => {
  await using fixture = await FaultFixture.start();
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("8", "young")];
  fixture.watches.subscribe(configMaps, young);
  fixture.watches.subscribe(configMaps, old);
  const request = await fixture.server.request(isWatch);
  expect(request.query.get("resourceVersion")).toBe("5");
  request.stream().lines(event("ADDED", configMap("a", 7)), event("ADDED", configMap("b", 9)));
  await Promise.all([old.saw("Added b 9"), young.saw("Added b 9")]);
  expect(old.log).toEqual(["Added a 7", "Added b 9"]);
  expect(young.log).toEqual(["Added b 9"]);
});

test("one that joins with an older position is brought what it lacks beside the stream, and the others notice nothing", async () => {
  await using fixture = await FaultFixture.start();
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("8", "young")];
  fixture.watches.subscribe(configMaps, young);
  const stream = (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("b", 9)));
  await young.saw("Added b 9");
  fixture.watches.subscribe(configMaps, old);
  const replay = await fixture.server.request(isWatch, 2);
  expect(replay.query.get("resourceVersion")).toBe("5");
  const replayed = replay.stream().lines(event("ADDED", configMap("a", 7)));
  await old.saw("Added a 7");
  stream.lines(event("ADDED", configMap("c", 10)));
  await young.saw("Added c 10");
  replayed.lines(event("ADDED", configMap("b", 9)), event("ADDED", configMap("c", 10)));
  await old.saw("Added c 10");
  stream.lines(event("ADDED", configMap("d", 11)));
  await Promise.all([old.saw("Added d 11"), young.saw("Added d 11")]);
  expect(old.log).toEqual(["Added a 7", "Added b 9", "Added c 10", "Added d 11"]);
  expect(young.log).toEqual(["Added b 9", "Added c 10", "Added d 11"]);
  expect([fixture.server.count(isWatch), fixture.server.count(isWatchList)]).toEqual([2, 0]);
});

test("one that joins where the source already is takes part in the running stream", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber("9", "second")];
  fixture.watches.subscribe(configMaps, first);
  const stream = (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 7)));
  await first.saw("Added a 7");
  fixture.watches.subscribe(configMaps, second);
  stream.lines(event("ADDED", configMap("b", 9)), event("ADDED", configMap("c", 10)));
  await Promise.all([first.saw("Added c 10"), second.saw("Added c 10")]);
  expect(second.log).toEqual(["Added c 10"]);
  expect(fixture.server.count(isWatch)).toBe(1);
});

test("one that leaves changes nothing for the others", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber("5", "second")];
  const watch = fixture.watches.subscribe(configMaps, first);
  fixture.watches.subscribe(configMaps, second);
  const stream = (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await second.saw("Added a 6");
  await watch.close();
  stream.lines(event("ADDED", configMap("b", 7)));
  await second.saw("Added b 7");
  expect(first.log).toEqual(["Added a 6"]);
  expect(fixture.server.count(isWatch)).toBe(1);
});

test("no more than four lists run at once", async () => {
  await using fixture = await FaultFixture.start();
  const all = Array.from({ length: 12 }, (_, index) => {
    const subscriber = new RecordingSubscriber(undefined, `subscriber-${index}`);
    fixture.watches.subscribe({ ...configMaps, labelSelector: `n=${index}` }, subscriber);
    return subscriber;
  });
  for (let done = 0; done < all.length; done++) {
    const request = await fixture.server.request(isWatchList, done + 1);
    await fixture.clock.advance(0);
    expect(fixture.server.count(isWatchList)).toBeLessThanOrEqual(done + 4);
    request.stream().lines(bookmark(5, true));
  }
  await Promise.all(all.map((subscriber) => subscriber.saw("end 5")));
  expect(fixture.server.connections).toBeLessThanOrEqual(all.length + 2);
});

test("a subscriber that throws makes its event come again; it is not swallowed", async () => {
  await using fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  const change = subscriber.change.bind(subscriber);
  let thrown = false;
  subscriber.change = (each) => {
    if (!thrown) {
      thrown = true;
      throw new Error("a bug of ours");
    }
    change(each);
  };
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  const { cause, message } = await fixture.observer.entered("backoff");
  expect([cause, message]).toEqual(["internal", "a bug of ours"]);
  await fixture.clock.advance(800);
  const again = await fixture.server.request(isWatch, 2);
  expect(again.query.get("resourceVersion")).toBe("5");
  again.stream().lines(event("ADDED", configMap("a", 6)));
  await subscriber.saw("Added a 6");
});

test("one that steps aside is sent nothing, the others are served on, and it is joined again where it stands", async () => {
  await using fixture = await FaultFixture.start();
  const [full, other] = [new RecordingSubscriber("5", "full"), new RecordingSubscriber("5", "other")];
  const room = Promise.withResolvers<void>();
  const placed = Promise.withResolvers<Registration>();
  fixture.watches.subscribe(configMaps, Object.assign(full, { placed: placed.resolve }));
  fixture.watches.subscribe(configMaps, other);
  const stream = (await fixture.server.request(isWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await Promise.all([full.saw("Added a 6"), other.saw("Added a 6")]);
  (await placed.promise).stepAside(() => room.promise);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  stream.lines(event("ADDED", configMap("b", 7)), event("ADDED", configMap("c", 8)));
  await other.saw("Added c 8");
  expect(full.log).toEqual(["Added a 6"]);
  room.resolve();
  const replay = await fixture.server.request(isWatch, 2);
  expect(replay.query.get("resourceVersion")).toBe("6");
  replay.stream().lines(event("ADDED", configMap("b", 7)), event("ADDED", configMap("c", 8)));
  await full.saw("Added c 8");
  stream.lines(event("ADDED", configMap("d", 9)));
  await Promise.all([full.saw("Added d 9"), other.saw("Added d 9")]);
  expect(full.log).toEqual(["Added a 6", "Added b 7", "Added c 8", "Added d 9"]);
  expect(other.log).toEqual(full.log);
});
