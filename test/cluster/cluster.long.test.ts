import { once } from "node:events";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cluster, startCluster } from "@watchfire/cluster";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";

const clusters: Cluster[] = [];
const folder = () => mkdtempSync(join(tmpdir(), "cluster-"));
async function start(options: Partial<Parameters<typeof startCluster>[0]> = {}): Promise<Cluster> {
  const cluster = await startCluster(options);
  clusters.push(cluster);
  return cluster;
}
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

/** Sends one request, by default on a separate socket. The answer's stream is not read. */
async function send(cluster: Cluster, method: string, path: string, body?: unknown, agent?: Agent) {
  const options: RequestOptions = {
    method,
    agent: agent ?? false,
    ca: cluster.caCertificate,
    headers: { authorization: `Bearer ${cluster.adminToken}`, "content-type": "application/json" },
  };
  const sent = request(`${cluster.url}${path}`, options);
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(sent, "response")) as [import("node:http").IncomingMessage];
  return response;
}
async function json(cluster: Cluster, method: string, path: string, body?: unknown, agent?: Agent) {
  const response = await send(cluster, method, path, body, agent);
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return { code: response.statusCode, body: JSON.parse(Buffer.concat(pieces).toString()) };
}
const configMaps = "/api/v1/namespaces/default/configmaps";

