import { brotliCompressSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { ObjectIdentity } from "../../runtime/informer/fanout/source-spec.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, configMapList, type Exchange, event } from "./api-server.ts";
import { configMaps, FaultFixture, isList, isPlainWatch, isWatch, isWatchList } from "./fixture.ts";

async function resuming() {
  const fixture = await FaultFixture.start();
  const subscriber = new RecordingSubscriber("5");
  fixture.watches.subscribe(configMaps, subscriber);
  return { fixture, subscriber, request: await fixture.server.request(isPlainWatch) };
}

const page = "<html><body>Please sign in</body></html>";

test.each<[string, (request: Exchange) => void]>([
  ["200 with a page", (request) => request.reply(200, page, { "content-type": "text/html" })],
  ["200 with a page that says it is JSON", (request) => request.reply(200, `\n${page}`)],
  ["200 with JSON that is no object", (request) => request.reply(200, '["sign in"]')],
  ["a redirect to a login", (request) => request.reply(302, "", { location: "/login", "content-type": "text/html" })],
  ["503 with a page", (request) => request.reply(503, page, { "content-type": "text/html" })],
])("%s is an error with backoff: nothing of it is read, nothing is deleted", async (_what, answer) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  answer(request);
  await fixture.observer.entered("backoff");
  await fixture.clock.advance(800);
  const resumed = await fixture.server.request(isPlainWatch, 2);
  expect(resumed.query.get("resourceVersion")).toBe("5");
  expect(fixture.server.requests.map((each) => each.path)).not.toContain("/login");
  expect(subscriber.log).toEqual([]);
});

const added = (name: string, rv: number) => event("ADDED", configMap(name, rv));
const [one, two] = [added("a", 6), added("b", 7)].map((each) => JSON.stringify(each));
const pretty = JSON.stringify(added("a", 6), null, 2);

test.each<[string, string[]]>([
  ["blank lines, as a proxy sends them for a heartbeat", ["\n", "\r\n", "  \n", `${one}\n`, "\n", `${two}\n`]],
  ["lines that end as Windows ends them", [`${one}\r\n${two}\r\n`]],
  ["several events on one line", [`${one} \t${two}\n`]],
  ["events with nothing between them, nor after them", [`${one}${two}`]],
  ["an event over several lines", [`${pretty}\n${two}\n`]],
  ["an event over several lines, cut in the middle of one", [pretty.slice(0, 50), `${pretty.slice(50)}\n${two}\n`]],
  ["an event without a line break, in two pieces", [(one ?? "").slice(0, 40), (one ?? "").slice(40), ` ${two} `]],
])("a watch with %s brings every event", async (_what, pieces) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const stream = request.stream();
  for (const piece of pieces) stream.send(piece);
  await subscriber.saw("Added b 7");
  expect(subscriber.log).toEqual(["Added a 6", "Added b 7"]);
  expect(fixture.observer.causes).toEqual([]);
});

test.each([
  ["text/plain", { "content-type": "text/plain; charset=utf-8" }],
  ["JSON with a parameter", { "content-type": "application/json;stream=watch" }],
  ["a page", { "content-type": "text/html" }],
  ["nothing", { "content-type": "" }],
])(
  "a list and a watch of which a proxy says that they are %s are read, since their bodies are JSON",
  async (_, headers) => {
    await using fixture = await FaultFixture.start();
    const subscriber = new RecordingSubscriber();
    fixture.watches.subscribe(configMaps, subscriber);
    (await fixture.server.request(isWatchList)).status(422, "Invalid");
    (await fixture.server.request(isList)).reply(200, ` ${configMapList(5, [configMap("a", 5)])}`, headers);
    (await fixture.server.request(isPlainWatch)).stream(headers).lines(added("b", 6));
    await subscriber.saw("Added b 6");
    expect(subscriber.log.slice(-4)).toEqual(["list initial from nowhere", "item a 5", "end 5", "Added b 6"]);
    expect(fixture.observer.causes).toEqual(["http_422"]);
  },
);

test("a watch of no known type that has nothing to say yet runs after a second, when a page would have come", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.stream({ "content-type": "text/plain" });
  await fixture.clock.advance(1000);
  await fixture.observer.entered("watching");
});

test("what a page says is shown, as far as a person needs it", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.reply(200, page + "x".repeat(10_000), { "content-type": "text/html" });
  const { message = "" } = await fixture.observer.entered("backoff");
  expect(message).toContain("Please sign in");
  expect(fixture.observer.states.map(({ to }) => to)).not.toContain("watching");
  expect(message.length).toBeLessThan(400);
});

