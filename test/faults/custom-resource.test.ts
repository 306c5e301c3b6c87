import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, type Exchange, event } from "./api-server.ts";
import { FaultFixture } from "./fixture.ts";

const spec = { apiVersion: "my.domain/v1", kind: "MyApp" };
const groupVersion = "/apis/my.domain/v1";
const collection = `${groupVersion}/myapps`;
const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/myapps.my.domain";
const resources = JSON.stringify({
  kind: "APIResourceList",
  groupVersion: "my.domain/v1",
  resources: [{ name: "myapps", namespaced: true, kind: "MyApp", verbs: ["get", "list", "watch"] }],
});
const at = (path: string) => (exchange: Exchange) => exchange.path === path;
const isProbe = (exchange: Exchange) => exchange.query.get("fieldSelector") === "metadata.name=-";
const isWatch = (exchange: Exchange) => exchange.path === collection && exchange.isWatch && !isProbe(exchange);
const app = (name: string, rv: number, uid = `uid-${name}`) => ({
  apiVersion: spec.apiVersion,
  kind: spec.kind,
  metadata: { name, namespace: "team-a", uid, resourceVersion: String(rv) },
});

class Newcomer extends RecordingSubscriber {
  kindIsMissing(): void {
    this.note("kind is missing");
  }
}

async function following() {
  const fixture = await FaultFixture.start();
  const { server } = fixture;
  server.script(at(groupVersion), (each) => each.reply(200, resources));
  server.script(
    (each) => each.path === collection && !isWatch(each),
    (each) => each.status(403, "Forbidden"),
  );
  server.script(isWatch, (each) => each.stream().lines(event("ADDED", app("a", 3)), bookmark(5, true, spec.kind)));
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(spec, subscriber);
  await subscriber.saw("bookmark 5");
  subscriber.forget();
  return { fixture, server, subscriber };
}

async function remove(fixture: FaultFixture): Promise<void> {
  const { server } = fixture;
  server.script(at(groupVersion), (each) => each.reply(404, "404 page not found", { "content-type": "text/plain" }));
  server.script(at(collection), (each) => each.reply(404, "404 page not found", { "content-type": "text/plain" }));
  server.requests.filter(isWatch).at(-1)?.socket.end("0\r\n\r\n");
  await fixture.observer.entered("missing");
}

test("a kind that is installed later is listed within 5 s of being served", async () => {
  await using fixture = await FaultFixture.start(() => 0.99);
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(spec, subscriber);
  await fixture.observer.entered("missing");
  await fixture.pass(30);
  fixture.server.script(at(groupVersion), (each) => each.reply(200, resources));
  fixture.server.script(isWatch, (each) => each.stream().lines(bookmark(5, true, spec.kind)));
  await fixture.pass(5);
  expect(fixture.server.count(isWatch)).toBe(1);
  await subscriber.saw("end 5");
});

test("who comes while its kind is not served is told so before it lists, also between two looks", async () => {
  await using fixture = await FaultFixture.start();
  fixture.watches.subscribe(spec, new RecordingSubscriber());
  await fixture.observer.entered("missing");
  const newcomer = new Newcomer();
  fixture.watches.subscribe(spec, newcomer);
  fixture.server.script(at(groupVersion), (each) => each.reply(200, resources));
  fixture.server.script(isWatch, (each) => each.stream().lines(bookmark(5, true, spec.kind)));
  await fixture.pass(5);
  await newcomer.saw("end 5");
  expect(newcomer.log.slice(0, 2)).toEqual(["kind is missing", "list initial from nowhere"]);
});

test("a proxy that answers in the API server's place neither removes a kind nor makes it new", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  server.script(
    () => true,
    (each) => each.reply(404, "404 page not found", { "content-type": "text/plain" }),
  );
  server.requests.filter(isWatch).at(-1)?.socket.end("0\r\n\r\n");
  await fixture.observer.entered("missing");
  await fixture.pass(5);
  const { cause, message } = await fixture.observer.entered("backoff");
  expect([cause, message]).toEqual(["protocol", expect.stringContaining("/apis answered 404: 404 page not found")]);
  const newcomer = new Newcomer();
  fixture.watches.subscribe(spec, newcomer);
  await fixture.pass(180);
  expect([subscriber.log, newcomer.log]).toEqual([[], []]);
  server.script(at("/apis"), (each) => each.status(406, "NotAcceptable"));
  server.script(at(groupVersion), (each) => each.reply(200, resources));
  server.script(isWatch, (each) => each.stream().lines(event("ADDED", app("b", 6)), bookmark(7, true, spec.kind)));
  await fixture.pass(40);
  await subscriber.saw("Added b 6");
});

test("a definition that stays away for a minute takes its objects with it", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  await remove(fixture);
  await fixture.pass(50);
  expect(subscriber.log).toEqual([]);
  await fixture.pass(40);
  expect(server.count(at(definition))).toBeGreaterThanOrEqual(2);
  expect(subscriber.log).toEqual(["list crd-removed from 5", "end 5"]);
  await fixture.pass(200);
  expect(subscriber.log).toHaveLength(2);
});

