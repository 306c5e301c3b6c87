import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { accessTo, apiServer, errorOf, everything, status } from "./api-server.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
const pod = { apiVersion: "v1", kind: "Pod", name: "web-0", namespace: "demo" };
const web = { apiVersion: "apps/v1", kind: "Deployment", name: "web", namespace: "demo" };
const object = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "demo" },
  data: { a: "1" },
};
const granted = { permissions: [everything] };

describe("what a handler asks for", () => {
  it.each([
    ["kube.get", { ref }, "GET", "/api/v1/namespaces/demo/configmaps/settings"],
    ["kube.list", { apiVersion: "v1", kind: "ConfigMap" }, "GET", "/api/v1/configmaps"],
    [
      "kube.list",
      { apiVersion: "v1", kind: "ConfigMap", namespace: "demo" },
      "GET",
      "/api/v1/namespaces/demo/configmaps",
    ],
    ["kube.create", { object }, "POST", "/api/v1/namespaces/demo/configmaps"],
    ["kube.update", { object }, "PUT", "/api/v1/namespaces/demo/configmaps/settings"],
    ["kube.patch", { ref, patch: {} }, "PATCH", "/api/v1/namespaces/demo/configmaps/settings"],
    ["kube.apply", { object }, "PATCH", "/api/v1/namespaces/demo/configmaps/settings"],
    ["kube.delete", { ref }, "DELETE", "/api/v1/namespaces/demo/configmaps/settings"],
    ["kube.updateStatus", { object }, "PUT", "/api/v1/namespaces/demo/configmaps/settings/status"],
    ["kube.patchStatus", { ref: web, patch: {} }, "PATCH", "/apis/apps/v1/namespaces/demo/deployments/web/status"],
    ["kube.getScale", { ref: web }, "GET", "/apis/apps/v1/namespaces/demo/deployments/web/scale"],
    ["kube.setScale", { ref: web, replicas: 3 }, "PATCH", "/apis/apps/v1/namespaces/demo/deployments/web/scale"],
    ["kube.restart", { ref: web }, "PATCH", "/apis/apps/v1/namespaces/demo/deployments/web"],
    ["kube.evict", { ref: pod }, "POST", "/api/v1/namespaces/demo/pods/web-0/eviction"],
    ["kube.subresource", { ref: pod, name: "resize", body: {} }, "PATCH", "/api/v1/namespaces/demo/pods/web-0/resize"],
    [
      "kube.subresource",
      { ref: pod, name: "binding", body: {}, verb: "create" },
      "POST",
      "/api/v1/namespaces/demo/pods/web-0/binding",
    ],
    [
      "kube.subresource",
      { ref: web, name: "status", body: {}, verb: "update" },
      "PUT",
      "/apis/apps/v1/namespaces/demo/deployments/web/status",
    ],
    ["kube.get", { ref: { apiVersion: "v1", kind: "Node", name: "n1" } }, "GET", "/api/v1/nodes/n1"],
  ])("%s becomes one request (%j)", async (operation, args, method, path) => {
    const { call, received } = await accessTo({ manifest: granted });
    expect(await call(operation, args)).toEqual({ ok: true, json: "{}" });
    expect(received.map((request) => [request.method, request.path])).toEqual([[method, path]]);
  });

  it.each([
    ["kube.create", "object"],
    ["kube.update", "object"],
    ["kube.apply", "object"],
    ["kube.updateStatus", "object"],
    ["kube.patch", "patch"],
    ["kube.patchStatus", "patch"],
  ])("%s sends whole numbers as the handler wrote them", async (operation, field) => {
    const { call, received } = await accessTo({ manifest: granted });
    const body = `${JSON.stringify(object).slice(0, -1)},"spec":{"id":9007199254740993,"ids":[-9223372036854775808]}}`;
    await call(operation, `{${field === "patch" ? `"ref":${JSON.stringify(ref)},` : ""}"${field}":${body}}`);
    expect(received.map(({ text }) => text)).toEqual([body]);
  });

  it("keeps whole numbers in a body to which the parent adds the object's uid", async () => {
    const permissions = [{ ...everything, verbs: ["get", "update"] }];
    const { call, received } = await accessTo({
      manifest: { permissions },
      script: () => ({ body: { metadata: { uid: "u1" } } }),
    });
    await call("kube.update", `{"object":${JSON.stringify(object).slice(0, -1)},"spec":9007199254740993}}`);
    expect(received.at(-1)?.text).toMatch(/"spec":9007199254740993,?.*/);
    expect(received.at(-1)?.body).toMatchObject({ metadata: { uid: "u1" } });
  });

  it("is written in the function's own name", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    await call("kube.create", { object });
    await call("kube.update", { object });
    await call("kube.patch", { ref, patch: {} });
    await call("kube.apply", { object, force: true });
    await call("kube.setScale", { ref: web, replicas: 0 });
    expect(received.map(({ query }) => query.get("fieldManager"))).toEqual(Array(5).fill("watchfire:f"));
    expect(received[3]?.query.get("force")).toBe("true");
  });

  it("names each kind of patch by its content type, merge where nothing is said", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    await call("kube.patch", { ref, patch: { data: null } });
    await call("kube.patch", { ref, patch: {}, type: "strategic" });
    await call("kube.patch", { ref, patch: [{ op: "remove", path: "/data" }], type: "json" });
    await call("kube.apply", { object });
    expect(received.map(({ headers }) => headers["content-type"])).toEqual([
      "application/merge-patch+json",
      "application/strategic-merge-patch+json",
      "application/json-patch+json",
      "application/apply-patch+yaml",
    ]);
    expect(received[0]?.body).toEqual({ data: null });
  });

  it("restarts by the annotation of kubectl, to the second of the runtime's clock", async () => {
    const clock = { ...systemClock, now: () => Date.UTC(2026, 10, 27, 9, 30, 15, 999) };
    const { call, received } = await accessTo({ manifest: granted, clock });
    await call("kube.restart", { ref: web });
    expect(received[0]?.headers["content-type"]).toBe("application/merge-patch+json");
    const annotations = { "kubectl.kubernetes.io/restartedAt": "2026-11-27T09:30:15Z" };
    expect(received[0]?.body).toEqual({ spec: { template: { metadata: { annotations } } } });
  });

  it("evicts with the time and the preconditions that the handler gives", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    const options = { gracePeriodSeconds: 0, preconditions: { uid: "u" } };
    await call("kube.evict", { ref: pod, ...options });
    expect(received[0]?.body).toEqual({
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "web-0", namespace: "demo" },
      deleteOptions: options,
    });
  });

  it("sends a subresource its body as it is, and a patch of the type that the handler gives", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    const body = { spec: { containers: [{ name: "a", resources: { limits: { cpu: "2" } } }] } };
    await call("kube.subresource", { ref: pod, name: "resize", body, type: "strategic" });
    await call("kube.subresource", { ref: pod, name: "resize", body });
    await call("kube.subresource", { ref: pod, name: "resize", body, verb: "update" });
    expect(received.map(({ headers, body: sent }) => [headers["content-type"], sent])).toEqual([
      ["application/strategic-merge-patch+json", body],
      ["application/merge-patch+json", body],
      ["application/json", body],
    ]);
  });

  it("sends selectors, limit and continue with a list", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    const query = { labelSelector: "a in (b,c)", fieldSelector: "metadata.name!=x", limit: 10, continue: "to/ken=" };
    await call("kube.list", { apiVersion: "v1", kind: "ConfigMap", ...query });
    expect(Object.fromEntries(received[0]?.query ?? [])).toEqual({ ...query, limit: "10" });
  });

  it("sends preconditions and propagation with a delete", async () => {
    const { call, received } = await accessTo({ manifest: granted });
    await call("kube.delete", { ref, propagationPolicy: "Foreground", preconditions: { uid: "u" } });
    expect(received[0]?.body).toMatchObject({
      kind: "DeleteOptions",
      propagationPolicy: "Foreground",
      preconditions: { uid: "u" },
    });
  });

  it("gets the answer's text as it came", async () => {
    const text = '{ "z":1.0,  "a":12345678901234567890 }';
    const { call } = await accessTo({ manifest: granted, script: () => ({ body: text }) });
    expect(await call("kube.get", { ref })).toEqual({ ok: true, json: text });
  });

  it("is refused where the answer is larger than the limit", async () => {
    const script = () => ({ body: JSON.stringify({ data: "x".repeat(5000) }) });
    const { call } = await accessTo({ manifest: granted, script, limits: { answerBytes: 4096 } });
    expect(errorOf(await call("kube.get", { ref }))).toMatchObject({ type: "KubeError", reason: "ResponseTooLarge" });
  });
});

