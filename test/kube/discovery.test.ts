import { expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { assertWatchable, Discovery } from "../../runtime/kube/discovery.ts";
import { type Exchange, ScriptedServer } from "../faults/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

const at = (path: string) => (exchange: Exchange) => exchange.path === path;
const deployments = { resource: "deployments", responseKind: { group: "apps", version: "v1", kind: "Deployment" } };
const aggregated = JSON.stringify({
  kind: "APIGroupDiscoveryList",
  apiVersion: "apidiscovery.k8s.io/v2",
  items: [
    {
      metadata: { name: "apps" },
      versions: [
        {
          version: "v1",
          freshness: "Current",
          resources: [
            { ...deployments, scope: "Namespaced", verbs: ["list", "watch"], subresources: [{ subresource: "scale" }] },
          ],
        },
      ],
    },
    { metadata: { name: "stale.io" }, versions: [{ version: "v1", freshness: "Stale", resources: [] }] },
  ],
});
const legacy = (groupVersion: string, resources: object[]) =>
  JSON.stringify({ kind: "APIResourceList", groupVersion, resources });
const nodes = { name: "nodes", namespaced: false, kind: "Node", verbs: ["get", "list", "watch"] };

async function fixture(forms: "aggregated" | "legacy") {
  const server = await ScriptedServer.start();
  const clock = new VirtualClock();
  const transport = connectDirect({ server: server.url, clock });
  server.script(
    () => true,
    (each) => each.status(404, "NotFound"),
  );
  for (const path of ["/api", "/apis"]) {
    server.script(at(path), (each) =>
      forms === "aggregated" ? each.reply(200, aggregated) : each.status(406, "NotAcceptable"),
    );
  }
  return {
    server,
    clock,
    discovery: new Discovery(transport, clock),
    async [Symbol.asyncDispose]() {
      await transport.close();
      await server.close();
    },
  };
}

test("one aggregated document answers for every kind, for ten minutes", async () => {
  await using it = await fixture("aggregated");
  const expected = {
    type: "Served",
    resource: {
      group: "apps",
      version: "v1",
      kind: "Deployment",
      plural: "deployments",
      namespaced: true,
      verbs: ["list", "watch"],
      subresources: ["scale"],
    },
  };
  const both = await Promise.all([
    it.discovery.resolve("apps/v1", "Deployment"),
    it.discovery.resolve("apps/v1", "Deployment"),
  ]);
  expect(both).toEqual([expected, expected]);
  await it.clock.advance(599_000);
  await it.discovery.resolve("apps/v1", "Deployment");
  expect(it.server.requests).toHaveLength(2);
  await it.clock.advance(2000);
  await it.discovery.resolve("apps/v1", "Deployment");
  expect(it.server.requests).toHaveLength(4);
});

test("a server without aggregated documents is asked group by group", async () => {
  await using it = await fixture("legacy");
  it.server.script(at("/api/v1"), (each) =>
    each.reply(200, legacy("v1", [nodes, { name: "nodes/status", namespaced: false, kind: "Node", verbs: ["get"] }])),
  );
  expect(await it.discovery.resolve("v1", "Node")).toMatchObject({
    type: "Served",
    resource: { plural: "nodes", namespaced: false, subresources: ["status"] },
  });
});

test("a kind that is not served is looked for again each time, and found when it is there", async () => {
  await using it = await fixture("aggregated");
  expect(await it.discovery.resolve("my.domain/v1", "MyApp")).toMatchObject({
    type: "NotServed",
    reason: "the API server does not serve my.domain/v1",
  });
  it.server.script(at("/apis/my.domain/v1"), (each) =>
    each.reply(200, legacy("my.domain/v1", [{ ...nodes, kind: "MyApp" }])),
  );
  expect(await it.discovery.resolve("my.domain/v1", "MyApp")).toMatchObject({ type: "Served" });
});

test("a 404 of a server that is no API server, or of a proxy, does not say that a kind is not served", async () => {
  await using it = await fixture("aggregated");
  const page = (each: Exchange) => each.reply(404, "404 page not found", { "content-type": "text/plain" });
  it.server.script(() => true, page);
  await expect(it.discovery.resolve("v1", "Node")).rejects.toThrow(/WF_KUBE_PROTOCOL.*\/apis/);
});

test("a proxy that answers for a while does not say that a kind is not served any more", async () => {
  await using it = await fixture("aggregated");
  await it.discovery.resolve("apps/v1", "Deployment");
  it.discovery.invalidate("apps/v1");
  it.server.script(
    () => true,
    (each) => each.reply(404, "404 page not found", { "content-type": "text/plain" }),
  );
  await expect(it.discovery.resolve("apps/v1", "Deployment")).rejects.toThrow(/WF_KUBE_PROTOCOL.*\/apis/);
});

test("an API server's bare 404 of a path says that a kind is not served", async () => {
  await using it = await fixture("aggregated");
  it.server.script(at("/apis/my.domain/v1"), (each) => each.reply(404, "404 page not found"));
  expect(await it.discovery.resolve("my.domain/v1", "MyApp")).toMatchObject({ type: "NotServed" });
});

test("a group whose own server was away when the document was made is asked for by itself", async () => {
  await using it = await fixture("aggregated");
  it.server.script(at("/apis/stale.io/v1"), (each) =>
    each.reply(200, legacy("stale.io/v1", [{ ...nodes, kind: "Thing" }])),
  );
  expect(await it.discovery.resolve("stale.io/v1", "Thing")).toMatchObject({ type: "Served" });
});

test.each([
  ["apps/v1", "deployment", "apps/v1 has no kind deployment; did you mean Deployment?"],
  ["apps/v1", "Deploymnet", "apps/v1 has no kind Deploymnet; did you mean Deployment?"],
  ["app/v1", "Deployment", "the API server does not serve app/v1; did you mean apps/v1?"],
  ["apps/v1", "Pod", "apps/v1 has no kind Pod"],
  ["v1", "Deployment", "v1 has no kind Deployment; Deployment is in apps/v1"],
])("a misspelt kind or group is answered with the one that is near: %s %s", async (apiVersion, kind, reason) => {
  await using it = await fixture("aggregated");
  it.server.script(at("/api/v1"), (each) => each.reply(200, legacy("v1", [nodes])));
  expect(await it.discovery.resolve(apiVersion, kind)).toMatchObject({ type: "NotServed", reason });
});

test("that a kind is missing is told without asking, once its group version was read", async () => {
  await using it = await fixture("aggregated");
  expect(it.discovery.missing("apps/v1", "Deploymnet")).toBeUndefined();
  await it.discovery.resolve("apps/v1", "Deployment");
  const asked = it.server.requests.length;
  expect(it.discovery.missing("apps/v1", "Deploymnet")?.reason).toContain("did you mean Deployment?");
  expect(it.discovery.missing("apps/v1", "Deployment")).toBeUndefined();
  expect(it.discovery.missing("other.io/v1", "Deployment")).toBeUndefined();
  expect(it.server.requests.length).toBe(asked);
});

test("what was invalidated is asked for again", async () => {
  await using it = await fixture("aggregated");
  await it.discovery.resolve("apps/v1", "Deployment");
  it.discovery.invalidate("apps/v1");
  expect(await it.discovery.resolve("apps/v1", "Deployment")).toMatchObject({ type: "NotServed" });
});

test("a kind without the verbs list and watch is the user's mistake", () => {
  const resource = {
    group: "metrics.k8s.io",
    version: "v1",
    kind: "PodMetrics",
    plural: "pods",
    namespaced: true,
    subresources: [],
  };
  expect(() => assertWatchable({ ...resource, verbs: ["get", "list"] })).toThrow(
    /WF_KUBE_NOT_WATCHABLE.*has no verb watch/,
  );
  expect(() => assertWatchable({ ...resource, verbs: ["list", "watch"] })).not.toThrow();
});

test("a kind that is missing takes nothing from what the server is known to serve", async () => {
  await using fixed = await fixture("aggregated");
  const { discovery } = fixed;
  const before = await discovery.served();
  expect(await discovery.resolve("apps/v1", "Deploiment")).toMatchObject({
    type: "NotServed",
    hint: "did you mean Deployment?",
  });
  expect(await discovery.served()).toEqual(before);
});