test("a removal that one doubts is told it again, also where somebody else has left before", async () => {
  const { fixture, subscriber } = await following();
  await using _ = fixture;
  const other = new RecordingSubscriber("5", "other");
  await fixture.watches.subscribe(spec, other).close();
  subscriber.outcomes.push("held");
  await remove(fixture);
  await fixture.pass(90);
  expect(subscriber.log).toEqual(["list crd-removed from 5", "end 5 held"]);
  await fixture.pass(60);
  expect(subscriber.log.slice(2)).toEqual(["list crd-removed from 5", "end 5"]);
});

test("a removal is told to those alone who know of an object, and what the others find later was there at first", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  await remove(fixture);
  const newcomer = new RecordingSubscriber(undefined, "newcomer");
  fixture.watches.subscribe(spec, newcomer);
  await fixture.pass(90);
  expect([subscriber.log.length, newcomer.log]).toEqual([2, []]);
  server.script(at(groupVersion), (each) => each.reply(200, resources));
  server.script(isWatch, (each) => each.stream().lines(event("ADDED", app("a", 80)), bookmark(81, true, spec.kind)));
  await fixture.pass(10);
  await newcomer.saw("end 81");
  expect(newcomer.log[0]).toBe("list initial from nowhere");
});

test("a definition that comes back in time keeps its objects", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  await remove(fixture);
  await fixture.pass(30);
  server.script(at(groupVersion), (each) => each.reply(200, resources));
  server.script(at(collection), (each) => (isWatch(each) ? each.stream() : each.status(403, "Forbidden")));
  await fixture.pass(10);
  const resumed = await server.request((each) => isWatch(each) && each.query.get("resourceVersion") === "5");
  expect(resumed.query.has("sendInitialEvents")).toBe(false);
  expect(subscriber.log).toEqual([]);
});

test("a definition that one look in between cannot tell of has to stay away for a minute from then on", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  const gone = (each: Exchange) => each.status(404, "NotFound");
  server.script(at(definition), gone, (each) => each.status(500, "InternalError"), gone);
  await remove(fixture);
  await fixture.pass(90);
  expect(subscriber.log).toEqual([]);
  await fixture.pass(40);
  expect(subscriber.log).toEqual(["list crd-removed from 5", "end 5"]);
});

test("a version that is no longer served deletes nothing while the definition is there", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  server.script(at(definition), (each) => each.reply(200, JSON.stringify({ kind: "CustomResourceDefinition" })));
  await remove(fixture);
  await fixture.pass(200);
  expect(subscriber.log).toEqual([]);
});

test("after its definition was removed and made anew, everything is listed", async () => {
  const { fixture, server, subscriber } = await following();
  await using _ = fixture;
  await remove(fixture);
  await fixture.pass(90);
  server.script(at(groupVersion), (each) => each.reply(200, resources));
  server.script(isWatch, (each) =>
    each.stream().lines(event("ADDED", app("a", 80, "uid-new")), bookmark(81, true, spec.kind)),
  );
  await fixture.pass(10);
  await subscriber.saw("bookmark 81");
  expect(subscriber.log.slice(2)).toEqual(["list relist from 5", "item a 80", "end 81", "bookmark 81"]);
});

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const names = (...all: string[]) => JSON.stringify({ items: all.map((name) => ({ metadata: { name } })) });

test("a definition that was removed while nobody watched takes its objects with it a minute after the start", async () => {
  await using fixture = await FaultFixture.start();
  const { server } = fixture;
  const sibling = JSON.stringify({ spec: { names: { kind: "MyOther" } } });
  server.script(at(definitions), (each) => each.reply(200, names("myothers.my.domain", "x.other.domain")));
  server.script(at(`${definitions}/myothers.my.domain`), (each) => each.reply(200, sibling));
  const subscriber = new RecordingSubscriber("40");
  fixture.watches.subscribe(spec, subscriber);
  await fixture.observer.entered("missing");
  await fixture.pass(50);
  expect(subscriber.log).toEqual([]);
  await fixture.pass(40);
  expect(subscriber.log).toEqual(["list crd-removed from 40", "end 40"]);
});

test.each<[string, (server: FaultFixture["server"]) => void]>([
  [
    "is still there",
    (server) => {
      server.script(at(definitions), (each) => each.reply(200, names("myapps.my.domain")));
      server.script(at(definition), (each) => each.reply(200, JSON.stringify({ spec: { names: { kind: "MyApp" } } })));
    },
  ],
  ["may not be read", (server) => server.script(at(definitions), (each) => each.status(403, "Forbidden"))],
])("a kind that is missing at the start loses nothing while its definition %s", async (_what, script) => {
  await using fixture = await FaultFixture.start();
  script(fixture.server);
  const subscriber = new RecordingSubscriber("40");
  fixture.watches.subscribe(spec, subscriber);
  await fixture.observer.entered("missing");
  await fixture.pass(150);
  expect(subscriber.log).toEqual([]);
});

test("a kind that was never there takes nothing from a subscriber that never listed", async () => {
  await using fixture = await FaultFixture.start();
  fixture.server.script(at(definitions), (each) => each.reply(200, names()));
  const subscriber = new RecordingSubscriber();
  fixture.watches.subscribe(spec, subscriber);
  await fixture.observer.entered("missing");
  await fixture.pass(150);
  expect(subscriber.log).toEqual([]);
});
