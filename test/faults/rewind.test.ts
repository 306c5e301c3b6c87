import { expect, test } from "vitest";
import { type ResourceVersion, resourceVersion } from "../../runtime/base/resource-version.ts";
import type { ListReason, ListReceiver, Registration } from "../../runtime/informer/fanout/subscriber.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, configMapList, event } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isListProbe, isPlainWatch, isProbe, isWatchList } from "./fixture.ts";

test("a rewind whose list is doubted is still a rewind at the second opinion", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const subscriber = new RecordingSubscriber("900");
  subscriber.outcomes.push("held");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).stream();
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await subscriber.saw("end 41 held");
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(30_000);
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(42, true));
  await subscriber.saw("end 42");
  const said = fixture.observer.states.filter(({ cause }) => cause === "rewind");
  expect(said.map(({ to, resourceVersion }) => [to, resourceVersion])).toEqual([["listing", "900"]]);
  expect(said[0]?.message).toMatch(/went back/);
  expect(subscriber.log.filter((line) => line.startsWith("list"))).toEqual([
    "list rv-rewind from 900",
    "list rv-rewind from 900",
  ]);
});

test("one that has stepped aside is told as well, so that it does not come back to a position that is none", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const placed = Promise.withResolvers<Registration>();
  const rewound = Promise.withResolvers<void>();
  const busy = Object.assign(new RecordingSubscriber("900", "busy"), {
    placed: placed.resolve,
    rewound: rewound.resolve,
  });
  fixture.watches.subscribe(configMaps, new RecordingSubscriber("900", "steady"));
  fixture.watches.subscribe(configMaps, busy);
  (await placed.promise).stepAside(() => new Promise(() => {}));
  (await fixture.server.request(isPlainWatch)).stream();
  await rewound.promise;
  expect(busy.log).toEqual([]);
});

test("of a group the newest position is held against the server, not the one that the stream starts from", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("900", "young")];
  fixture.watches.subscribe(configMaps, old);
  fixture.watches.subscribe(configMaps, young);
  (await fixture.server.request(isPlainWatch)).stream();
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await young.saw("end 41");
  expect(young.log[0]).toBe("list rv-rewind from 900");
});

test("one that joins a running stream from far ahead of it makes the source ask whether time went back", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const [first, ahead] = [new RecordingSubscriber("5", "first"), new RecordingSubscriber("900", "ahead")];
  fixture.watches.subscribe(configMaps, first);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await first.saw("Added a 6");
  await fixture.server.request(isProbe);
  fixture.watches.subscribe(configMaps, ahead);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await ahead.saw("end 41");
  expect(ahead.log[0]).toBe("list rv-rewind from 900");
});

test("one that joins from the same position as the stream, and knows newer objects, makes the source ask as well", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const first = new RecordingSubscriber("5", "first");
  const knowing = Object.assign(new RecordingSubscriber("6", "knowing"), { newestKnown: resourceVersion("900") });
  fixture.watches.subscribe(configMaps, first);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 6)));
  await first.saw("Added a 6");
  await fixture.server.request(isProbe);
  fixture.watches.subscribe(configMaps, knowing);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await knowing.saw("end 41");
  expect(knowing.log[0]).toBe("list rv-rewind from 6");
});

test("one that joins from far ahead during the list that follows a rewind is checked once that list has ended", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const [first, late] = [new RecordingSubscriber("900", "first"), new RecordingSubscriber("901", "late")];
  fixture.watches.subscribe(configMaps, first);
  (await fixture.server.request(isPlainWatch)).stream();
  const list = (await fixture.server.request(isWatchList)).stream();
  fixture.watches.subscribe(configMaps, late);
  (await fixture.server.request(isPlainWatch, 2)).stream();
  // The second answer comes while the list is read.
  await fixture.pass(3);
  list.lines(bookmark(41, true));
  await first.saw("end 41");
  await fixture.pass(5);
  expect(late.log[0]).toBe("list rv-rewind from 901");
});

test("a group's list is no older than the newest position in it", async () => {
  await using fixture = await FaultFixture.start();
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("100", "young")];
  fixture.watches.subscribe(configMaps, old);
  fixture.watches.subscribe(configMaps, young);
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  (await fixture.server.request(isPlainWatch, 2)).status(410, "Expired");
  const list = await fixture.server.request(isWatchList);
  expect(list.query.get("resourceVersion")).toBe("100");
});

