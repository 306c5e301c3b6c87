import { expect, test } from "vitest";
import type { Exchange } from "../faults/api-server.ts";
import { bookmark, configMapList, event, expired, isInitial, isList, item, Scripted } from "./scripted.ts";

test("a bookmark advances the resume point, for a reconnect and for a restart", async () => {
  const scripted = await Scripted.start();
  const { runtime } = scripted;
  const stream = await scripted.initial(100, [item("a", 90)]);
  await runtime.hears("follower", 1);
  stream.lines(bookmark(200)).end();
  const resumed = await scripted.following();
  expect(resumed.query.get("resourceVersion")).toBe("200");
  scripted.newest = 300;
  resumed.stream().lines(bookmark(300));
  await runtime.sees("the bookmark", async () => (await runtime.sources("ConfigMap"))[0]?.resourceVersion === "300");
  await runtime.quiet();
  await runtime.kill();
  await runtime.open();
  expect((await scripted.following(2)).query.get("resourceVersion")).toBe("300");
  expect(runtime.told("follower")).toEqual(["Added a=1 initial"]);
});

for (const form of ["in the stream", "as the answer"] as const) {
  test(`a 410 ${form} leads to one list: each changed object once, unchanged ones never, those gone as Deleted with their last state`, async () => {
    const scripted = await Scripted.start();
    const { runtime, server } = scripted;
    const stream = await scripted.initial(100, [
      item("kept", 90),
      item("changed", 91),
      item("gone", 92),
      item("renewed", 93),
    ]);
    await runtime.hears("follower", 4);
    if (form === "in the stream") stream.lines(expired());
    else {
      stream.end();
      (await scripted.following()).status(410, "Expired");
    }
    await scripted.backedOff();
    const list = [item("kept", 90), item("changed", 150, 2), item("renewed", 151, 3, "another"), item("new", 152)];
    await scripted.initial(200, list, 2);
    await runtime.hears("follower", 9);
    await runtime.quiet();
    expect(runtime.told("follower").slice(4).toSorted()).toEqual([
      "Added new=1 synthetic (relist)",
      "Added renewed=3 synthetic (relist)",
      "Deleted gone=1 synthetic finalStateUnknown (relist)",
      "Deleted renewed=1 synthetic finalStateUnknown (relist)",
      "Modified changed=2 synthetic (relist)",
    ]);
    expect(server.count(isInitial) + server.count(isList)).toBe(2);
    expect(await runtime.metric("watchfire_watch_gone_total")).toBe(1);
  });
}

test("a slow handler keeps its object's order across chunks, and nobody else waits for it", async () => {
  const work = `
    if (event.resourceVersion === "111") await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", name: "gate", namespace: "team-a" });
    ctx.log.info("done", { rv: event.resourceVersion });`;
  const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: ["team-a"] }];
  const scripted = await Scripted.start(work, { permissions });
  const { runtime, server } = scripted;
  const isGate = ({ path }: Exchange) => path.endsWith("/configmaps/gate");
  server.script(isGate, () => {});
  const stream = await scripted.initial(100, []);
  stream.lines(event("ADDED", item("a", 111)), event("ADDED", item("b", 112)), event("MODIFIED", item("a", 113)));
  const gate = await server.request(isGate);
  stream.lines(event("MODIFIED", item("a", 114)));
  const done = () =>
    runtime.lines.filter(({ msg }) => msg === "done").map(({ fields }) => (fields as { rv: string }).rv);
  await runtime.sees("b is done", () => done().includes("112"));
  await runtime.sees("a@114 is received", async () => (await runtime.function("follower"))?.queued === 2);
  expect(done()).toEqual(["112"]);
  gate.reply(200, JSON.stringify(item("gate", 1)));
  await runtime.sees("a is done", () => done().length === 4);
  expect(done()).toEqual(["112", "111", "113", "114"]);
});

test("an object of over 1 MB arrives whole, however its line is cut, in the middle of a character too", async () => {
  const work = `
    const { v } = event.object.data;
    ctx.log.info("size", { length: v.length, separator: v.codePointAt(v.length - 4) });`;
  const scripted = await Scripted.start(work);
  const stream = await scripted.initial(100, []);
  const value = `${"é🔥".repeat(200_000)}\u2028end`;
  const line = Buffer.from(`${JSON.stringify(event("ADDED", item("big", 111, value)))}\n`);
  expect(line.length).toBeGreaterThan(1_000_000);
  const pieces = 7;
  // An odd length, so that cuts fall inside characters of two and four bytes.
  const size = Math.ceil(line.length / pieces) | 1;
  for (let at = 0; at < line.length; at += size) stream.send(line.subarray(at, at + size));
  const { runtime } = scripted;
  await runtime.sees("it was handled", () => runtime.lines.some(({ msg }) => msg === "size"));
  expect(runtime.lines.find(({ msg }) => msg === "size")?.fields).toEqual({ length: value.length, separator: 0x2028 });
});

