import { selectorMatches } from "../api/label-selector.ts";
import { at, type Fields, isFields, type KubeObject, timestamp } from "../api/object.ts";
import { ApiError, badRequest, conflict, methodNotAllowed, modified, notFound, type Status } from "../api/status.ts";
import { asJson } from "../kinds/shape.ts";
import { withManagedFields } from "../rest/admission.ts";
import { asObjectOf, parseBody } from "../rest/body.ts";
import { type Call, callKey } from "../rest/call.ts";
import { kept } from "../rest/create.ts";
import { deleteOptions, remove } from "../rest/delete.ts";
import { patchedJson } from "../rest/patch.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import { commit, replace } from "../rest/update.ts";

const success: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

/**
 * `pods/eviction`: deletes the pod, unless a PodDisruptionBudget forbids it. No controller counts healthy pods here: a budget is
 * enforced as its status says.
 */
export const evict: Subresource = async (call, verb, body) => {
  if (verb !== "create") throw methodNotAllowed();
  const eviction = parseBody(await body());
  spendBudget(call, find(call).object);
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

/** `pods/resize`: changes the resources of a pod's containers, and nothing else. */
export const resize: Subresource = async (call, verb, body) => {
  const existing = find(call);
  if (verb === "get") return { code: 200, value: existing.object };
  if (verb !== "update" && verb !== "patch") throw methodNotAllowed();
  const sent = await body();
  const json =
    verb === "patch"
      ? patchedJson(call, asJson(existing.object), sent)
      : asJson(asObjectOf(parseBody(sent), call.type));
  const wanted = kept(call, json);
  const version = wanted.metadata.resourceVersion;
  if (version && version !== existing.object.metadata.resourceVersion) throw modified(call.type, call.name);
  const object = { ...existing.object, spec: resized(existing.object.spec, wanted.spec) } as KubeObject;
  const { revision } = replace(call, existing, object, withManagedFields);
  return { code: 200, value: revision.object };
};

/** A pod's spec with the resources of the wanted containers; other changes are dropped, as the real server does. */
function resized(old: unknown, wanted: unknown): Fields {
  const result: Fields = isFields(old) ? { ...old } : {};
  for (const field of ["containers", "initContainers"]) {
    const [before, after] = [at(old, field), at(wanted, field)];
    if (!Array.isArray(before) || !Array.isArray(after)) continue;
    result[field] = before.map((each: Fields) => {
      const { resources, resizePolicy } = after.find(({ name }: Fields) => name === each.name) ?? each;
      return { ...each, ...(resources && { resources }), ...(resizePolicy && { resizePolicy }) };
    });
  }
  return result;
}

/** Takes one disruption from the budget of a pod that runs. Throws 429 if it allows no more (registry/core/pod/storage/eviction.go). */
function spendBudget(call: Call, pod: KubeObject): void {
  const phase = String(at(pod, "status.phase"));
  if (pod.metadata.deletionTimestamp || ["Pending", "Succeeded", "Failed"].includes(phase)) return;
  const { store, clock } = call.backend;
  const id = "poddisruptionbudgets.policy";
  const selecting = [...store.collection(id).current(`${call.namespace}/`)].filter(([, { object }]) =>
    selectorMatches(at(object, "spec.selector"), pod.metadata.labels),
  );
  const [found, other] = selecting;
  if (!found) return;
  if (other) {
    const what = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new ApiError(500, "", what);
  }
  const [key, budget] = found;
  const status = isFields(budget.object.status) ? budget.object.status : {};
  const { name, generation = 0 } = budget.object.metadata;
  const count = (field: string): number => Number(status[field] ?? 0);
  const refusal = (message: string, retryAfterSeconds?: number) =>
    new ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", {
      causes: [{ reason: "DisruptionBudget", message: `The disruption budget ${name} ${message}` }],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    });
  const ready = (at(pod, "status.conditions") as Fields[] | undefined)?.find(({ type }) => type === "Ready")?.status;
  if (ready !== "True") {
    const always = at(budget.object, "spec.unhealthyPodEvictionPolicy") === "AlwaysAllow";
    if (always || (count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy"))) return;
  }
  if (count("observedGeneration") < generation) throw refusal("is still being processed by the server.", 10);
  if (count("disruptionsAllowed") <= 0) {
    const words = `needs ${count("desiredHealthy")} healthy pods and has ${count("currentHealthy")} currently`;
    throw refusal(words);
  }
  const disruptedPods = { ...(isFields(status.disruptedPods) ? status.disruptedPods : {}) };
  disruptedPods[call.name] = timestamp(clock.now());
  const spent = { ...status, disruptionsAllowed: count("disruptionsAllowed") - 1, disruptedPods };
  if (!call.dryRun) store.put(id, key, { ...budget.object, status: spent } as KubeObject);
}

function find(call: Call) {
  const existing = call.backend.store.get(call.type.storage, callKey(call));
  if (!existing) throw notFound(call.type, call.name);
  return existing;
}
