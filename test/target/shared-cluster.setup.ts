// Runs before a cluster project: starts one cluster for all its files, and provides kubectl.
import type { TestProject } from "vitest/node";
import { assetsFolder, natsProgram, realClusterConfigured, runningClusterKubeconfig } from "../tools/assets.ts";
import { kubectlPath } from "../tools/kubectl.ts";
import { accessOf } from "./kubeconfig.ts";
import { recipesOf } from "./recipe.ts";
import { startTarget, type Target, type TargetName } from "./target.ts";

declare module "vitest" {
  export interface ProvidedContext {
    target: TargetName;
    /** `disposable`: the cluster ends with the run, so its objects need not be removed. */
    shared: Target & { readonly disposable: boolean };
    /** Whether a file can start a separate cluster, to compact and to restart. */
    startable: boolean;
    kubectl: string;
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`);

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const target = project.name === "cluster-real" ? "real" : "embedded";
  const running = target === "real" ? runningClusterKubeconfig() : undefined;
  const startable = target === "embedded" || assetsFolder() !== undefined;
  project.provide("target", target);
  project.provide("startable", startable);
  project.provide("kubectl", await kubectlPath());
  if (!startable) say("Tests of compaction and restart are skipped: KUBECONFIG_TEST's cluster is not ours to disturb.");
  if (startable && target === "real" && !recipesOf(target).includes("bump"))
    say(
      "etcd is put back from a copy of its files alone: neither ETCDUTL nor KUBEBUILDER_ASSETS names an etcdutl and an etcdctl.",
    );
  if (running) {
    say("Tests of the audit log are skipped: where KUBECONFIG_TEST's cluster keeps its own is not known.");
    project.provide("shared", { access: await accessOf(running), controllers: true, disposable: false });
    return async () => {};
  }
  if (!realClusterConfigured())
    say("No test runs on a real API server: neither KUBEBUILDER_ASSETS nor KUBECONFIG_TEST is set.");
  if (!natsProgram) say("No test keeps positions on NATS: NATS_SERVER names no nats-server.");
  const cluster = await startTarget(target);
  if (!cluster.controllers)
    say("Tests of controllers are skipped: KUBEBUILDER_ASSETS holds no kube-controller-manager.");
  const { access, controllers, auditLog } = cluster;
  if (auditLog === undefined) say("Tests of the audit log are skipped: the embedded cluster keeps none.");
  project.provide("shared", { access, controllers, ...(auditLog !== undefined && { auditLog }), disposable: true });
  return () => cluster.close();
}
