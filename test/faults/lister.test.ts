import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, configMapList, type Exchange, event, statusObject } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isPlainWatch, isWatchList } from "./fixture.ts";

const listsOf = ({ log }: RecordingSubscriber) => log.filter((line) => line.startsWith("list"));
const refusesWatchList = (fixture: FaultFixture) =>
  fixture.server.script(isWatchList, (each) => each.status(422, "Invalid"));

/** Answers watches with the events after their checkpoint, and with 410 if that is before `begins`. */
function follow(fixture: FaultFixture, history: readonly object[], begins = 0): void {
  const versionOf = (change: object) => Number(JSON.stringify(change).match(/"resourceVersion":"(\d+)"/)?.[1]);
  fixture.server.script(isPlainWatch, (exchange) => {
    const from = Number(exchange.query.get("resourceVersion"));
    const message = `too old resource version: ${from} (${begins})`;
    if (from < begins) exchange.stream().lines(event("ERROR", statusObject(410, "Expired", { message })));
    else {
      const rest = history.filter((change) => versionOf(change) > from);
      const stream = exchange.stream();
      if (rest.length > 0) stream.lines(...rest);
    }
  });
}

test("whoever comes in the middle of a list of pages costs nobody the history after it", async () => {
  await using fixture = await FaultFixture.start();
  refusesWatchList(fixture);
  const [first, late] = [new RecordingSubscriber(undefined, "first"), new RecordingSubscriber(undefined, "late")];
  fixture.watches.subscribe(configMaps, first);
  const page = await fixture.server.request(isList);
  fixture.watches.subscribe(configMaps, late);
  await fixture.pass(1);
  const changes = [11, 12].map((version) => event("MODIFIED", configMap("a", version)));
  const brief = [event("ADDED", configMap("b", 13)), event("DELETED", configMap("b", 14))];
  follow(fixture, [...changes, ...brief, event("ADDED", configMap("z", 15))]);
  fixture.server.script(isList, (each) => each.reply(200, configMapList(15, [configMap("a", 12), configMap("z", 15)])));
  page.reply(200, configMapList(10, [configMap("a", 5)]));
  await first.saw("Added z 15");
  await fixture.pass(1);
  await late.saw("end 15");
  expect(first.log.slice(-7)).toEqual([
    "item a 5",
    "end 10",
    "Modified a 11",
    "Modified a 12",
    "Added b 13",
    "Deleted b 14",
    "Added z 15",
  ]);
  expect(late.log.slice(-3)).toEqual(["item a 12", "item z 15", "end 15"]);
});

test("one that leaves in the middle of its first list makes nobody list who streams", async () => {
  await using fixture = await FaultFixture.start();
  const steady = new RecordingSubscriber("5", "steady");
  const [leaver, late] = [new RecordingSubscriber(undefined, "leaver"), new RecordingSubscriber(undefined, "late")];
  fixture.watches.subscribe(configMaps, steady);
  const stream = (await fixture.server.request(isPlainWatch)).stream().lines(event("ADDED", configMap("a", 7)));
  await steady.saw("Added a 7");
  const place = fixture.watches.subscribe(configMaps, leaver);
  (await fixture.server.request(isWatchList)).stream().lines(event("ADDED", configMap("a", 7)));
  await leaver.saw("item a 7");
  fixture.watches.subscribe(configMaps, late);
  await place.close();
  const list = (await fixture.server.request(isWatchList, 2)).stream();
  stream.lines(...[9, 10, 12].map((version) => event("MODIFIED", configMap("a", version))));
  list.lines(event("ADDED", configMap("a", 12)), bookmark(12, true));
  await Promise.all([steady.saw("Modified a 12"), late.saw("end 12")]);
  stream.lines(event("MODIFIED", configMap("a", 13)));
  await Promise.all([steady.saw("Modified a 13"), late.saw("Modified a 13")]);
  expect(steady.log).toEqual(["Added a 7", ...[9, 10, 12, 13].map((version) => `Modified a ${version}`)]);
  expect(leaver.log).toEqual(["list initial from nowhere", "item a 7", "abort"]);
});

