import { type Kube, NotFoundError } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { apiVersion, kind, type MyApp } from "./myapp.ts";

/** The ConfigMap that a MyApp stands for; it has the MyApp's name and goes when the MyApp goes. */
function wantedFor(app: MyApp) {
  const { name = "", namespace, uid = "" } = app.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name,
      namespace,
      labels: { "app.kubernetes.io/managed-by": "myapp-controller" },
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
    },
    data: { appName: app.spec.appName, version: app.spec.version },
  };
}

/** Brings the ConfigMap to what its MyApp says. `taken`: one of that name is there and is not this MyApp's. */
export async function keepConfigMap(kube: Kube, app: MyApp): Promise<"kept" | "taken"> {
  const wanted = wantedFor(app);
  const found = await find(kube, wanted.metadata.name, wanted.metadata.namespace);
  if (found) {
    const owner = found.metadata?.ownerReferences?.find((reference) => reference.controller);
    if (owner?.uid !== app.metadata?.uid) return "taken";
    if (found.data?.appName === wanted.data.appName && found.data.version === wanted.data.version) return "kept";
  }
  await kube.apply(wanted, { force: true });
  return "kept";
}

async function find(kube: Kube, name: string, namespace: string | undefined): Promise<V1ConfigMap | undefined> {
  try {
    return await kube.get<V1ConfigMap>({ apiVersion: "v1", kind: "ConfigMap", name, namespace });
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