describe("the embedded cluster", () => {
  test("closes with watches open, and ends them cleanly", async () => {
    const cluster = await start();
    const watch = await send(cluster, "GET", `${configMaps}?watch=true`);
    watch.resume();
    const ended = once(watch, "end");
    await cluster.close();
    clusters.pop();
    await ended;
    expect(watch.complete).toBe(true);
  });

  test("closes without waiting for a client that is still connecting", async () => {
    const cluster = await start();
    const connecting = connect(Number(new URL(cluster.url).port), "127.0.0.1");
    await once(connecting, "connect");
    // Connections are accepted in order, so after this request the server has the earlier one.
    await json(cluster, "GET", "/version");
    const ended = once(connecting, "close");
    await cluster.close();
    clusters.pop();
    await ended;
  });

  test("keeps its objects, token, certificates and resourceVersions over a restart, and no history", async () => {
    const stateFile = join(folder(), "state");
    const first = await start({ state: stateFile });
    const made = await json(first, "POST", configMaps, { metadata: { name: "a" }, data: { x: "1" } });
    const uid = (await json(first, "GET", "/api/v1/namespaces/kube-system")).body.metadata.uid;
    await first.close();
    clusters.pop();
    const second = await start({ state: stateFile });
    expect(second.adminToken).toBe(first.adminToken);
    expect(second.caCertificate).toBe(first.caCertificate);
    expect((await json(second, "GET", `${configMaps}/a`)).body).toEqual(made.body);
    expect((await json(second, "GET", "/api/v1/namespaces/kube-system")).body.metadata.uid).toBe(uid);
    await json(second, "POST", configMaps, { metadata: { name: "b" } });
    const old = await json(second, "GET", `${configMaps}?watch=1&resourceVersion=1&timeoutSeconds=1`);
    expect(old.body).toMatchObject({ type: "ERROR", object: { code: 410, reason: "Expired" } });
  });

  test("takes up a definition that an older version stored and this one would refuse", async () => {
    const stateFile = join(folder(), "state");
    const first = await start({ state: stateFile });
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const rule = { rule: "self.all(x, self.exists_one(y, y == x))", message: "twice" };
    const texts = {
      type: "array",
      maxItems: 77_777_777,
      items: { type: "string" },
      "x-kubernetes-validations": [{ rule: "true" }],
    };
    const spec = { type: "object", properties: { texts } };
    const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
    const made = await json(first, "POST", definitions, {
      metadata: { name: "ts.a.example" },
      spec: {
        group: "a.example",
        scope: "Cluster",
        names: { plural: "ts", kind: "T" },
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    });
    expect(made.code).toBe(201);
    await first.close();
    clusters.pop();
    const state = readFileSync(stateFile, "utf8").replaceAll('{"rule":"true"}', JSON.stringify(rule));
    writeFileSync(stateFile, state);
    const second = await start({ state: stateFile });
    const create = (name: string, values: readonly string[]) =>
      json(second, "POST", "/apis/a.example/v1/ts", {
        apiVersion: "a.example/v1",
        kind: "T",
        metadata: { name },
        spec: { texts: values },
      });
    expect((await create("a", ["x", "y"])).code).toBe(201);
    expect((await create("b", ["x", "x"])).body.message).toContain("twice");
    const stored = (await json(second, "GET", `${definitions}/ts.a.example`)).body;
    stored.metadata.labels = { a: "b" };
    expect((await json(second, "PUT", `${definitions}/ts.a.example`, stored)).code).toBe(200);
    const changed = (await json(second, "GET", `${definitions}/ts.a.example`)).body;
    changed.spec.versions[0].schema.openAPIV3Schema.description = "changed";
    const refused = await json(second, "PUT", `${definitions}/ts.a.example`, changed);
    expect(refused.body.message).toContain("estimated rule cost exceeds budget");
  });

  test("sends a watcher that does not read away, cleanly, and keeps serving the others", async () => {
    // A fast machine writes all of it within the second that a stall may last.
    const cluster = await start({ clock: { ...systemClock, monotonic: () => 100 * systemClock.monotonic() } });
    const slow = await send(cluster, "GET", `${configMaps}?watch=true`);
    slow.pause();
    const name = "big";
    const agent = new Agent({ keepAlive: true });
    await json(cluster, "POST", configMaps, { metadata: { name } });
    const data = { x: "y".repeat(30_000) };
    const closed = once(slow, "close").then(() => true);
    const writes = 1600;
    for (let write = 0; write < writes; write++)
      await json(
        cluster,
        "PUT",
        `${configMaps}/${name}`,
        { metadata: { name }, data: { ...data, n: String(write) } },
        agent,
      );
    agent.destroy();
    let lines = 0;
    slow.on("data", (piece: Buffer) => {
      for (const byte of piece) if (byte === 0x0a) lines++;
    });
    slow.resume();
    await closed;
    expect(slow.complete).toBe(true);
    expect(lines).toBeLessThan(writes);
  }, 40_000);

  test("writes a kubeconfig that only its owner reads and that needs no other file", async () => {
    const kubeconfigFile = join(folder(), "sub", "config");
    const cluster = await start({ kubeconfig: kubeconfigFile });
    expect(statSync(kubeconfigFile).mode & 0o777).toBe(0o600);
    expect(readFileSync(kubeconfigFile, "utf8")).toBe(cluster.kubeconfig);
    expect(cluster.kubeconfig).toContain("certificate-authority-data");
  });

  test("says which port it cannot have", async () => {
    const cluster = await start();
    const port = Number(new URL(cluster.url).port);
    await expect(startCluster({ port })).rejects.toThrow(/PORT_REFUSED.*EADDRINUSE/);
  });

  test("forgets its history when the administrator asks over HTTPS, and nobody else", async () => {
    const cluster = await start();
    const { revision } = cluster;
    await json(cluster, "POST", configMaps, { metadata: { name: "a" } });
    expect((await json({ ...cluster, adminToken: "wrong" }, "POST", "/watchfire.dev/compact")).code).toBe(401);
    expect((await json(cluster, "POST", "/watchfire.dev/compact")).code).toBe(200);
    const old = await json(cluster, "GET", `${configMaps}?watch=1&resourceVersion=${revision}&timeoutSeconds=1`);
    expect(old.body.object.code).toBe(410);
  });

  test("answers a body that is too large with 413", async () => {
    const cluster = await start();
    const reply = await json(cluster, "POST", configMaps, {
      metadata: { name: "a" },
      data: { x: "y".repeat(4 << 20) },
    });
    expect(reply.code).toBe(413);
  });
});