test.each([
  ["is not JSON", '{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}'],
  ["has an unknown type", JSON.stringify({ type: "RENAMED", object: configMap("a", 7) })],
  ["has no object", JSON.stringify({ type: "ADDED" })],
  ["is a bookmark without an object", JSON.stringify({ type: "BOOKMARK" })],
  ["has no resourceVersion", JSON.stringify({ type: "ADDED", object: configMap("a", "") })],
])("a line that %s is never skipped: twice it is read again, then everything is listed", async (_what, line) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const poisoned = (each: Exchange) =>
    each
      .stream()
      .send(`${line}\n`)
      .lines(event("ADDED", configMap("b", 8)));
  fixture.server.script(isPlainWatch, poisoned);
  poisoned(request);
  for (let read = 1; read <= 3; read++) {
    await fixture.observer.ended("poison", read);
    expect(fixture.server.count(isWatchList)).toBe(0);
    await fixture.clock.advance(800 * 2 ** (read - 1));
  }
  const relist = await fixture.server.request(isWatchList);
  relist.stream().lines(event("ADDED", configMap("a", 7)), bookmark(9, true));
  await subscriber.saw("bookmark 9");
  expect(fixture.server.requests.filter(isPlainWatch).map((each) => each.query.get("resourceVersion"))).toEqual([
    "5",
    "5",
    "5",
  ]);
  expect(subscriber.log).toEqual(["list relist from 5", "item a 7", "end 9", "bookmark 9"]);
  expect(fixture.observer.poison).toHaveLength(3);
  expect(fixture.observer.poison.join()).not.toContain("revision");
});

test("an object of another kind than the source's stops it, and says which", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  const table = { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: { resourceVersion: "6" } };
  request.stream().lines(event("ADDED", table));
  const { message } = await fixture.observer.entered("degraded");
  expect(message).toBe("the server sends meta.k8s.io/v1 Table instead of v1 ConfigMap");
  await fixture.clock.advance(299_000);
  expect(fixture.server.count(isWatch)).toBe(1);
});

const empty = (of: object) => JSON.stringify({ ...of, metadata: { resourceVersion: "9" }, items: [] });

test.each<[string, (request: Exchange) => void]>([
  ["Pods", (request) => request.reply(200, empty({ kind: "PodList", apiVersion: "v1" }))],
  ["a Table", (request) => request.reply(200, empty({ kind: "Table", apiVersion: "meta.k8s.io/v1", rows: [] }))],
  ["a Status", (request) => request.reply(200, empty({ kind: "Status", apiVersion: "v1" }))],
  ["another group", (request) => request.reply(200, empty({ kind: "ConfigMapList", apiVersion: "example.com/v1" }))],
])("an empty list of %s where ConfigMaps were asked for deletes nothing, and is named", async (_what, answer) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.status(410, "Expired");
  (await fixture.server.request(isWatchList)).status(422, "Invalid");
  answer(await fixture.server.request(isList));
  const { message } = await fixture.observer.entered("degraded");
  expect(message).toMatch(/^the server answers \S+ \S+ to a list of v1 ConfigMap$/);
  expect(subscriber.log.slice(-2)).toEqual(["list relist from 5", "abort"]);
});

test("initial events that end with a bookmark of another kind delete nothing, and are named", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.status(410, "Expired");
  (await fixture.server.request(isWatchList)).stream().lines(bookmark(9, true, "Pod"));
  const { message } = await fixture.observer.entered("degraded");
  expect(message).toBe("the server sends a bookmark of Pod instead of ConfigMap");
  expect(subscriber.log).toEqual(["list relist from 5", "abort"]);
});

test("a custom resource's lists may have the kind that its definition gives them", () => {
  const resource = { version: "v1", kind: "Mouse", plural: "mice", namespaced: true, verbs: [], subresources: [] };
  const custom = new ObjectIdentity({ ...resource, group: "example.com" });
  const builtIn = new ObjectIdentity({ ...resource, group: "apps" });
  expect(custom.refusesList("example.com/v1", "Mice")).toBe(false);
  expect(custom.refusesList("example.com/v1", "Mouse")).toBe(true);
  expect(builtIn.refusesList("apps/v1", "Mice")).toBe(true);
});

