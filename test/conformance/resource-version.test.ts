import { beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace } from "../target/fixture.ts";

const newer = (left: string, right: string) => BigInt(left) > BigInt(right);
const future = "9000000000000";

describe("a resourceVersion", () => {
  let path: string;
  let first: Body;
  let second: Body;
  beforeAll(async () => {
    path = `/api/v1/namespaces/${await createNamespace()}/configmaps`;
    first = await admin.post(path, { metadata: { name: "one" } });
    second = await admin.post(path, { metadata: { name: "two" } });
  });
  const named = (list: Body) =>
    list.items.map((item) => item.metadata.name).filter((name) => name !== "kube-root-ca.crt");

  test("is a positive decimal number that grows with every write, whatever the kind", async () => {
    const secret = await admin.post(path.replace("configmaps", "secrets"), { metadata: { name: "s" } });
    expect(newer(second.metadata.resourceVersion, first.metadata.resourceVersion)).toBe(true);
    expect(newer(secret.metadata.resourceVersion, second.metadata.resourceVersion)).toBe(true);
  });

  test("stays as it is when a write changes nothing", async () => {
    const before = await admin.post(path, { metadata: { name: "same", labels: { a: "1" } }, data: { k: "v" } });
    const put = await admin.put(`${path}/same`, before);
    const patched = await admin.patch(`${path}/same`, { data: { k: "v" } });
    expect(put.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    expect(patched.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  test("unset gives a list at least as new as the last finished write", async () => {
    const written = await admin.post(path, { metadata: { name: "fresh" } });
    const list = await admin.get(path);
    expect(named(list)).toContain("fresh");
    expect(newer(written.metadata.resourceVersion, list.metadata.resourceVersion)).toBe(false);
  });

  test("0 gives some list, and ignores the limit", async () => {
    const list = await admin.get(path, { resourceVersion: "0", limit: 1 });
    expect(list.items.length).toBeGreaterThanOrEqual(2);
    expect(list.metadata.continue ?? "").toBe("");
  });

  test("with NotOlderThan gives a list at least that new", async () => {
    const written = await admin.post(path, { metadata: { name: "not-older" } });
    const list = await admin.get(path, {
      resourceVersion: written.metadata.resourceVersion,
      resourceVersionMatch: "NotOlderThan",
    });
    expect(named(list)).toContain("not-older");
    expect(newer(written.metadata.resourceVersion, list.metadata.resourceVersion)).toBe(false);
  });

  test("with Exact gives the list as it was then", async () => {
    const list = await admin.get(path, {
      resourceVersion: first.metadata.resourceVersion,
      resourceVersionMatch: "Exact",
    });
    expect(named(list)).toEqual(["one"]);
    expect(list.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("with a limit and no match is exact too", async () => {
    const list = await admin.get(path, { resourceVersion: first.metadata.resourceVersion, limit: 10 });
    expect(named(list)).toEqual(["one"]);
    expect(list.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("0 cannot be asked for exactly", async () => {
    const reply = await admin.reply("GET", path, { query: { resourceVersion: "0", resourceVersionMatch: "Exact" } });
    expect(reply.status).toBe(422);
    expect(reply.body).toMatchObject({ reason: "Invalid" });
    expect(reply.body.message).toContain("resourceVersionMatch");
  });

  test("match without a resourceVersion is refused", async () => {
    const reply = await admin.reply("GET", path, { query: { resourceVersionMatch: "NotOlderThan" } });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("resourceVersionMatch is forbidden unless resourceVersion is provided");
  });

  test("match of an unknown kind is refused", async () => {
    const reply = await admin.reply("GET", path, { query: { resourceVersion: "1", resourceVersionMatch: "Newest" } });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain('supported values: "Exact", "NotOlderThan"');
  });

  test("that is not a number is refused", async () => {
    const reply = await admin.reply("GET", path, { query: { resourceVersion: "soon" } });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain("soon");
  });

  test.concurrent("of the future gives a list 504 with a cause that says so", async () => {
    const reply = await admin.reply("GET", path, {
      query: { resourceVersion: future, resourceVersionMatch: "NotOlderThan" },
    });
    expect(reply.status).toBe(504);
    expect(reply.body).toMatchObject({
      kind: "Status",
      reason: "Timeout",
      code: 504,
      details: {
        retryAfterSeconds: 1,
        causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      },
    });
    expect(reply.body.message).toMatch(/Too large resource version: 9000000000000, current: \d+$/);
  });

  test.concurrent("of the future gives a get 504 too", async () => {
    const reply = await admin.reply("GET", `${path}/one`, { query: { resourceVersion: future } });
    expect(reply.status).toBe(504);
    expect(reply.body.details.causes[0].reason).toBe("ResourceVersionTooLarge");
  });

  test("of a get is at least the one asked for", async () => {
    const found = await admin.get(`${path}/one`, { resourceVersion: second.metadata.resourceVersion });
    expect(found.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("of a deleted object is the deletion's in the watch, newer than the object's last", async () => {
    const made = await admin.post(path, { metadata: { name: "short-lived" } });
    await admin.delete(`${path}/short-lived`);
    using watch = await admin.watch(path, { resourceVersion: made.metadata.resourceVersion });
    const event = await watch.next();
    expect(event).toMatchObject({
      type: "DELETED",
      object: { metadata: { name: "short-lived", uid: made.metadata.uid } },
    });
    expect(newer(event.object.metadata.resourceVersion, made.metadata.resourceVersion)).toBe(true);
  });
});
