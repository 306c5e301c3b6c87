import { AlreadyExistsError, createOrUpdate, type Kube, ownerReference, type Stored } from "@watchfire/sdk";
import type { MyApp } from "./myapp.ts";

/**
 * Brings the ConfigMap that a MyApp stands for to what the MyApp says: it has the MyApp's name and goes when the MyApp goes.
 * `taken`: one of that name is there and is not this MyApp's.
 */
export async function keepConfigMap(kube: Kube, app: Stored<MyApp>): Promise<"kept" | "taken"> {
  const { name, namespace } = app.metadata;
  const { appName, version } = app.spec;
  const labels = { "app.kubernetes.io/managed-by": "myapp-controller" };
  try {
    await createOrUpdate(kube, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace, labels, ownerReferences: [ownerReference(app)] },
      data: { appName, version },
    });
    return "kept";
  } catch (error) {
    if (error instanceof AlreadyExistsError) return "taken";
    throw error;
  }
}