test("a list from an API server that is behind the stream is no rewind: another shows the newest state", async () => {
  await using fixture = await FaultFixture.start();
  const [steady, late] = [new RecordingSubscriber("100", "steady"), new RecordingSubscriber("5", "late")];
  fixture.watches.subscribe(configMaps, steady);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 120)));
  await steady.saw("Added a 120");
  fixture.watches.subscribe(configMaps, late);
  (await fixture.server.request(isPlainWatch, 2)).status(410, "Expired");
  const behind = await fixture.server.request(isWatchList);
  behind.stream().lines(bookmark(110, true));
  const consistent = await fixture.server.request(isWatchList, 2);
  expect([behind, consistent].map(({ query }) => query.get("resourceVersion"))).toEqual(["5", ""]);
  consistent.stream().lines(event("ADDED", configMap("a", 120)), bookmark(121, true));
  await late.saw("end 121");
  expect(late.log).toEqual([
    "list relist from 5",
    "abort",
    "list relist from 5",
    "item a 120",
    "end 121",
    "bookmark 121",
  ]);
  expect(steady.log).toEqual(["Added a 120"]);
});

/** Contradicts every list until it is notified that the cluster's state was reset to an earlier one. */
class Contradicted extends RecordingSubscriber {
  override list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver {
    return { ...super.list(reason, gapFrom), provesRewind: () => reason !== "rv-rewind" };
  }
}

test.each([
  ["WatchList", 200],
  ["LIST", 422],
])("a list that contradicts what one knows is a rewind for all who listen, by %s", async (_, status) => {
  await using fixture = await FaultFixture.start();
  const bumped = 1_000_000_000;
  /** Answers two lists in the same way: the first is abandoned. */
  const listBy = async (nth: number) => {
    if (status !== 200) return (await fixture.server.request(isList, nth)).reply(200, configMapList(bumped, []));
    return (await fixture.server.request(isWatchList, nth)).stream().lines(bookmark(bumped, true));
  };
  if (status !== 200) fixture.server.script(isWatchList, (each) => each.status(status, "Invalid"));
  const [steady, knows] = [new RecordingSubscriber("900", "steady"), new Contradicted("5", "knows")];
  fixture.watches.subscribe(configMaps, steady);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 901)));
  await steady.saw("Added a 901");
  fixture.watches.subscribe(configMaps, knows);
  (await fixture.server.request(isPlainWatch, 2)).status(410, "Expired");
  await listBy(1);
  await knows.saw("abort");
  await listBy(2);
  await Promise.all([steady.saw(`end ${bumped}`), knows.saw(`end ${bumped}`)]);
  expect(steady.log).toContain("list rv-rewind from 901");
  expect(knows.log.filter((line) => line.startsWith("list") || line === "abort")).toEqual([
    ...(status === 200 ? [] : ["list relist from 5", "abort"]),
    "list relist from 5",
    "abort",
    "list rv-rewind from 5",
  ]);
  expect(fixture.observer.states.filter(({ cause }) => cause === "rewind")).toHaveLength(1);
  expect(fixture.watches.rewindsOf({ apiVersion: "v1", kind: "ConfigMap" })).toBe(1);
});

test("one that comes to the list which follows a rewind is told of the rewind as well", async () => {
  await using fixture = await FaultFixture.start();
  const [first, second] = [new Contradicted("5", "first"), new Contradicted("6", "second")];
  fixture.server.script(
    isWatchList,
    (each) => each.stream().lines(bookmark(1_000_000_000, true)),
    (each) => each.status(500, "InternalError"),
    () => {},
  );
  fixture.watches.subscribe(configMaps, first);
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  await fixture.server.request(isWatchList, 2);
  await fixture.observer.entered("backoff");
  fixture.watches.subscribe(configMaps, second);
  (await fixture.server.request(isPlainWatch, 2)).status(410, "Expired");
  await fixture.pass(2);
  (await fixture.server.request(isWatchList, 3)).stream().lines(bookmark(1_000_000_001, true));
  (await fixture.server.request(isWatchList, 4)).stream().lines(bookmark(1_000_000_002, true));
  await Promise.all([first.saw("end 1000000002"), second.saw("end 1000000002")]);
  expect(second.log).not.toContain("end 1000000001");
  expect(second.log).toContain("list rv-rewind from 6");
});

