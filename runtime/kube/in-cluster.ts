import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientConfig } from "./client-config.ts";
import { exists } from "./kubeconfig-loading.ts";
import { pem } from "./tls-files.ts";

/** Folder where the kubelet mounts the credentials of a pod's own account. */
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Returns the connection of a pod to its own cluster, with its own account (client-go's `InClusterConfig`).
 * @param folder folder of the account's token
 * @returns `undefined` outside of a pod, or in a pod without an account
 */
export async function inClusterConfig(
  environment: Readonly<Record<string, string | undefined>>,
  folder = accountFolder,
): Promise<ClientConfig | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, POD_NAMESPACE: named } = environment;
  const token = join(folder, "token");
  if (!host || !port || !(await exists(token))) return undefined;
  const ca = join(folder, "ca.crt");
  const namespace = named || (await readFile(join(folder, "namespace"), "utf8").catch(() => "")).trim();
  return {
    context: "in-cluster",
    namespace: namespace || "default",
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    proxy: undefined,
    compression: true,
    impersonation: undefined,
    tls: {
      ca: (await exists(ca)) ? pem(Buffer.alloc(0), ca, "") : undefined,
      client: undefined,
      serverName: "",
      insecure: false,
    },
    authorization: { by: "token", token: "", file: token },
  };
}
