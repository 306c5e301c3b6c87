import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest } from "./session.ts";

const cluster = await startCluster();
afterAll(() => cluster.close());

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
