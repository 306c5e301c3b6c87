import { relative } from "node:path";
import { describeDemand, grants, missingRule } from "../access/grants.ts";
import { type CallPermission, type KubeOperation, kubeOperations } from "../access/kube-operations.ts";
import { WatchfireError } from "../base/errors.ts";
import { splitApiVersion } from "../kube/discovery.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LiteralCall } from "../types/handler-text.ts";
import type { KnownKinds } from "./kinds.ts";

/** Returns the permissions that a method of `ctx.kube` needs, if they do not depend on its arguments. */
function needsOf(method: string): readonly CallPermission[] {
  if (method === "retryOnConflict") return [{ verb: "get" }, { verb: "update" }];
  const name = `kube.${method}`;
  const needs = Object.hasOwn(kubeOperations, name) ? kubeOperations[name as KubeOperation].needs : undefined;
  return needs ? [needs] : [];
}

/**
 * Returns a warning for each request of a handler's literal calls that no permission could grant, with the rule to add. Names are
 * not compared, except that a rule with names grants no `create`, and namespaces only where the call names one. Unknown kinds are not checked.
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
    for (const needs of needsOf(method)) {
      const demand = { group: splitApiVersion(apiVersion).group, resource: facts.plural, ...needs, ...where };
      // A create sends no name to the API server's authorizer, so no rule with names grants it.
      const isUnnamed = needs.verb === "create" && needs.subresource === undefined;
      const isGranted = permissions.some(({ resourceNames, namespaces, ...rule }) => {
        if (isUnnamed && resourceNames) return false;
        return grants("namespace" in where && namespaces ? { ...rule, namespaces } : rule, demand);
      });
      const rule = missingRule(demand);
      if (isGranted || warnings.has(rule)) continue;
      const what = `kube.${method} needs a permission that ${name} does not have: ${describeDemand(demand)}`;
      const place = { file: relative(process.cwd(), handler), line, column };
      warnings.set(rule, new WatchfireError("WF_RBAC_CALL", { what, place, hint: `add to its permissions: ${rule}` }));
    }
  }
  return [...warnings.values()];
}
