// The environment names the real cluster and the real NATS that the suite runs on; it is read here alone.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { toolOf } from "./tool-of.ts";

/** The folder of real binaries (envtest's convention), or undefined. */
export function assetsFolder(): string | undefined {
  if (runningClusterKubeconfig() !== undefined) return process.env.KUBEBUILDER_ASSETS || undefined;
  return toolOf(process.env, "KUBEBUILDER_ASSETS");
}

/** The kubeconfig of a cluster that runs already, or undefined. */
export function runningClusterKubeconfig(): string | undefined {
  return process.env.KUBECONFIG_TEST || undefined;
}

/** Whether the cluster suite has a real kube-apiserver to run on. */
export function realClusterConfigured(): boolean {
  return assetsFolder() !== undefined || runningClusterKubeconfig() !== undefined;
}

/** The path of one binary of the assets folder, or undefined where the folder or the binary is missing. */
export function asset(name: string): string | undefined {
  const folder = assetsFolder();
  if (!folder) return undefined;
  const path = join(folder, name);
  return existsSync(path) ? path : undefined;
}

/**
 * Path of the etcdutl that restores etcd's snapshots: the one that ETCDUTL names, or the one in etcd's folder; `undefined` if
 * neither exists.
 */
export const etcdutl = process.env.ETCDUTL || asset("etcdutl");

/** Path of the nats-server that the tests start; `undefined` if NATS_SERVER is not set. */
export const natsProgram = toolOf(process.env, "NATS_SERVER");
