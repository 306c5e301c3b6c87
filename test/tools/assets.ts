// Reads the environment's variables that name the real cluster and the real NATS of the suite. No other file reads them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { toolOf } from "./tool-of.ts";

/** The folder of real binaries (envtest's convention), or undefined. */
export function assetsFolder(): string | undefined {
  if (runningClusterKubeconfig() !== undefined) return process.env.KUBEBUILDER_ASSETS || undefined;
  return toolOf(process.env, "KUBEBUILDER_ASSETS");
}

/** The kubeconfig of an existing cluster, or `undefined`. */
export function runningClusterKubeconfig(): string | undefined {
  return process.env.KUBECONFIG_TEST || undefined;
}

/** True if the cluster suite can run on a real kube-apiserver. */
export function realClusterConfigured(): boolean {
  return assetsFolder() !== undefined || runningClusterKubeconfig() !== undefined;
}

/** The path of a binary in the assets folder; `undefined` if the folder or the binary is missing. */
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
