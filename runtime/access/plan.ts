import { WatchfireError } from "../base/errors.ts";
import { applyType } from "../kube/apply-body.ts";
import type { ArgumentsOf, OperationName } from "./arguments.ts";
import { invalid, withheld } from "./failure.ts";
import type { RequestAttributes } from "./grants.ts";
import { type Reference, referenceOf } from "./reference.ts";

/** The operations that are one request to the API server. */
export type KubeOperation = Exclude<Extract<OperationName, `kube.${string}`>, "kube.kinds">;

/** The request of an operation, before its kind is resolved. */
export interface Plan {
  readonly target: Reference;
  readonly verb: RequestAttributes["verb"];
  readonly subresource?: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly contentType?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
  /**
   * The request creates the object if it does not exist, for which the API server also requires `create`. Without that grant the
   * object must exist.
   */
  readonly mayCreate?: true;
  /** An apply that would change nothing need not be sent. */
  readonly skipUnchanged?: boolean | undefined;
}

const patchTypes = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
} as const;

/** Subresources that lead past the checks of objects: into a pod or a node, to any address, or to an account's token. */
const neverWritten: ReadonlySet<string> = new Set(["attach", "exec", "portforward", "proxy", "token"]);

const methods = { patch: "PATCH", update: "PUT", create: "POST" } as const;

/**
 * The request of each operation, at `now` in milliseconds. `apply` is server-side apply. `setScale` is a merge patch of `/scale`,
 * so it needs neither a read before it nor the verb `update`.
 */
const plans: { readonly [Name in KubeOperation]: (args: ArgumentsOf<Name>, now: number) => Plan } = {
  "kube.get": ({ ref }) => ({ target: ref, verb: "get", method: "GET" }),
  "kube.list": ({ apiVersion, kind, namespace, limit, ...query }) => ({
    target: { apiVersion, kind, ...(namespace !== undefined && { namespace }) },
    verb: "list",
    method: "GET",
    query: { ...query, limit: limit?.toString() },
  }),
  "kube.create": ({ object }) => {
    const { name, ...collection } = referenceOf(object);
    if (name === undefined && !object.metadata.generateName) throw invalid("kube.create: metadata.name is missing");
    return { target: collection, verb: "create", method: "POST", body: object };
  },
  "kube.update": ({ object }) => ({ ...written(object), verb: "update", method: "PUT", mayCreate: true }),
  "kube.updateStatus": ({ object }) => ({
    ...written(object),
    verb: "update",
    subresource: "status",
    method: "PUT",
  }),
  "kube.patch": ({ ref, patch, type }) => ({ ...patched(ref, patch, patchTypes[type]) }),
  "kube.patchStatus": ({ ref, patch }) => ({ ...patched(ref, patch, patchTypes.merge), subresource: "status" }),
  "kube.apply": ({ object, force, skipUnchanged }) => ({
    ...written(object),
    verb: "patch",
    method: "PATCH",
    contentType: applyType,
    query: { force: force ? "true" : undefined },
    mayCreate: true,
    skipUnchanged,
  }),
  "kube.delete": ({ ref, ...options }) => ({
    target: ref,
    verb: "delete",
    method: "DELETE",
    body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
  }),
  "kube.getScale": ({ ref }) => ({ target: ref, verb: "get", subresource: "scale", method: "GET" }),
  "kube.setScale": ({ ref, replicas }) => ({
    ...patched(ref, { spec: { replicas } }, patchTypes.merge),
    subresource: "scale",
  }),
  // kubectl's own annotation, to the second as it writes it (`polymorphichelpers/objectrestarter.go`).
  "kube.restart": ({ ref }, now) => {
    const restartedAt = new Date(now).toISOString().replace(/\.\d+/, "");
    const metadata = { annotations: { "kubectl.kubernetes.io/restartedAt": restartedAt } };
    return patched(ref, { spec: { template: { metadata } } }, patchTypes.merge);
  },
  "kube.evict": ({ ref, ...deleteOptions }) => {
    const { name, namespace } = ref;
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, deleteOptions };
    return { target: ref, verb: "create", subresource: "eviction", method: "POST", body };
  },
  "kube.subresource": ({ ref, name, body, verb, type }) => {
    if (neverWritten.has(name)) {
      const what = `the runtime refuses to ${verb} the subresource ${name}`;
      throw withheld(new WatchfireError("WF_ACCESS_SUBRESOURCE", { what }));
    }
    if (verb !== "patch" && type !== undefined)
      throw invalid(`kube.subresource: the verb ${verb} takes no type of patch`);
    const contentType = verb === "patch" ? { contentType: patchTypes[type ?? "merge"] } : {};
    return { target: ref, verb, subresource: name, method: methods[verb], body, ...contentType };
  },
};

/** Returns the request for an operation with checked arguments, at `now` in milliseconds since the epoch. */
export function planOf<Name extends KubeOperation>(operation: Name, args: ArgumentsOf<Name>, now: number): Plan {
  const plan = plans[operation](args, now);
  if (operation !== "kube.list" && operation !== "kube.create" && plan.target.name === undefined) {
    throw invalid(`${operation}: metadata.name is missing`);
  }
  return plan;
}

const written = (object: Parameters<typeof referenceOf>[0]) => ({ target: referenceOf(object), body: object });

const patched = (target: Reference, body: object, contentType: string) =>
  ({ target, body, contentType, verb: "patch", method: "PATCH" }) as const;
