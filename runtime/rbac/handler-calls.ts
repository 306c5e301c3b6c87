import { relative } from "node:path";
import { describeDemand, grants, missingRule, type RequestAttributes } from "../access/grants.ts";
import { WatchfireError } from "../base/errors.ts";
import { splitApiVersion } from "../kube/discovery.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LiteralCall } from "../types/handler-text.ts";
import type { KnownKinds } from "./kinds.ts";

type Asked = Pick<RequestAttributes, "verb" | "subresource">;

/** Requests of each method of `ctx.kube`. */
const requests: Readonly<Record<string, readonly Asked[]>> = {
  get: [{ verb: "get" }],
  list: [{ verb: "list" }],
  create: [{ verb: "create" }],
  update: [{ verb: "update" }],
  patch: [{ verb: "patch" }],
  apply: [{ verb: "patch" }],
  delete: [{ verb: "delete" }],
  updateStatus: [{ verb: "update", subresource: "status" }],
  patchStatus: [{ verb: "patch", subresource: "status" }],
  getScale: [{ verb: "get", subresource: "scale" }],
  setScale: [{ verb: "patch", subresource: "scale" }],
  restart: [{ verb: "patch" }],
  evict: [{ verb: "create", subresource: "eviction" }],
  retryOnConflict: [{ verb: "get" }, { verb: "update" }],
};

/**
 * Returns a warning for each request of a handler's literal calls that no permission could grant, with the rule to add. Names are
 * not compared, and namespaces only where the call names one. Unknown kinds are not checked.
 */
export function callWarnings(
  { name, handler, permissions }: Pick<FunctionManifest, "name" | "handler" | "permissions">,
  calls: readonly LiteralCall[],
  kinds: KnownKinds,
): WatchfireError[] {
  const warnings = new Map<string, WatchfireError>();
  for (const { method, apiVersion, kind, namespace, line, column } of calls) {
    const facts = kinds(apiVersion, kind);
    if (!facts) continue;
    const where = facts.namespaced && namespace !== undefined ? { namespace } : {};
    for (const asked of Object.hasOwn(requests, method) ? (requests[method] ?? []) : []) {
      const demand = { group: splitApiVersion(apiVersion).group, resource: facts.plural, ...asked, ...where };
      const isGranted = permissions.some(({ resourceNames: _, namespaces, ...rule }) =>
        grants("namespace" in where && namespaces ? { ...rule, namespaces } : rule, demand),
      );
      const rule = missingRule(demand);
      if (isGranted || warnings.has(rule)) continue;
      const what = `kube.${method} needs a permission that ${name} does not have: ${describeDemand(demand)}`;
      const place = { file: relative(process.cwd(), handler), line, column };
      warnings.set(rule, new WatchfireError("WF_RBAC_CALL", { what, place, hint: `add to its permissions: ${rule}` }));
    }
  }
  return [...warnings.values()];
}
