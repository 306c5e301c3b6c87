import { beforeAll, describe, expect, test } from "vitest";
import { admin, createNamespace, unique } from "../target/fixture.ts";
import type { WatchEvent } from "../target/watch-reader.ts";

const brief = (event: WatchEvent) => `${event.type} ${event.object.metadata.name}`;

describe("a watch with a selector", () => {
  let path: string;
  beforeAll(async () => {
    path = `/api/v1/namespaces/${await createNamespace()}/configmaps`;
  });

  test("reports an object that leaves as DELETED, with its previous content and the resourceVersion of the change", async () => {
    const name = unique("leaves");
    const made = await admin.post(path, { metadata: { name, labels: { team: name } }, data: { v: "1" } });
    using watch = await admin.watch(path, {
      resourceVersion: made.metadata.resourceVersion,
      labelSelector: `team=${name}`,
    });
    const changed = await admin.patch(`${path}/${name}`, { metadata: { labels: { team: "other" } }, data: { v: "2" } });
    const event = await watch.next();
    expect(event).toMatchObject({
      type: "DELETED",
      object: { data: { v: "1" }, metadata: { name, labels: { team: name } } },
    });
    expect(event.object.metadata.resourceVersion).toBe(changed.metadata.resourceVersion);
  });

  test("reports an object that comes back as ADDED", async () => {
    const name = unique("returns");
    const made = await admin.post(path, { metadata: { name, labels: { team: "other" } } });
    using watch = await admin.watch(path, {
      resourceVersion: made.metadata.resourceVersion,
      labelSelector: `team=${name}`,
    });
    const changed = await admin.patch(`${path}/${name}`, { metadata: { labels: { team: name } } });
    const event = await watch.next();
    expect(event).toMatchObject({
      type: "ADDED",
      object: { metadata: { name, resourceVersion: changed.metadata.resourceVersion } },
    });
  });

  test("is silent about objects outside it, their deletion included", async () => {
    const inside = unique("inside");
    const outside = await admin.post(path, { metadata: { name: unique("outside") } });
    using watch = await admin.watch(path, {
      resourceVersion: outside.metadata.resourceVersion,
      labelSelector: `team=${inside}`,
    });
    await admin.patch(`${path}/${outside.metadata.name}`, { data: { v: "2" } });
    await admin.delete(`${path}/${outside.metadata.name}`);
    await admin.post(path, { metadata: { name: inside, labels: { team: inside } } });
    expect(brief(await watch.next())).toBe(`ADDED ${inside}`);
  });

  test("reports the true deletion of a selected object once, after a leave none", async () => {
    const name = unique("once");
    const made = await admin.post(path, { metadata: { name, labels: { team: name } } });
    await admin.patch(`${path}/${name}`, { metadata: { labels: { team: null } } });
    await admin.delete(`${path}/${name}`);
    using watch = await admin.watch(path, {
      resourceVersion: made.metadata.resourceVersion,
      labelSelector: `team=${name}`,
      timeoutSeconds: 1,
    });
    expect((await watch.untilEnd()).map(brief)).toEqual([`DELETED ${name}`]);
  });

  test("by metadata.name sees that object alone", async () => {
    const [name, other] = [unique("this"), unique("that")];
    const from = (await admin.post(path, { metadata: { name: other } })).metadata.resourceVersion;
    using watch = await admin.watch(path, { resourceVersion: from, fieldSelector: `metadata.name=${name}` });
    await admin.patch(`${path}/${other}`, { data: { v: "2" } });
    await admin.post(path, { metadata: { name } });
    expect(brief(await watch.next())).toBe(`ADDED ${name}`);
  });

  test("by a field that changes reports leaves and returns too", async () => {
    const namespace = path.split("/")[4];
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: "runner" } });
    const spec = {
      serviceAccountName: "runner",
      automountServiceAccountToken: false,
      containers: [{ name: "c", image: "i" }],
    };
    const made = await admin.post(pods, { metadata: { name: "p" }, spec });
    using watch = await admin.watch(pods, {
      resourceVersion: made.metadata.resourceVersion,
      fieldSelector: "status.phase=Running",
    });
    await admin.patch(`${pods}/p/status`, { status: { phase: "Running" } });
    await admin.patch(`${pods}/p/status`, { status: { phase: "Succeeded" } });
    expect((await watch.several(2)).map((event) => [event.type, event.object.status.phase])).toEqual([
      ["ADDED", "Running"],
      ["DELETED", "Running"],
    ]);
  });

  test("that cannot be parsed is refused before any event", async () => {
    using watch = await admin.watch(path, { labelSelector: "a in b" });
    expect(watch.status).toBe(400);
  });
});

describe("a WatchList", () => {
  const initial = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan", allowWatchBookmarks: true };
  const ending = (event: WatchEvent) =>
    event.type === "BOOKMARK" && event.object.metadata.annotations?.["k8s.io/initial-events-end"] === "true";
  let path: string;
  beforeAll(async () => {
    path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    for (const name of ["a", "b", "c"]) await admin.post(path, { metadata: { name, labels: { base: "yes" } } });
  });

  test("gives every object as ADDED, then a bookmark that marks the end, then what follows", async () => {
    using watch = await admin.watch(path, { ...initial, labelSelector: "base=yes" });
    const events = await watch.until(ending);
    expect(events.slice(0, -1).map(brief).sort()).toEqual(["ADDED a", "ADDED b", "ADDED c"]);
    await admin.patch(`${path}/b`, { metadata: { labels: { touched: "yes" } } });
    expect(brief(await watch.next())).toBe("MODIFIED b");
  });

  test("ends its initial events at a resourceVersion no older than the last finished write", async () => {
    const written = await admin.post(path, { metadata: { name: unique("written") } });
    using watch = await admin.watch(path, { ...initial });
    const end = (await watch.until(ending)).at(-1);
    expect(BigInt(end?.object.metadata.resourceVersion ?? 0)).toBeGreaterThanOrEqual(
      BigInt(written.metadata.resourceVersion),
    );
  });

  test("of nothing gives the end marker alone", async () => {
    using watch = await admin.watch(path, { ...initial, labelSelector: "base=no" });
    expect(ending(await watch.next())).toBe(true);
  });

  test("needs resourceVersionMatch NotOlderThan", async () => {
    using watch = await admin.watch(path, { sendInitialEvents: true, allowWatchBookmarks: true });
    expect(watch.status).toBe(422);
    expect(watch.refusal?.message).toContain("resourceVersionMatch");
  });

  test("cannot be asked of a list", async () => {
    const reply = await admin.reply("GET", path, { query: { ...initial } });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("sendInitialEvents");
  });
});