describe("an error of the API server", () => {
  it.each([
    [404, "NotFound", "NotFoundError"],
    [409, "AlreadyExists", "AlreadyExistsError"],
    [409, "Conflict", "ConflictError"],
    [422, "Invalid", "InvalidError"],
    [400, "BadRequest", "InvalidError"],
    [403, "Forbidden", "ForbiddenError"],
    [429, "TooManyRequests", "TooManyRequestsError"],
    [504, "Timeout", "TimeoutError"],
    [500, "InternalError", "KubeError"],
    [410, "Expired", "KubeError"],
  ])("%i %s is a %3$s", async (code, reason, type) => {
    const { call, records } = await accessTo({ manifest: granted, script: () => status(code, reason) });
    expect(errorOf(await call("kube.get", { ref }))).toMatchObject({
      type,
      status: code,
      reason,
      message: `said ${reason}`,
    });
    expect(records).toMatchObject([{ function: "f", operation: "kube.get", result: type }]);
  });

  it("says who refused, and which rule the runtime's account lacks", async () => {
    const { call } = await accessTo({ manifest: granted, script: () => status(403, "Forbidden") });
    expect(errorOf(await call("kube.setScale", { ref: web, replicas: 1 })).details).toEqual({
      refusedBy: "apiserver",
      missingRule:
        "- { apiGroups: [apps], resources: [deployments/scale], verbs: [patch], resourceNames: [web], namespaces: [demo] }",
    });
  });

  it("says how long a throttled handler should wait", async () => {
    const script = () => ({ ...status(429, "TooManyRequests"), headers: { "retry-after": "7" } });
    const { call } = await accessTo({ manifest: granted, script });
    expect(errorOf(await call("kube.get", { ref })).details).toEqual({ retryAfterMs: 7000 });
  });

  it("of a path that has gone is no NotFoundError either, and the kind is looked up anew", async () => {
    const { call, asked } = await accessTo({
      manifest: granted,
      script: () => ({ status: 404, body: "404 page not found" }),
    });
    for (let n = 0; n < 2; n++) {
      expect(errorOf(await call("kube.get", { ref }))).toMatchObject({ type: "NotServedError", reason: "NotServed" });
    }
    expect(asked.filter((path) => path === "/api/v1").length).toBe(2);
    // A kind without the subresource answers in the same way, and handlers ask for that.
    expect(errorOf(await call("kube.getScale", { ref })).type).toBe("NotFoundError");
  });

  it("of a kind that is not served is no NotFoundError, so that nobody tidies up after it", async () => {
    const { call } = await accessTo({ manifest: granted });
    const error = errorOf(await call("kube.get", { ref: { ...ref, apiVersion: "my.domain/v1", kind: "MyApp" } }));
    expect(error).toMatchObject({ type: "NotServedError", status: 404, reason: "NotServed" });
    expect(error.message).toMatch(
      /my\.domain\/v1.*; check apiVersion and kind with `kubectl api-resources`, and that the kind's CustomResourceDefinition is/,
    );
  });

  it("does not tell a handler where the API server is", async () => {
    const { transport: discoverable } = await apiServer();
    const { call } = await accessTo({
      manifest: granted,
      discovery: new Discovery(discoverable, systemClock),
      transport: connectDirect({ server: "http://127.0.0.1:1" }),
    });
    const error = errorOf(await call("kube.get", { ref }));
    expect(error).toMatchObject({ type: "KubeError", status: 0 });
    expect(error.message).not.toContain("127.0.0.1");
  });
});

