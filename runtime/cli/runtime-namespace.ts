import { z } from "zod";
import { sharedRuntimeName } from "../catalog/names.ts";
import { ApiError } from "../kube/api-error.ts";
import { dnsLabel } from "../kube/names.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { RulesOptions } from "../rbac/rules.ts";
import type { Option } from "./command.ts";

export const runtimeNamespaceOption = {
  value: "NS",
  summary:
    "the namespace of a runtime that --namespace shares; default: what the chart wrote into it, or --namespace itself",
} as const satisfies Option;

const schema = z.looseObject({ data: z.looseObject({ namespace: z.string().regex(dnsLabel) }) });

/**
 * Returns the rules' options with the namespace of the runtime that the sets' namespace shares: as given, or as the chart wrote it
 * into a ConfigMap there. Unchanged if the ConfigMap is missing, or may not be read.
 */
export async function withRuntimeNamespace<R extends RulesOptions>(rules: R, transport: KubeTransport): Promise<R> {
  if (rules.runtimeNamespace !== undefined) return rules;
  const { namespace, account } = rules;
  const collection = { group: "", version: "v1", plural: "configmaps", namespaced: true };
  const path = resourcePath(collection, namespace, sharedRuntimeName(account));
  try {
    const found = schema.safeParse(await transport.json<unknown>({ method: "GET", path }));
    return found.success ? { ...rules, runtimeNamespace: found.data.data.namespace } : rules;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return rules;
    throw error;
  }
}
