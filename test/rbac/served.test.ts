import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { faultOfRule } from "../../runtime/manifest/fault.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { servedFaults } from "../../runtime/rbac/served.ts";
import { define, manifest } from "../cli/session.ts";
import { folderOf } from "../tools/folder.ts";

const cluster = await startCluster();
const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
const discovery = new Discovery(transport, systemClock);
afterAll(async () => {
  await transport.close();
  await cluster.close();
});

const shops = { group: "shop.example", kind: "Shop", plural: "shops", namespaced: true, versions: ["v1"] };

/** The faults of a function with this `watch` and this permission, as shown to a user. */
async function faults({ watch, permission }: { watch?: string; permission?: string }): Promise<string[]> {
  const folder = folderOf({});
  define(folder, "f", "", manifest("f", permission === undefined ? "" : `  permissions:\n    - ${permission}`, watch));
  const { functions, documents } = await loadFunctions(folder);
  const [one] = functions;
  const document = documents.get("f");
  if (!one || !document) throw new Error("the manifest has a fault of its own");
  return (await servedFaults(one, discovery, [shops])).map((rule) => faultOfRule(rule, document).message);
}

const rule = (apiGroups: string, resources: string) =>
  `{ apiGroups: [${apiGroups}], resources: [${resources}], verbs: [get] }`;

test.each([
  [
    "a misspelt kind",
    { watch: "{ apiVersion: v1, kind: Confgmap }" },
    /yaml:7:\d+ spec\.triggers\[0\]\.watch\.kind: v1 has no such kind, got "Confgmap"; did you mean ConfigMap\?/,
  ],
  [
    "a misspelt group of a kind",
    { watch: "{ apiVersion: app/v1, kind: Deployment }" },
    /watch\.apiVersion: .*"app\/v1"; did you mean apps\/v1\?/,
  ],
  [
    "a kind that nobody can watch",
    { watch: "{ apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview }" },
    /^WF_KUBE_NOT_WATCHABLE .*watch\.kind: /,
  ],
  [
    "a kind that is not in the namespaces that are chosen",
    { watch: "{ apiVersion: v1, kind: Node, namespaceSelector: { matchNames: [a] } }" },
    /^WF_KUBE_CLUSTER_SCOPED .*watch\.namespaceSelector: /,
  ],
  [
    "a misspelt resource",
    { permission: rule('""', "configmap") },
    /permissions\[0\]\.resources\[0\]: .*"configmap"; did you mean configmaps\?/,
  ],
  [
    "a resource of another group",
    { permission: rule('""', "deployments") },
    /permissions\[0\]\.resources\[0\]: .* it is in the API group apps$/,
  ],
  [
    "a subresource that there is not",
    { permission: rule("apps", "deployments/stats") },
    /resources\[0\]: .*did you mean deployments\/status\?/,
  ],
  [
    "a misspelt group",
    { permission: rule("app", "deployments") },
    /permissions\[0\]\.apiGroups\[0\]: .*"app"; did you mean apps\?/,
  ],
])("%s is one fault with its place, and says what was meant", async (_, mistake, said) => {
  const found = await faults(mistake);
  expect(found.join("\n")).toMatch(said);
  expect(found.length).toBe(1);
});

test("what the cluster serves is no fault, nor what a definition beside the function is to define, nor a wildcard", async () => {
  const watch = "{ apiVersion: shop.example/v1, kind: Shop, namespaceSelector: { matchNames: [a] } }";
  const resources = 'configmaps, deployments/scale, shops/status, "*/scale"';
  expect(await faults({ watch, permission: rule('"", apps, shop.example', resources) })).toEqual([]);
  expect(await faults({ permission: rule('"*"', "deployments") })).toEqual([]);
});