describe("a write that could create", () => {
  const mayPatch = { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch", "update"] }] };
  const existing = { metadata: { uid: "u7" } };

  it("is bound to the object that is there, where create is not granted", async () => {
    const { call, received } = await accessTo({ manifest: mayPatch, script: () => ({ body: existing }) });
    await call("kube.apply", { object });
    await call("kube.update", { object });
    expect(received.map(({ method }) => method)).toEqual(["GET", "PATCH", "GET", "PUT"]);
    expect(received[1]?.body).toEqual({ ...object, metadata: { ...object.metadata, uid: "u7" } });
    expect(received[3]?.body).toEqual({ ...object, metadata: { ...object.metadata, uid: "u7" } });
  });

  it("is refused, and nothing written, where there is no such object and create is not granted", async () => {
    const { call, received } = await accessTo({ manifest: mayPatch, script: () => undefined });
    expect(errorOf(await call("kube.apply", { object }))).toMatchObject({
      type: "ForbiddenError",
      details: { refusedBy: "runtime", missingRule: expect.stringContaining("verbs: [create]") },
    });
    expect(errorOf(await call("kube.update", { object })).type).toBe("NotFoundError");
    expect(received.map(({ method }) => method)).toEqual(["GET", "GET"]);
  });

  it("is no less refused where the object carries an empty uid, which the API server takes for none", async () => {
    const { call, received } = await accessTo({ manifest: mayPatch, script: () => undefined });
    const bare = { ...object, metadata: { ...object.metadata, uid: "" } };
    expect(errorOf(await call("kube.apply", { object: bare })).type).toBe("ForbiddenError");
    expect(errorOf(await call("kube.update", { object: bare })).type).toBe("NotFoundError");
    expect(received.map(({ method }) => method)).toEqual(["GET", "GET"]);
  });

  it("goes out as it is where the object carries its uid already", async () => {
    const { call, received } = await accessTo({ manifest: mayPatch });
    await call("kube.update", { object: { ...object, metadata: { ...object.metadata, uid: "u1" } } });
    expect(received.map(({ method }) => method)).toEqual(["PUT"]);
  });
});
