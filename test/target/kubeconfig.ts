import { readFileSync } from "node:fs";
import type { Access } from "./client.ts";

/** A kubeconfig (JSON is YAML) with one context, for `kubectl` or any other client. */
export function kubeconfigOf(access: Access, namespace = "default"): string {
  const base64 = (pem: string) => Buffer.from(pem).toString("base64");
  const { token, cert, key } = access;
  const user = cert && key ? { "client-certificate-data": base64(cert), "client-key-data": base64(key) } : { token };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: access.url, "certificate-authority-data": base64(access.ca) } }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace } }],
    "current-context": "test",
  });
}

/** The access of a kubeconfig file's current context. Exec plugins and token files are read once. */
export async function accessOf(path: string): Promise<Access> {
  // Imported here, because loading it takes 450 ms, which files that only write kubeconfigs save.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromString(readFileSync(path, "utf8"));
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error(`${path}: no current context`);
  const options: { ca?: unknown; cert?: unknown; key?: unknown; headers?: Record<string, string> } = {};
  await config.applyToHTTPSOptions(options);
  const pem = (value: unknown) => (value === undefined ? undefined : String(value));
  const bearer = new Headers(options.headers).get("authorization");
  return {
    url: cluster.server.replace(/\/$/, ""),
    ca: pem(options.ca) ?? "",
    token: bearer?.replace(/^Bearer /, "").trim(),
    cert: pem(options.cert),
    key: pem(options.key),
  };
}