test("a list that is older than what another has is no proof, whatever it contradicts", async () => {
  await using fixture = await FaultFixture.start();
  const [steady, knows] = [new RecordingSubscriber("100", "steady"), new Contradicted("5", "knows")];
  fixture.watches.subscribe(configMaps, steady);
  (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 120)));
  await steady.saw("Added a 120");
  fixture.watches.subscribe(configMaps, knows);
  (await fixture.server.request(isPlainWatch, 2)).status(410, "Expired");
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(110, true));
  await fixture.server.request(isWatchList, 2);
  expect(steady.log).toEqual(["Added a 120"]);
  expect(fixture.watches.rewindsOf({ apiVersion: "v1", kind: "ConfigMap" })).toBe(0);
});

test("a list that was completed since the question knows better than an answer that is older", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const [steady, fresh] = [new RecordingSubscriber("900", "steady"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, steady);
  (await fixture.server.request(isPlainWatch)).stream();
  const question = await fixture.server.request(isProbe);
  fixture.watches.subscribe(configMaps, fresh);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(901, true));
  await fresh.saw("end 901");
  question.stream().lines(bookmark(40, true));
  await fixture.pass(5);
  expect(steady.log).toEqual([]);
  expect(fresh.log.filter((line) => line.startsWith("list"))).toEqual(["list initial from nowhere"]);
});

test("a list that is read when time turns out to have gone back is given up, and its end says nothing", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const [steady, fresh] = [new RecordingSubscriber("900", "steady"), new RecordingSubscriber(undefined, "fresh")];
  fixture.watches.subscribe(configMaps, steady);
  (await fixture.server.request(isPlainWatch)).stream();
  const question = await fixture.server.request(isProbe);
  fixture.watches.subscribe(configMaps, fresh);
  const ofBefore = (await fixture.server.request(isWatchList)).stream();
  ofBefore.lines(event("ADDED", configMap("a", 890)));
  await fresh.saw("item a 890");
  question.stream().lines(bookmark(40, true));
  await fresh.saw("abort");
  ofBefore.lines(bookmark(901, true));
  await fixture.pass(1);
  (await fixture.server.request(isWatchList, 2)).stream().lines(event("ADDED", configMap("b", 39)), bookmark(41, true));
  await Promise.all([steady.saw("end 41"), fresh.saw("end 41")]);
  expect(steady.log.slice(0, 3)).toEqual(["list rv-rewind from 900", "item b 39", "end 41"]);
  expect(fresh.log.slice(0, 6)).toEqual([
    "list initial from nowhere",
    "item a 890",
    "abort",
    "list initial from nowhere",
    "item b 39",
    "end 41",
  ]);
});

test("a rewind that is found when its connection has already been replaced ends the one that replaced it", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const subscriber = new RecordingSubscriber("900");
  fixture.watches.subscribe(configMaps, subscriber);
  const first = (await fixture.server.request(isPlainWatch)).stream();
  const probe = await fixture.server.request(isProbe);
  await fixture.clock.advance(1000);
  first.end();
  (await fixture.server.request(isPlainWatch, 2)).stream();
  await fixture.observer.ended("eof");
  probe.stream().lines(bookmark(40, true));
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await subscriber.saw("end 41");
  expect(subscriber.log[0]).toBe("list rv-rewind from 900");
});

test("what the server could not say of its resourceVersions is asked again within 30 s", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(
    isListProbe,
    (each) => each.status(429, "TooManyRequests"),
    (each) => each.reply(200, configMapList(40, [])),
  );
  const subscriber = new RecordingSubscriber("900");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).stream();
  await fixture.server.request(isListProbe);
  await fixture.pass(25);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await subscriber.saw("end 41");
  expect(subscriber.log[0]).toBe("list rv-rewind from 900");
});

