import { expect, test } from "vitest";
import { inClusterConfig } from "../../runtime/kube/in-cluster.ts";
import { folderOf } from "../tools/folder.ts";

const service = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

test("a pod reaches its own cluster, as its own account and in its own namespace", async () => {
  const folder = folderOf({ token: "t", "ca.crt": "c", namespace: "team-a\n" });
  expect(await inClusterConfig(service, folder)).toMatchObject({
    server: "https://10.0.0.1:443",
    namespace: "team-a",
    tls: { ca: { file: `${folder}/ca.crt` } },
    authorization: { by: "token", file: `${folder}/token` },
  });
  const v6 = { ...service, KUBERNETES_SERVICE_HOST: "fd00::1", POD_NAMESPACE: "team-b" };
  expect(await inClusterConfig(v6, folder)).toMatchObject({ server: "https://[fd00::1]:443", namespace: "team-b" });
});

test("a pod without an account, and what is no pod, has no cluster of its own", async () => {
  expect(await inClusterConfig(service, folderOf({}))).toBeUndefined();
  expect(await inClusterConfig({}, folderOf({ token: "t" }))).toBeUndefined();
});
