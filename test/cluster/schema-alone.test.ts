import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";

const cluster = await startCluster();
const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
afterAll(async () => {
  await transport.close();
  await cluster.close();
});

/** Sends a body. Returns the status and the `Warning` header. */
async function send(method: "POST" | "PUT" | "PATCH", path: string, body: object, type = "application/json") {
  const headers = { "content-type": type };
  const response = await transport.request({ method, path, body: JSON.stringify(body), headers });
  await response.body.resume().toArray();
  return [response.status, response.headers.warning];
}

const classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
const priority = (value: number) => ({
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  metadata: { name: "high" },
  value,
});
const warning =
  '299 - "this cluster checks scheduling.k8s.io/v1 PriorityClass only by its schema; a real API server has further rules for it"';

test("every write of a kind that is checked by its schema alone is answered with a warning that says so", async () => {
  expect(await send("POST", classes, priority(1))).toEqual([201, warning]);
  expect(await send("PUT", `${classes}/high`, priority(1))).toEqual([200, warning]);
  expect(await send("PATCH", `${classes}/high`, { globalDefault: true }, "application/merge-patch+json")).toEqual([
    200,
    warning,
  ]);
  const applied = `${classes}/high?fieldManager=me&force=true`;
  expect(await send("PATCH", applied, priority(1), "application/apply-patch+yaml")).toEqual([200, warning]);
  expect(await send("POST", classes, { ...priority(1), value: "high" })).toEqual([400, undefined]);
});

test("a write of a kind whose rules are there has no warning, and neither has a ServiceAccount, which has no further rules", async () => {
  const metadata = { name: "a" };
  for (const [plural, kind] of [
    ["configmaps", "ConfigMap"],
    ["serviceaccounts", "ServiceAccount"],
  ] as const) {
    const path = `/api/v1/namespaces/default/${plural}`;
    expect(await send("POST", path, { apiVersion: "v1", kind, metadata })).toEqual([201, undefined]);
  }
});

test("a pod's annotation of AppArmor is accepted with the warning of a real API server", async () => {
  const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "runtime/default" };
  const metadata = { name: "old", annotations };
  const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [{ name: "c", image: "i" }] } };
  const [status, warning] = await send("POST", "/api/v1/namespaces/default/pods", pod);
  expect(status).toBe(201);
  expect(warning).toContain("deprecated since v1.30; use the");
});
