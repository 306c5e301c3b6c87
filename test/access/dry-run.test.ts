import { describe, expect, it } from "vitest";
import type { DryRunWrite } from "../../runtime/access/dry-run.ts";
import { accessTo, errorOf, everything, type Script, status } from "./api-server.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
const metadata = { name: "settings", namespace: "demo", uid: "u1", resourceVersion: "7", labels: { a: "1", b: "2" } };
const there = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" } };
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace: "demo" }, data: {} };

const hasIt: Script = () => ({ body: there });
const hasNone: Script = () => undefined;

async function dryRun(script: Script, egress: { host: string; ports: number[]; network: "Public" | "Private" }[] = []) {
  const unsent: DryRunWrite[] = [];
  const access = await accessTo({
    script,
    manifest: { permissions: [everything], egress },
    unsent: (each) => void unsent.push(each),
  });
  return { ...access, unsent };
}

/** Each write that a handler can ask for. */
const writes: [string, object][] = [
  ["kube.create", { object }],
  ["kube.update", { object }],
  ["kube.patch", { ref, patch: { data: { b: "2" } } }],
  ["kube.patch", { ref, patch: {}, type: "strategic" }],
  ["kube.patch", { ref, patch: [{ op: "remove", path: "/data" }], type: "json" }],
  ["kube.apply", { object }],
  ["kube.delete", { ref }],
  ["kube.updateStatus", { object }],
  ["kube.patchStatus", { ref, patch: {} }],
  ["kube.restart", { ref: { ...ref, apiVersion: "apps/v1", kind: "Deployment" } }],
  ["kube.evict", { ref: { ...ref, kind: "Pod" } }],
  ["kube.subresource", { ref: { ...ref, kind: "Pod" }, name: "resize", body: {} }],
  ["events.emit", { object: ref, type: "Normal", reason: "Said", message: "so" }],
];

describe("in a dry run", () => {
  it.each(writes)("%s is shown, and nothing but reads is sent: %j", async (operation, args) => {
    for (const script of [hasIt, hasNone]) {
      const { call, received, unsent } = await dryRun(script);
      await call(operation, args);
      expect(received.filter(({ method }) => method !== "GET")).toEqual([]);
      expect(unsent).toMatchObject([{ function: "f", to: expect.stringContaining("/namespaces/demo/") }]);
    }
  });

  it("whole numbers are shown and answered as they are, beyond 2^53 as well", async () => {
    const text = JSON.stringify(there).replace('"data":{', '"id":9007199254740993,"data":{');
    const { call, unsent } = await dryRun(() => ({ body: text }));
    const reply = await call("kube.patch", `{"ref":${JSON.stringify(ref)},"patch":{"next":9007199254740995}}`);
    expect(unsent[0]?.body).toBe('{"next":9007199254740995}');
    expect(reply.ok && reply.json).toMatch(/"id":9007199254740993,.*"next":9007199254740995/);
  });

  it("a merge patch is answered as it would be", async () => {
    const { call } = await dryRun(hasIt);
    const patch = { metadata: { labels: { a: null, c: "3" } }, data: { a: "2" } };
    const reply = await call("kube.patch", { ref, patch });
    expect(reply.ok && JSON.parse(reply.json)).toEqual({
      ...there,
      metadata: { ...metadata, labels: { b: "2", c: "3" } },
      data: { a: "2" },
    });
  });

  it("a write to a subresource reads the object that it is of", async () => {
    const { call, received } = await dryRun(hasIt);
    const pod = { ...ref, kind: "Pod" };
    const evicted = await call("kube.evict", { ref: pod });
    expect(evicted.ok && JSON.parse(evicted.json)).toMatchObject({ kind: "Status", status: "Success" });
    const node = { apiVersion: "v1", kind: "Node", name: "n1" };
    for (const of of [pod, node]) await call("kube.subresource", { ref: of, name: "resize", body: {} });
    await call("kube.patchStatus", { ref: pod, patch: {} });
    expect(received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /api/v1/namespaces/demo/pods/settings",
      "GET /api/v1/namespaces/demo/pods/settings",
      "GET /api/v1/nodes/n1",
      "GET /api/v1/namespaces/demo/pods/settings/status",
    ]);
  });

  it("what cannot be is refused as the API server would", async () => {
    const taken = await dryRun(hasIt);
    expect(errorOf(await taken.call("kube.create", { object })).type).toBe("AlreadyExistsError");
    const stale = { ...object, metadata: { ...object.metadata, resourceVersion: "6" } };
    expect(errorOf(await taken.call("kube.update", { object: stale })).type).toBe("ConflictError");
    const empty = await dryRun(hasNone);
    for (const [operation, args] of writes.filter(([name]) =>
      /patch|update|delete|restart|evict|subresource/i.test(name),
    )) {
      expect(errorOf(await empty.call(operation, args)).type).toBe("NotFoundError");
    }
    const refused = await dryRun(() => status(403, "Forbidden"));
    expect(errorOf(await refused.call("kube.delete", { ref })).type).toBe("ForbiddenError");
  });

  it("a Secret's values are not shown", async () => {
    const { call, unsent } = await dryRun(hasNone);
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: ref,
      stringData: { token: "hunter2" },
      data: { k: "aHVudGVyMg==" },
    };
    await call("kube.create", { object: secret });
    expect(unsent[0]?.body).toContain('"stringData":{"token":"[redacted]"}');
    expect(unsent[0]?.body).not.toMatch(/hunter2|aHVudGVyMg/);
  });

  it("a fetch that could change something is shown, and where it may not go is refused still", async () => {
    const { call, unsent } = await dryRun(hasNone, [{ host: "hooks.example.com", ports: [443], network: "Public" }]);
    const post = (url: string) => ({ url, method: "POST", headers: [], body: Buffer.from("hi").toString("base64") });
    const reply = await call("fetch", post("https://hooks.example.com/a"));
    expect(reply.ok && JSON.parse(reply.json)).toMatchObject({ status: 200, body: "" });
    expect(unsent).toEqual([{ function: "f", method: "POST", to: "https://hooks.example.com/a", body: "hi" }]);
    expect(errorOf(await call("fetch", post("https://elsewhere.example.com/"))).message).toContain("egress");
  });
});