test("one whose position is good does not list with those whose list is due", async () => {
  await using fixture = await FaultFixture.start();
  const [old, fresh] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("20", "fresh")];
  const changes = [21, 22].map((version) => event("MODIFIED", configMap("a", version)));
  follow(fixture, changes, 18);
  const listed = (each: Exchange) => each.stream().lines(event("ADDED", configMap("a", 22)), bookmark(22, true));
  fixture.server.script(isWatchList, (each) => each.status(500, "InternalError"), listed);
  fixture.watches.subscribe(configMaps, old);
  await fixture.observer.entered("backoff");
  fixture.watches.subscribe(configMaps, fresh);
  await Promise.all([fresh.saw("Modified a 22"), fixture.pass(5)]);
  await old.saw("end 22");
  expect(fresh.log).toEqual(["Modified a 21", "Modified a 22"]);
});

test("what a stream could not read is no reason to list for one who stands beyond it", async () => {
  await using fixture = await FaultFixture.start();
  const [stuck, ahead] = [new RecordingSubscriber("5", "stuck"), new RecordingSubscriber("8", "ahead")];
  fixture.server.script(isPlainWatch, (exchange) => {
    const beyond = Number(exchange.query.get("resourceVersion")) >= 7;
    if (beyond) exchange.stream().lines(event("MODIFIED", configMap("a", 9)));
    else exchange.stream().send("{no JSON\n");
  });
  fixture.watches.subscribe(configMaps, stuck);
  fixture.watches.subscribe(configMaps, ahead);
  const list = fixture.server.request(isWatchList);
  await fixture.pass(10);
  (await list).stream().lines(event("ADDED", configMap("a", 9)), bookmark(9, true));
  await Promise.all([stuck.saw("end 9"), ahead.saw("Modified a 9")]);
  expect([listsOf(stuck), ahead.log]).toEqual([["list relist from 5"], ["Modified a 9"]]);
});

test("one who wants a second opinion of a list keeps nobody else from the changes after it", async () => {
  await using fixture = await FaultFixture.start();
  const [doubter, other] = [new RecordingSubscriber(undefined, "doubter"), new RecordingSubscriber(undefined, "other")];
  doubter.outcomes.push("held");
  fixture.watches.subscribe(configMaps, doubter);
  fixture.watches.subscribe(configMaps, other);
  const list = (await fixture.server.request(isWatchList)).stream().lines(bookmark(10, true));
  list.lines(event("ADDED", configMap("a", 11)));
  await other.saw("Added a 11");
  expect(doubter.log).toEqual(["list initial from nowhere", "end 10 held"]);
  await fixture.clock.advance(30_000);
  const second = (await fixture.server.request(isWatchList, 2)).stream();
  second.lines(event("ADDED", configMap("a", 11)), bookmark(11, true));
  await doubter.saw("end 11");
  list.lines(event("MODIFIED", configMap("a", 12)));
  await Promise.all([doubter.saw("Modified a 12"), other.saw("Modified a 12")]);
});

test.each<[string, (fixture: FaultFixture) => void]>([
  ["initial events", () => {}],
  ["pages", refusesWatchList],
])("a list by %s that is answered 410 is asked for at once without a resourceVersion", async (_how, prepare) => {
  await using fixture = await FaultFixture.start();
  prepare(fixture);
  const isRead = (each: Exchange) => isList(each) || isWatchList(each);
  fixture.server.script(
    (each) => isRead(each) && each.query.get("resourceVersion") === "5",
    (each) => each.status(410, "Expired"),
  );
  prepare(fixture);
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  const anew = await fixture.server.request((each) => isRead(each) && !each.query.get("resourceVersion"));
  if (isList(anew)) anew.reply(200, configMapList(40, []));
  else anew.stream().lines(bookmark(40, true));
  await subscriber.saw("end 40");
  expect(listsOf(subscriber).at(-1)).toBe("list relist from 5");
  expect(fixture.observer.states.map(({ to }) => to)).not.toContain("backoff");
});

