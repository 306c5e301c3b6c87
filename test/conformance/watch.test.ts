import { beforeAll, describe, expect, test } from "vitest";
import { admin, createNamespace, unique } from "../target/fixture.ts";
import type { WatchEvent } from "../target/watch-reader.ts";

const brief = (event: WatchEvent) => `${event.type} ${event.object.metadata.name}`;
const metadataOnly = { accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1" };

describe("a watch", () => {
  let path: string;
  beforeAll(async () => {
    path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
  });
  /** Creates an object and returns its resourceVersion, from which to watch. */
  const start = async () => (await admin.post(path, { metadata: { name: unique("start") } })).metadata.resourceVersion;

  test("from a resourceVersion gives exactly what followed it, in order, each with the object as it was then", async () => {
    const from = await start();
    const one = unique("one");
    const two = unique("two");
    const label = unique("followed");
    const labels = { test: label };
    await admin.post(path, { metadata: { name: one, labels }, stringData: { v: "1" } });
    await admin.post(path, { metadata: { name: two, labels } });
    await admin.patch(`${path}/${one}`, { stringData: { v: "2" } });
    await admin.delete(`${path}/${two}`);
    using watch = await admin.watch(path, { resourceVersion: from, labelSelector: `test=${label}`, timeoutSeconds: 1 });
    const events = await watch.untilEnd();
    expect(events.map(brief)).toEqual([`ADDED ${one}`, `ADDED ${two}`, `MODIFIED ${one}`, `DELETED ${two}`]);
    expect(events[0]?.object).toMatchObject({ kind: "Secret", apiVersion: "v1", data: { v: btoa("1") } });
    expect(events[2]?.object.data).toEqual({ v: btoa("2") });
    const versions = events.map((event) => BigInt(event.object.metadata.resourceVersion));
    expect(versions).toEqual([...versions].sort((a, b) => (a < b ? -1 : 1)));
  });

  test("is live: a change arrives while the stream is open", async () => {
    using watch = await admin.watch(path, { resourceVersion: await start() });
    const name = unique("live");
    await admin.post(path, { metadata: { name } });
    expect(brief(await watch.next())).toBe(`ADDED ${name}`);
    await admin.delete(`${path}/${name}`);
    expect(brief(await watch.next())).toBe(`DELETED ${name}`);
  });

  test("resumes at the last event without a gap and without a repetition", async () => {
    const from = await start();
    const all = [unique("r"), unique("r"), unique("r"), unique("r")];
    for (const name of all) await admin.post(path, { metadata: { name, labels: { resume: "yes" } } });
    const selector = { labelSelector: "resume=yes" };
    using firstWatch = await admin.watch(path, { resourceVersion: from, ...selector });
    const seen = await firstWatch.several(2);
    using secondWatch = await admin.watch(path, {
      resourceVersion: seen[1]?.object.metadata.resourceVersion,
      ...selector,
    });
    seen.push(...(await secondWatch.several(2)));
    expect(seen.map((event) => event.object.metadata.name)).toEqual(all);
  });

  test("sends nothing for a write that changes nothing", async () => {
    const name = unique("same");
    const made = await admin.post(path, { metadata: { name } });
    using watch = await admin.watch(path, {
      resourceVersion: made.metadata.resourceVersion,
      fieldSelector: `metadata.name=${name}`,
    });
    await admin.put(`${path}/${name}`, made);
    await admin.delete(`${path}/${name}`);
    expect(brief(await watch.next())).toBe(`DELETED ${name}`);
  });

  test("without a resourceVersion begins with what is there, then goes on", async () => {
    const path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    await admin.post(path, { metadata: { name: "a" } });
    await admin.post(path, { metadata: { name: "b" } });
    using watch = await admin.watch(path, {});
    expect((await watch.several(2)).map(brief).sort()).toEqual(["ADDED a", "ADDED b"]);
    await admin.patch(`${path}/a`, { metadata: { labels: { x: "y" } } });
    expect(brief(await watch.next())).toBe("MODIFIED a");
  });

  test("from resourceVersion 0 begins with what is there, too", async () => {
    const path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    await admin.post(path, { metadata: { name: "a" } });
    using watch = await admin.watch(path, { resourceVersion: "0" });
    expect(brief(await watch.next())).toBe("ADDED a");
  });

  // Watches that last their whole timeout, concurrently.
  describe.concurrent("with a timeout", () => {
    test("ends clean when it is over", async () => {
      using watch = await admin.watch(path, { resourceVersion: await start(), timeoutSeconds: 1 });
      expect(watch.status).toBe(200);
      expect(await watch.ended()).toBe("clean");
    });

    test("below zero is over at once", async () => {
      using watch = await admin.watch(path, { resourceVersion: await start(), timeoutSeconds: -1 });
      expect(watch.status).toBe(200);
      expect(await watch.ended()).toBe("clean");
    });

    test("gets a bookmark before it that passes the changes its selector hides", async () => {
      const query = { labelSelector: "never=set", allowWatchBookmarks: true, timeoutSeconds: 4 };
      using watch = await admin.watch(path, { resourceVersion: await start(), ...query });
      const hidden = await start();
      const events = await watch.untilEnd();
      expect(new Set(events.map((event) => event.type))).toEqual(new Set(["BOOKMARK"]));
      const { object } = events.at(-1) ?? {};
      expect(object).toMatchObject({ kind: "Secret", apiVersion: "v1" });
      expect(object?.metadata.name).toBeUndefined();
      expect(BigInt(object?.metadata.resourceVersion ?? 0)).toBeGreaterThanOrEqual(BigInt(hidden));
    });

    test("gets no bookmark unless it asks", async () => {
      using watch = await admin.watch(path, {
        resourceVersion: await start(),
        labelSelector: "never=set",
        timeoutSeconds: 3,
      });
      expect(await watch.untilEnd()).toEqual([]);
    });

    test("from a future resourceVersion is accepted and stays silent", async () => {
      using watch = await admin.watch(path, {
        resourceVersion: "9000000000000",
        allowWatchBookmarks: true,
        timeoutSeconds: 3,
      });
      expect(watch.status).toBe(200);
      await start();
      expect(await watch.untilEnd()).toEqual([]);
    });
  });

  test("from a resourceVersion that is not a number is refused", async () => {
    using watch = await admin.watch(path, { resourceVersion: "soon" });
    expect(watch.status).toBeGreaterThanOrEqual(400);
    expect(watch.refusal).toMatchObject({ kind: "Status", status: "Failure", code: watch.status });
  });

  test("of one namespace sees no other", async () => {
    const other = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    using watch = await admin.watch(path, { resourceVersion: await start(), labelSelector: "border=yes" });
    await admin.post(other, { metadata: { name: "theirs", labels: { border: "yes" } } });
    const ours = unique("ours");
    await admin.post(path, { metadata: { name: ours, labels: { border: "yes" } } });
    expect(brief(await watch.next())).toBe(`ADDED ${ours}`);
  });

  test("of all namespaces sees each", async () => {
    const other = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    const label = unique("everywhere");
    using watch = await admin.watch("/api/v1/secrets", {
      resourceVersion: await start(),
      labelSelector: `at=${label}`,
    });
    await admin.post(other, { metadata: { name: "theirs", labels: { at: label } } });
    await admin.post(path, { metadata: { name: label, labels: { at: label } } });
    expect((await watch.several(2)).map(brief)).toEqual(["ADDED theirs", `ADDED ${label}`]);
  });

  test("of metadata alone carries PartialObjectMetadata", async () => {
    using watch = await admin.watch(path, { resourceVersion: await start() }, metadataOnly);
    const name = unique("meta");
    await admin.post(path, { metadata: { name }, stringData: { secret: "hidden" } });
    const { object } = await watch.next();
    expect(object).toMatchObject({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name } });
    expect(object.data).toBeUndefined();
  });

  test("of a Table carries rows, with the columns in the first alone", async () => {
    using watch = await admin.watch(
      path,
      { resourceVersion: await start() },
      { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" },
    );
    await admin.post(path, { metadata: { name: unique("row") } });
    await admin.post(path, { metadata: { name: unique("row") } });
    const [first, second] = await watch.several(2);
    expect(first?.object).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" });
    expect(first?.object.columnDefinitions[0]).toMatchObject({ name: "Name" });
    expect(second?.object.columnDefinitions ?? []).toEqual([]);
    expect(second?.object.rows).toHaveLength(1);
  });

  test("by the old /watch path and by a name still works", async () => {
    const name = unique("old");
    const from = await start();
    await admin.post(path, { metadata: { name } });
    using watch = await admin.watch(`${path.replace("/api/v1", "/api/v1/watch")}/${name}`, { resourceVersion: from });
    expect(brief(await watch.next())).toBe(`ADDED ${name}`);
  });

  test("serves many at once, each with every event in the same order", async () => {
    const from = await start();
    const watches = await Promise.all(
      Array.from({ length: 8 }, () => admin.watch(path, { resourceVersion: from, labelSelector: "many=yes" })),
    );
    const all = Array.from({ length: 20 }, () => unique("many"));
    await Promise.all(all.map((name) => admin.post(path, { metadata: { name, labels: { many: "yes" } } })));
    const views = await Promise.all(watches.map(async (watch) => (await watch.several(20)).map(brief)));
    for (const watch of watches) watch[Symbol.dispose]();
    expect(new Set(views.map((view) => view.join())).size).toBe(1);
    expect(new Set(views[0]).size).toBe(20);
  });

  test("gives text of any script back whole, line separators included", async () => {
    const text = "a\u2028b\u2029c\r\n\u0000é😀";
    const configMaps = path.replace("secrets", "configmaps");
    const name = unique("text");
    const from = await start();
    await admin.post(configMaps, { metadata: { name }, data: { text } });
    using watch = await admin.watch(configMaps, { resourceVersion: from, fieldSelector: `metadata.name=${name}` });
    expect((await watch.next()).object.data).toEqual({ text });
  });
});