test.each<[string, (object: object) => object]>([
  [
    "in the metadata form",
    (object) => ({ ...object, kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", data: undefined }),
  ],
  ["whole", (object) => object],
])(
  "a source of metadata asks for no more, and hands no more on where a server sends objects %s",
  async (_what, sent) => {
    await using fixture = await FaultFixture.start();
    const subscriber = new RecordingSubscriber();
    fixture.watches.subscribe({ ...configMaps, representation: "metadata" }, subscriber);
    const initial = await fixture.server.request(isWatchList);
    expect(initial.headers.get("accept")).toBe(
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    );
    initial.status(422, "Invalid");
    const list = await fixture.server.request(isList);
    expect(list.headers.get("accept")).toBe(
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    );
    list.reply(200, configMapList(7, [sent(configMap("a", 6))]));
    const watch = await fixture.server.request(isPlainWatch);
    watch.stream().lines(event("MODIFIED", sent(configMap("a", 8))));
    await subscriber.saw("Modified a 8");
    expect(subscriber.changes.map(({ body }) => JSON.parse(body.toString()))).toEqual(
      ["6", "8"].map((resourceVersion) => ({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "a", namespace: "team-a", uid: "uid-a", resourceVersion },
      })),
    );
  },
);

test("a kind that cannot be watched is refused with a code", async () => {
  await using fixture = await FaultFixture.start();
  fixture.watches.subscribe({ apiVersion: "v1", kind: "Binding" }, new RecordingSubscriber());
  const { cause, message } = await fixture.observer.entered("degraded");
  expect(cause).toBe("WF_KUBE_NOT_WATCHABLE");
  expect(message).toContain("v1 Binding has no verb list and no verb watch");
});

test("a kind without namespaces is not watched where some are named, since all of it would be told", async () => {
  await using fixture = await FaultFixture.start();
  fixture.watches.subscribe({ apiVersion: "v1", kind: "Node", namespace: "team-a" }, new RecordingSubscriber());
  const { cause, message } = await fixture.observer.entered("degraded");
  expect(cause).toBe("WF_KUBE_CLUSTER_SCOPED");
  expect(message).toContain("v1 Node is not in namespaces, so not in team-a");
  expect(fixture.server.count(({ path }) => path.includes("nodes"))).toBe(0);
});

test("an object of 1.5 MB arrives whole", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const big = { ...configMap("big", 6), data: { text: 'é"\n'.repeat(375_000) } };
  request.stream().send(`${JSON.stringify(event("ADDED", big))}\n`);
  await subscriber.saw("Added big 6");
  expect(JSON.parse(subscriber.changes[0]?.body.toString() ?? "")).toEqual(big);
});

test("a line of 17 MiB degrades its source instead of filling the heap, and is not skipped", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const stream = request.stream().send('{"type":"ADDED","object":{"data":{"text":"');
  for (let mib = 0; mib < 17; mib++) stream.send("x".repeat(1024 * 1024));
  const { cause } = await fixture.observer.entered("degraded");
  expect(cause).toBe("oversize");
  await fixture.clock.advance(300_000);
  const again = await fixture.server.request(isPlainWatch, 2);
  expect(again.query.get("resourceVersion")).toBe("5");
  expect(subscriber.log).toEqual([]);
});

test.each<[string, (text: string) => Buffer]>([
  ["gzip", (text) => gzipSync(text)],
  ["br", (text) => brotliCompressSync(text)],
])("a stream that a proxy codes as %s, though none was asked for, is read", async (coding, encode) => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  const line = (name: string, rv: number) => `${JSON.stringify(event("ADDED", configMap(name, rv)))}\n`;
  const stream = request.stream({ "content-encoding": coding });
  stream.send(encode(line("a", 6)));
  await subscriber.saw("Added a 6");
  if (coding !== "gzip") return;
  // An API server flushes each event as a separate gzip member.
  stream.send(encode(line("b", 7)));
  await subscriber.saw("Added b 7");
});

test("a content coding that nobody knows is refused aloud", async () => {
  const { fixture, request } = await resuming();
  await using _ = fixture;
  request.stream({ "content-encoding": "zebra" }).send("stripes");
  const { cause, message } = await fixture.observer.entered("backoff");
  expect(cause).toBe("protocol");
  expect(message).toContain("zebra");
});

test("managed fields never reach a subscriber", async () => {
  const { fixture, subscriber, request } = await resuming();
  await using _ = fixture;
  request.stream().lines(event("ADDED", configMap("a", 6, { managedFields: [{ manager: "kubectl" }] })));
  await subscriber.saw("Added a 6");
  expect(JSON.parse(subscriber.changes[0]?.body.toString() ?? "")).toEqual(configMap("a", 6));
});
