import { labelSelectorText } from "../api/label-selector.ts";
import { at, type Fields, isFields, type KubeObject, put } from "../api/object.ts";
import { badRequest, fault, invalid, methodNotAllowed, modified, notFound } from "../api/status.ts";
import { asJson, asObject } from "../kinds/shape.ts";
import { withManagedFields } from "../rest/admission.ts";
import { parseBody } from "../rest/body.ts";
import { type Call, callKey } from "../rest/call.ts";
import { patchedJson } from "../rest/patch.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import { replace } from "../rest/update.ts";

/** `/scale` of any resource that supports it: autoscaling/v1 Scale, read from the object and written to it. */
export const scale: Subresource = async (call, verb, body) => {
  const { type, backend } = call;
  const find = () => {
    const found = backend.store.get(type.storage, callKey(call));
    if (!found) throw notFound(type, call.name);
    return found;
  };
  if (verb === "get") return { code: 200, value: scaleOf(call, find().object) };
  if (verb !== "update" && verb !== "patch") throw methodNotAllowed();
  const sent = await body();
  const existing = find();
  const wanted: unknown =
    verb === "patch" ? patchedJson(call, asJson(scaleOf(call, existing.object)), sent) : parseBody(sent);
  if (!isFields(wanted)) throw badRequest("the body is not a Scale");
  const version = at(wanted, "metadata.resourceVersion");
  if (version && version !== existing.object.metadata.resourceVersion) throw modified(type, call.name);
  const replicas = at(wanted, "spec.replicas") ?? 0;
  if (typeof replicas !== "number" || replicas < 0 || !Number.isInteger(replicas))
    throw invalid({ group: "autoscaling", kind: "Scale" }, call.name, [
      fault.invalid("spec.replicas", replicas, "must be greater than or equal to 0"),
    ]);
  const changed = structuredClone(existing.object) as KubeObject & Fields;
  put(changed, type.scale?.spec ?? "spec.replicas", replicas);
  // The scale is written through the object itself; only its owner in managedFields names the subresource.
  const main: Call = { ...call, subresource: "" };
  const { revision } = replace(main, existing, changed, (_, object, old) => withManagedFields(call, object, old));
  return { code: 200, value: scaleOf(call, revision.object) };
};

function scaleOf({ type }: Call, object: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const paths = type.scale;
  const selector = paths?.selector ? at(object, paths.selector) : undefined;
  return asObject({
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: asJson({ name, namespace, uid, resourceVersion, creationTimestamp } as unknown as KubeObject),
    spec: { replicas: count(object, paths?.spec) },
    status: {
      replicas: count(object, paths?.status),
      ...(selector === undefined
        ? {}
        : { selector: typeof selector === "string" ? selector : labelSelectorText(selector) }),
    },
  });
}

function count(object: KubeObject, path: string | undefined): number {
  const value = path === undefined ? undefined : at(object, path);
  return typeof value === "number" ? value : 0;
}
