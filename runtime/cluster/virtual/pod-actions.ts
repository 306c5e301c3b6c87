import { at, isFields, type KubeObject } from "../api/object.ts";
import { badRequest, conflict, methodNotAllowed, notFound, type Status } from "../api/status.ts";
import { asJson } from "../kinds/shape.ts";
import { asObjectOf, parseBody } from "../rest/body.ts";
import { type Call, callKey } from "../rest/call.ts";
import { kept } from "../rest/create.ts";
import { deleteOptions, remove } from "../rest/delete.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import { commit } from "../rest/update.ts";

const success: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

/** `pods/eviction`: deletes the pod. Disruption budgets are not enforced, because nothing here runs pods. */
export const evict: Subresource = async (call, verb, body) => {
  if (verb !== "create") throw methodNotAllowed();
  const eviction = parseBody(await body());
  remove(call, deleteOptions(at(eviction, "deleteOptions") ?? {}, call.query));
  return { code: 201, value: { ...success, code: 201 } };
};

/** `pods/binding`: assigns a pod to a node. */
export const bind: Subresource = async (call, verb, body) => {
  if (verb !== "create") throw methodNotAllowed();
  const binding = parseBody(await body());
  const existing = find(call);
  const node = at(binding, "target.name");
  if (typeof node !== "string" || node === "") throw badRequest("target.name: Required value");
  const spec = isFields(existing.object.spec) ? existing.object.spec : {};
  if (spec.nodeName)
    throw conflict(call.type, call.name, `pod ${call.name} is already assigned to node "${String(spec.nodeName)}"`);
  commit(call, existing, { ...existing.object, spec: { ...spec, nodeName: node } });
  return { code: 201, value: { ...success, code: 201 } };
};

/**
 * `namespaces/finalize`: writes a namespace's `spec.finalizers`. A namespace in deletion without finalizers is removed.
 */
export const finalize: Subresource = async (call, verb, body) => {
  if (verb !== "update") throw methodNotAllowed();
  const wanted: KubeObject = kept(call, asJson(asObjectOf(parseBody(await body()), call.type)));
  const existing = find(call);
  const spec = isFields(wanted.spec) ? wanted.spec : {};
  const { revision } = commit(call, existing, { ...existing.object, spec });
  return { code: 200, value: revision.object };
};

function find(call: Call) {
  const existing = call.backend.store.get(call.type.storage, callKey(call));
  if (!existing) throw notFound(call.type, call.name);
  return existing;
}