test("a line of an unknown type is neither skipped nor fatal: what follows it is asked for again", async () => {
  const scripted = await Scripted.start();
  const { runtime } = scripted;
  const stream = await scripted.initial(100, []);
  stream.lines(event("ADDED", item("a", 111)), event("EXPLODED", item("b", 112)), event("ADDED", item("c", 113)));
  await scripted.backedOff();
  const resumed = await scripted.following();
  expect(resumed.query.get("resourceVersion")).toBe("111");
  resumed.stream().lines(event("ADDED", item("b", 112)), event("ADDED", item("c", 113)));
  await runtime.hears("follower", 3);
  expect(runtime.told("follower").toSorted()).toEqual(["Added a=1", "Added b=1", "Added c=1"]);
  expect(await runtime.metric("watchfire_watch_poison_lines_total")).toBe(1);
});

test("a 429 on the list after a 410 is waited out, and nothing is taken for deleted meanwhile", async () => {
  const scripted = await Scripted.start();
  const { runtime, server } = scripted;
  const stream = await scripted.initial(100, [item("a", 90), item("b", 91)]);
  await runtime.hears("follower", 2);
  stream.lines(expired());
  await scripted.backedOff();
  (await server.request(isInitial, 2)).status(429, "TooManyRequests", {}, { "retry-after": "20" });
  await runtime.sees("it says so", async () => (await runtime.function("follower"))?.message?.includes("429") === true);
  expect(server.count(isInitial)).toBe(2);
  await runtime.sees("it waits as long as it was told to", () => runtime.clock.cutShort(20_000, 20_001) > 0);
  await scripted.initial(200, [item("a", 90)], 3);
  await runtime.hears("follower", 3);
  expect(runtime.told("follower").at(-1)).toBe("Deleted b=1 synthetic finalStateUnknown (relist)");
  expect(server.count(isList)).toBe(0);
});

test("a list of several pages, one of them refused at first, finds deletions as a whole or not at all", async () => {
  const scripted = await Scripted.start();
  const { runtime, server } = scripted;
  const stream = await scripted.initial(100, [item("a", 90), item("b", 91), item("c", 92)]);
  await runtime.hears("follower", 3);
  stream.lines(expired());
  await scripted.backedOff();
  (await server.request(isInitial, 2)).status(422, "Invalid");
  (await server.request(isList)).reply(200, configMapList(200, [item("a", 90)], { continue: "next" }));
  (await server.request(isList, 2)).status(500, "InternalError");
  await runtime.sees("it backs off", async () => (await runtime.sources("ConfigMap"))[0]?.state === "backoff");
  expect(runtime.told("follower")).toHaveLength(3);
  await scripted.backedOff();
  (await server.request(isList, 3)).reply(200, configMapList(210, [item("a", 90)], { continue: "next" }));
  (await server.request(isList, 4)).reply(200, configMapList(210, [item("c", 92)]));
  await scripted.following();
  await runtime.hears("follower", 4);
  expect(runtime.told("follower").slice(3)).toEqual(["Deleted b=1 synthetic finalStateUnknown (relist)"]);
});

test("an event that comes twice is told once", async () => {
  const scripted = await Scripted.start();
  const { runtime } = scripted;
  const stream = await scripted.initial(100, []);
  const first = event("ADDED", item("a", 111));
  stream.lines(first, first, event("MODIFIED", item("a", 112, 2)), first, event("ADDED", item("b", 113)));
  await runtime.hears("follower", 3);
  await runtime.quiet();
  expect(runtime.told("follower").toSorted()).toEqual(["Added a=1", "Added b=1", "Modified a=2"]);
});

test("a cluster put back to between the saved position and the newest event is found out as well", async () => {
  const scripted = await Scripted.start();
  const { runtime } = scripted;
  const stream = await scripted.initial(100, [item("a", 90), item("b", 91)]);
  stream.lines(event("MODIFIED", item("a", 150, 2)));
  await runtime.hears("follower", 3);
  await runtime.quiet();
  await runtime.kill();
  scripted.newest = 120;
  await runtime.open();
  (await scripted.following()).stream();
  await scripted.initial(121, [item("a", 90), item("b", 91)], 2);
  await runtime.hears("follower", 4);
  expect(runtime.told("follower").at(-1)).toBe("Modified a=1 synthetic (rv-rewind)");
});
