// Tests that need a separate cluster, because they compact its history or restart its API server.
import { beforeAll, expect, inject, test } from "vitest";
import type { Body, Client } from "../target/client.ts";
import { describeHistory, startOwn } from "../target/fixture.ts";

const path = "/api/v1/namespaces/default/secrets";
const expired = { kind: "Status", status: "Failure", reason: "Expired", code: 410 };

let own: Awaited<ReturnType<typeof startOwn>>;
beforeAll(async () => {
  if (inject("startable")) own = await startOwn();
});

describeHistory("after a restart of the API server", () => {
  let admin: Client;
  let made: Body;
  let live: Awaited<ReturnType<Client["watch"]>>;
  let versionBefore: bigint;
  beforeAll(async () => {
    ({ admin } = own);
    made = await admin.post(path, { metadata: { name: "kept" }, stringData: { v: "1" } });
    versionBefore = BigInt((await admin.patch(`${path}/kept`, { stringData: { v: "2" } })).metadata.resourceVersion);
    live = await admin.watch(path, { resourceVersion: String(versionBefore) });
    await own.restart();
  });

  test("the watches that were open have ended", async () => {
    expect(["clean", "broken"]).toContain(await live.ended());
  });

  test("objects are as they were, uid and resourceVersion included", async () => {
    expect((await admin.get(`${path}/kept`)).metadata).toMatchObject({
      uid: made.metadata.uid,
      resourceVersion: String(versionBefore),
    });
  });

  test("resourceVersions go on from where they were", async () => {
    const next = await admin.post(path, { metadata: { name: "later" } });
    expect(BigInt(next.metadata.resourceVersion)).toBeGreaterThan(versionBefore);
  });
});

describeHistory("after a compaction", () => {
  const path = "/api/v1/namespaces/compacted/secrets";
  let admin: Client;
  let old: string;
  let token: string | undefined;
  let listed: string;
  beforeAll(async () => {
    ({ admin } = own);
    await admin.post("/api/v1/namespaces", { metadata: { name: "compacted" } });
    old = (await admin.post(path, { metadata: { name: "a" } })).metadata.resourceVersion;
    for (const name of ["b", "c"]) await admin.post(path, { metadata: { name } });
    const page = await admin.get(path, { limit: 1 });
    token = page.metadata.continue;
    listed = page.metadata.resourceVersion;
    await admin.patch(`${path}/b`, { stringData: { v: "2" } });
    await admin.delete(`${path}/c`);
    await own.compact();
  });

  test("a watch from before gets one ERROR event of 410 Expired, and its stream ends", async () => {
    using watch = await admin.watch(path, { resourceVersion: old });
    expect(watch.status).toBe(200);
    const events = await watch.untilEnd();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ type: "ERROR", object: expired });
    expect(events[0]?.object.message).toContain("too old resource version");
  });

  test("a continue token from before gets 410 with a token that goes on from here", async () => {
    const reply = await admin.reply("GET", path, { query: { limit: 1, continue: token } });
    expect(reply.status).toBe(410);
    expect(reply.body).toMatchObject(expired);
    const rest = await admin.get(path, { limit: 10, continue: reply.body.metadata.continue });
    expect(rest.items.map((item) => item.metadata.name)).toEqual(["b"]);
    expect(rest.metadata.resourceVersion).not.toBe(listed);
  });

  test("an exact list from before gets 410", async () => {
    const reply = await admin.reply("GET", path, { query: { resourceVersion: old, resourceVersionMatch: "Exact" } });
    expect(reply.status).toBe(410);
    expect(reply.body).toMatchObject(expired);
  });

  test("a list not older than before is served", async () => {
    const list = await admin.get(path, { resourceVersion: old, resourceVersionMatch: "NotOlderThan" });
    expect(list.items.map((item) => item.metadata.name)).toEqual(["a", "b"]);
  });

  test("a WatchList not older than before is served", async () => {
    using watch = await admin.watch(path, {
      resourceVersion: old,
      resourceVersionMatch: "NotOlderThan",
      sendInitialEvents: true,
      allowWatchBookmarks: true,
    });
    const events = await watch.until((event) => event.type === "BOOKMARK");
    expect(events.map((event) => event.object.metadata.name)).toEqual(["a", "b", undefined]);
  });

  test("a fresh list and a watch from it work", async () => {
    const list = await admin.get(path);
    using watch = await admin.watch(path, { resourceVersion: list.metadata.resourceVersion });
    await admin.post(path, { metadata: { name: "new" } });
    expect((await watch.next()).object.metadata.name).toBe("new");
  });
});
