// The requests of an explanation to an API server: with the rights of a source, and filtered by the server's own selectors.
import { afterAll, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { type LiveObject, lookAt } from "../../runtime/control/explain/live-look.ts";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { admin, createNamespace, eventually } from "../target/fixture.ts";

const { access } = inject("shared");

function lookingAs(token: string | undefined) {
  const transport = connectDirect({ server: access.url, ca: access.ca, token });
  afterAll(() => transport.close());
  const parts = { transport, discovery: new Discovery(transport, systemClock), clock: systemClock };
  return (spec: Omit<SourceSpec, "apiVersion" | "kind">, name: string) =>
    lookAt({ spec: { apiVersion: "v1", kind: "ConfigMap", ...spec }, name }, parts);
}

const short = (found: LiveObject) =>
  found.type === "there" ? [found.change.meta.name, { labels: found.labels, fields: found.fields }] : found.type;

/** The token of an account that may only list and watch ConfigMaps of one namespace. */
async function sourceToken(namespace: string): Promise<string> {
  const metadata = { name: "source" };
  const group = "rbac.authorization.k8s.io";
  const roles = `/apis/${group}/v1/namespaces/${namespace}`;
  await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata });
  await admin.post(`${roles}/roles`, {
    metadata,
    rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] }],
  });
  await admin.post(`${roles}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: group, kind: "Role", name: "source" },
    subjects: [{ kind: "ServiceAccount", name: "source", namespace }],
  });
  const { status } = await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts/source/token`, { spec: {} });
  return status.token;
}

test("an object is found with the rights of a source, and each selector that leaves it out is told", async () => {
  const namespace = await createNamespace();
  await admin.post(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "a", labels: { sync: "no" } } });
  const look = lookingAs(await sourceToken(namespace));
  await eventually(
    () => look({ namespace }, "a"),
    ({ type }) => type === "there",
  );
  const asked: [Omit<SourceSpec, "apiVersion" | "kind">, unknown][] = [
    [{ labelSelector: "sync=no", fieldSelector: "metadata.name!=b" }, ["a", { labels: true, fields: true }]],
    [{ labelSelector: "sync in (true,yes)" }, ["a", { labels: false, fields: true }]],
    [{ fieldSelector: "metadata.name!=a" }, ["a", { labels: true, fields: false }]],
    [{ fieldSelector: "metadata.name=b" }, ["a", { labels: true, fields: false }]],
    [{ labelSelector: "sync=true", fieldSelector: "metadata.name!=a" }, ["a", { labels: false, fields: false }]],
    [{ representation: "metadata", labelSelector: "sync" }, ["a", { labels: true, fields: true }]],
  ];
  for (const [selectors, expected] of asked) {
    expect([selectors, short(await look({ namespace, ...selectors }, "a"))]).toEqual([selectors, expected]);
  }
  expect(await look({ namespace }, "b")).toEqual({ type: "gone" });
  expect(await look({ namespace }, "a=b,c\\d")).toEqual({ type: "gone" });
});

test("where the source may not list, the server's refusal is the answer", async () => {
  const namespace = await createNamespace();
  const look = lookingAs(await sourceToken(namespace));
  const refusal = { type: "unknown", why: expect.stringMatching(/cannot list resource "configmaps"/) };
  expect(await look({ namespace: "default" }, "a")).toEqual(refusal);
});
