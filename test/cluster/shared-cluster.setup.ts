// Before a cluster project runs: one cluster for all its files, and kubectl at hand.
import type { TestProject } from "vitest/node";
import { realClusterConfigured, runningClusterKubeconfig } from "../tools/assets.ts";
import { kubectlPath } from "../tools/kubectl.ts";
import { accessOf } from "./kubeconfig.ts";
import { startTarget, type Target, type TargetName } from "./target.ts";

declare module "vitest" {
  export interface ProvidedContext {
    target: TargetName;
    shared: Target & { readonly disposable: boolean };
    kubectl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const target = project.name === "cluster-real" ? "real" : "embedded";
  project.provide("target", target);
  project.provide("kubectl", await kubectlPath());
  const running = target === "real" ? runningClusterKubeconfig() : undefined;
  if (running) {
    project.provide("shared", { access: await accessOf(running), controllers: true, disposable: false });
    return async () => {};
  }
  if (!realClusterConfigured())
    process.stdout.write(
      "The cluster suite runs on the embedded cluster alone: neither KUBEBUILDER_ASSETS nor KUBECONFIG_TEST is set.\n",
    );
  const cluster = await startTarget(target);
  project.provide("shared", { access: cluster.access, controllers: cluster.controllers, disposable: true });
  return () => cluster.close();
}
