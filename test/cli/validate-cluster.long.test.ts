import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest } from "./session.ts";

const cluster = await startCluster();
const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
afterAll(async () => {
  await transport.close();
  await cluster.close();
});

test("validate with a cluster finds a kind that it does not serve, and says what it leaves to others", async () => {
  const folder = folderOf({ kubeconfig: cluster.kubeconfig });
  const functions = join(folder, "functions");
  define(functions, "good");
  define(functions, "misspelt", undefined, manifest("misspelt", "", "{ apiVersion: v1, kind: Confgmap }"));
  const args = ["validate", "--functions", functions, "--kubeconfig", join(folder, "kubeconfig")];
  const { stdout, stderr, status } = await watchfire(args);
  expect(stderr).toMatch(/^WF_MANIFEST_NOT_SERVED .*misspelt\/function\.yaml:7:\d+ .*did you mean ConfigMap\?$/m);
  expect(stderr).toMatch(/^not checked: that the accounts are granted these permissions \(`watchfire doctor` does\)$/m);
  expect(stderr).not.toContain("warning");
  expect(stdout).toBe("1 valid, 1 fault\n");
  expect(status).toBe(1);
});

test("a cluster that cannot be used is said, and nothing is called valid", async () => {
  const folder = folderOf({});
  define(join(folder, "functions"), "f");
  const args = ["validate", "--functions", join(folder, "functions"), "--kubeconfig", join(folder, "none")];
  const { stdout, stderr, status } = await watchfire(args);
  expect(stderr).toMatch(/^WF_KUBE_CONFIG /);
  expect(stdout).toBe("");
  expect(status).toBe(1);
});

/** The StatefulSet of a release whose executors' container has this memory limit. */
const release = (account: string, memory: string) => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: account },
  spec: {
    serviceName: account,
    selector: { matchLabels: { app: account } },
    template: {
      metadata: { labels: { app: account } },
      spec: {
        serviceAccountName: account,
        containers: [
          { name: "watchfire", image: "watchfire", resources: { limits: { memory: "64Mi" } } },
          { name: "executor", image: "watchfire", resources: { limits: { memory } } },
        ],
      },
    },
  },
});

test("memory above what the executors' container of the runtime there has is refused, by validate and by deploy", async () => {
  const folder = folderOf({ kubeconfig: cluster.kubeconfig });
  const functions = join(folder, "functions");
  define(functions, "small", undefined, manifest("small", "  resources: { memory: 128Mi }"));
  define(functions, "large", undefined, manifest("large", "  resources: { memory: 2Gi }"));
  const path = "/apis/apps/v1/namespaces/default/statefulsets";
  await transport.json({ method: "POST", path, body: JSON.stringify(release("wf-small", "1Gi")) });
  const flags = ["--functions", functions, "--kubeconfig", join(folder, "kubeconfig"), "--namespace", "default"];
  const refused =
    /^WF_SANDBOX_CONTAINER_SMALL .*large\/function\.yaml:\d+:\d+ .*2048Mi, and that container has 1024Mi.*executor\.resources\.limits\.memory/m;
  for (const command of ["validate", "deploy"]) {
    const { stderr, status } = await watchfire([command, ...flags, "--service-account", "wf-small"]);
    expect(stderr).toMatch(refused);
    expect(stderr).not.toContain("small/function.yaml");
    expect(status).toBe(1);
  }
  const { stderr } = await watchfire(["validate", ...flags, "--service-account", "wf-none"]);
  expect(stderr).toContain("not checked: that `resources.memory` fits the executors' container of default/wf-none");
});