test("a list may be older than a position that somebody came with while it was read", async () => {
  await using fixture = await FaultFixture.start();
  const [old, ahead] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("100", "ahead")];
  fixture.watches.subscribe(configMaps, old);
  (await fixture.server.request(isPlainWatch)).status(410, "Expired");
  const list = (await fixture.server.request(isWatchList)).stream();
  fixture.watches.subscribe(configMaps, ahead);
  list.lines(event("ADDED", configMap("a", 40)), bookmark(90, true));
  await old.saw("end 90");
  follow(fixture, [event("ADDED", configMap("b", 101))]);
  list.lines(event("MODIFIED", configMap("a", 95)), event("ADDED", configMap("b", 101)));
  for (const request of fixture.server.requests.filter(isPlainWatch).slice(1)) request.socket.destroy();
  await fixture.pass(2);
  await Promise.all([old.saw("Added b 101"), ahead.saw("Added b 101")]);
  expect(old.log.slice(-3)).toEqual(["bookmark 90", "Modified a 95", "Added b 101"]);
  expect([listsOf(old), listsOf(ahead)]).toEqual([["list relist from 5"], []]);
});

/** A list of two pages, the second of which is delayed. Its checkpoint has expired when it arrives. */
async function slowList(fixture: FaultFixture) {
  refusesWatchList(fixture);
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(configMaps, subscriber);
  (await fixture.server.request(isList)).reply(200, configMapList(10, [configMap("a", 5)], { continue: "t" }));
  const beside = (await fixture.server.request(isPlainWatch)).stream();
  const second = await fixture.server.request(isList, 2);
  return { subscriber, beside, finish: () => second.reply(200, configMapList(10, [configMap("b", 6)])) };
}

test("a list that takes longer than the server keeps history is followed all the same", async () => {
  await using fixture = await FaultFixture.start();
  const { subscriber, beside, finish } = await slowList(fixture);
  follow(fixture, [], 18);
  beside.lines(event("MODIFIED", configMap("a", 11)), event("DELETED", configMap("b", 12)));
  await fixture.pass(1);
  finish();
  await subscriber.saw("Deleted b 12");
  beside.lines(event("ADDED", configMap("c", 30)));
  await subscriber.saw("Added c 30");
  expect(subscriber.log.slice(-6)).toEqual([
    "item a 5",
    "item b 6",
    "end 10",
    "Modified a 11",
    "Deleted b 12",
    "Added c 30",
  ]);
  expect(listsOf(subscriber).slice(1)).toEqual(["list initial from nowhere"]);
});

test("beside a list no more is held than fits: then it is followed from where it ends", async () => {
  await using fixture = await FaultFixture.start();
  const { subscriber, beside, finish } = await slowList(fixture);
  const many = Array.from({ length: 10_001 }, (_, index) => event("MODIFIED", configMap("a", 11 + index)));
  beside.lines(...many);
  await fixture.pass(1);
  follow(fixture, many);
  finish();
  await subscriber.saw("Modified a 10011");
  expect(subscriber.log.filter((line) => line.startsWith("Modified"))).toHaveLength(many.length);
});

test("a watch beside a list that breaks off costs nothing", async () => {
  await using fixture = await FaultFixture.start();
  const { subscriber, beside, finish } = await slowList(fixture);
  const changes = [event("MODIFIED", configMap("a", 11)), event("MODIFIED", configMap("a", 12))];
  beside.lines(...changes.slice(0, 1)).reset();
  await fixture.pass(1);
  follow(fixture, changes);
  finish();
  await subscriber.saw("Modified a 12");
  expect(subscriber.log.slice(-3)).toEqual(["end 10", "Modified a 11", "Modified a 12"]);
});
