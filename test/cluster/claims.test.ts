import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";

const cluster = await startCluster();
const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
afterAll(async () => {
  await transport.close();
  await cluster.close();
});

const core = "/api/v1/namespaces/default";
const claims = `${core}/persistentvolumeclaims`;

/** Sends a request. Returns the status and the parsed body. */
async function send(method: "GET" | "POST" | "DELETE", path: string, body?: object) {
  const headers = { "content-type": "application/json" };
  const response = await transport.request({ method, path, headers, ...(body && { body: JSON.stringify(body) }) });
  const chunks: Buffer[] = await response.body.toArray();
  return { status: response.status, body: JSON.parse(Buffer.concat(chunks).toString()) };
}

const createClaim = (name: string) =>
  send("POST", claims, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });

test("a deleted claim is removed at once if no pod uses it", async () => {
  const { body } = await createClaim("unused");
  expect(body.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
  await send("DELETE", `${claims}/unused`);
  expect((await send("GET", `${claims}/unused`)).status).toBe(404);
});

test("a deleted claim stays until the last pod that uses it is removed", async () => {
  await createClaim("used");
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "used" } }];
  const spec = { containers: [{ name: "c", image: "i" }], volumes };
  await send("POST", `${core}/pods`, { apiVersion: "v1", kind: "Pod", metadata: { name: "user" }, spec });
  await send("DELETE", `${claims}/used`);
  const { status, body } = await send("GET", `${claims}/used`);
  expect([status, body.metadata.deletionTimestamp]).toEqual([200, expect.any(String)]);
  await send("DELETE", `${core}/pods/user`);
  expect((await send("GET", `${claims}/used`)).status).toBe(404);
});
