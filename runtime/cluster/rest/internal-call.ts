import { groupVersion, type KubeObject } from "../api/object.ts";
import { controllerUser } from "../auth/user.ts";
import type { Backend, Call } from "./call.ts";

/** Creates a call by which the server itself writes an object. */
export function internalCall(backend: Backend, object: KubeObject): Call | undefined {
  const { group, version } = groupVersion(object.apiVersion);
  const type = backend.registry.ofKind(group, version, object.kind);
  return (
    type && {
      backend,
      type,
      namespace: object.metadata.namespace ?? "",
      name: object.metadata.name ?? "",
      subresource: "",
      user: controllerUser,
      query: new URLSearchParams(),
      manager: "kube-apiserver",
      dryRun: false,
      fieldValidation: "Ignore",
      warnings: [],
    }
  );
}