test("a server that has no time to say how new it is is asked again when it asks to be, and never in another way at once", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(
    isProbe,
    (each) => each.status(429, "TooManyRequests", {}, { "retry-after": "20" }),
    (each) => each.stream().lines(bookmark(40, true)),
  );
  const subscriber = new RecordingSubscriber("900");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).stream();
  await fixture.server.request(isProbe);
  await fixture.pass(19);
  expect([fixture.server.count(isProbe), fixture.server.count(isListProbe)]).toEqual([1, 0]);
  await fixture.pass(2);
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
  await subscriber.saw("end 41");
  expect(subscriber.log[0]).toBe("list rv-rewind from 900");
  expect(fixture.server.count(isListProbe)).toBe(0);
});

test.each(["is broken", "ends before its time"])(
  "after a stream that %s the source asks whether the cluster was restored meanwhile",
  async (ending) => {
    await using fixture = await FaultFixture.start();
    fixture.server.script(isListProbe, (each) => each.reply(200, configMapList(60, [])));
    const subscriber = new RecordingSubscriber("50");
    fixture.watches.subscribe(configMaps, subscriber);
    const stream = (await fixture.server.request(isPlainWatch)).stream();
    await fixture.server.request(isListProbe);
    fixture.server.script(isListProbe, (each) => each.reply(200, configMapList(40, [])));
    if (ending === "is broken") {
      stream.reset();
      await fixture.observer.entered("backoff");
      await fixture.clock.advance(800);
    } else {
      await fixture.clock.advance(2000);
      stream.end();
    }
    (await fixture.server.request(isPlainWatch, 2)).stream();
    (await fixture.server.request(isWatchList)).stream().lines(bookmark(41, true));
    await subscriber.saw("end 41");
    expect(subscriber.log[0]).toBe("list rv-rewind from 50");
    expect(fixture.server.count(isList)).toBe(0);
  },
);

test("a position in the server's future is found out even where another subscriber needs a list", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const [fresh, ahead] = [new RecordingSubscriber(undefined, "fresh"), new RecordingSubscriber("900", "ahead")];
  fixture.watches.subscribe(configMaps, fresh);
  fixture.watches.subscribe(configMaps, ahead);
  (await fixture.server.request(isPlainWatch)).stream();
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(40, true));
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(41, true));
  await Promise.all([ahead.saw("bookmark 41"), fresh.saw("bookmark 41")]);
  expect(ahead.log).toEqual(["list rv-rewind from 900", "end 41", "bookmark 41"]);
});

test("one without a position that knows of what lies in the server's future does not wait for it", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const subscriber = Object.assign(new RecordingSubscriber(), { newestKnown: resourceVersion("900") });
  fixture.watches.subscribe(configMaps, subscriber);
  const ahead = await fixture.server.request(isWatchList);
  ahead.stream();
  const anew = await fixture.server.request(isWatchList, 2);
  expect([ahead, anew].map(({ query }) => query.get("resourceVersion"))).toEqual(["900", ""]);
  anew.stream().lines(bookmark(41, true));
  await subscriber.saw("end 41");
});

test("who knows of objects without having a position hears that time went back, and who knows of none does not", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, (each) => each.stream().lines(bookmark(40, true)));
  const knows = Object.assign(new RecordingSubscriber(undefined, "knows"), { newestKnown: resourceVersion("900") });
  const begins = new RecordingSubscriber(undefined, "begins");
  for (const subscriber of [knows, begins]) fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isWatchList)).stream();
  (await fixture.server.request(isWatchList, 2)).stream().lines(bookmark(41, true));
  await Promise.all([knows.saw("end 41"), begins.saw("end 41")]);
  expect(knows.log.slice(-3)).toEqual(["list rv-rewind from nowhere", "end 41", "bookmark 41"]);
  expect(begins.log.slice(-3)).toEqual(["list initial from nowhere", "end 41", "bookmark 41"]);
});

test("a source that stops while it asks for the newest resourceVersion asks nothing more", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(isProbe, () => {});
  const asked: (string | undefined)[] = [];
  const request = fixture.transport.request.bind(fixture.transport);
  fixture.transport.request = (each) => {
    asked.push(each.query?.limit);
    return request(each);
  };
  const watch = fixture.watches.subscribe(configMaps, new RecordingSubscriber("5"));
  (await fixture.server.request(isPlainWatch)).stream();
  await fixture.server.request(isProbe);
  await watch.close();
  expect(asked.filter((limit) => limit !== undefined)).toEqual([]);
  expect(fixture.clock.timers).toBe(0);
});
