import { type Condition, controllerOf, type KubeObject, type Ref } from "@watchfire/sdk";

export const apiVersion = "my.domain/v1";
export const kind = "MyApp";

/** As crd.yaml has it. */
export interface MyApp extends KubeObject {
  spec: { appName: string; version: string };
  status?: MyAppStatus;
}

export interface MyAppStatus {
  observedGeneration?: number;
  conditions?: readonly Condition[];
}

/** Names the MyApp that an event is about: the object itself, or the owner of one of our ConfigMaps. */
export function refOf(object: KubeObject): Ref | undefined {
  const { metadata } = object;
  if (object.kind === kind) return { apiVersion, kind, name: metadata?.name ?? "", namespace: metadata?.namespace };
  const owner = controllerOf(object);
  return owner?.kind === kind ? { apiVersion, kind, name: owner.name, namespace: metadata?.namespace } : undefined;
}
