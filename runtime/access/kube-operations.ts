import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { applyType } from "../kube/apply-body.ts";
import { invalid, withheld } from "./failure.ts";
import type { RequestAttributes } from "./grants.ts";
import { collectionShape, objectSchema, type Reference, referenceOf, refSchema } from "./reference.ts";

/** The permission that a request needs, besides its kind. */
export type CallPermission = Pick<RequestAttributes, "verb" | "subresource">;

/** The request of an operation, before its kind is resolved. */
export interface Plan extends CallPermission {
  readonly target: Reference;
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

/** The parts of a plan besides those that follow from what the operation needs. */
type PlannedRequest = Omit<Plan, "verb" | "method"> & Partial<CallPermission>;

/** An operation that is one request to the API server. */
interface KubeOperationOf<Schema extends z.ZodType> {
  /** Checks the arguments, which come from untrusted code. */
  readonly args: Schema;
  /** The permission that it needs, unless the arguments name it. */
  readonly needs?: CallPermission;
  readonly request: (args: z.output<Schema>, now: number) => PlannedRequest;
}

const operation = <Schema extends z.ZodType>(of: KubeOperationOf<Schema>): KubeOperationOf<Schema> => of;

/** Maximum length of a selector: far above real ones, far below the limit of a URL. */
export const selectorSchema = z.string().max(2048).optional();

/** Its fields are not visited, because there may be tens of thousands. */
const patchObject = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  { error: "is not an object" },
);

const preconditions = z
  .strictObject({ uid: z.string().max(128).optional(), resourceVersion: z.string().max(128).optional() })
  .optional();

/** A number of seconds or replicas. */
const int32 = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);

const patchTypes = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
} as const;

/** Subresources that lead past the checks of objects: into a pod or a node, to any address, or to an account's token. */
const neverWritten: ReadonlySet<string> = new Set(["attach", "exec", "portforward", "proxy", "token"]);

/** The HTTP method of each verb. */
const methods = { get: "GET", list: "GET", create: "POST", update: "PUT", patch: "PATCH", delete: "DELETE" } as const;

/**
 * Every operation that is one request, with the permission that it needs. `apply` is server-side apply. `setScale` is a merge patch
 * of `/scale`, so it needs neither a read before it nor the verb `update`. The guest's counterpart is `Operations` of the SDK.
 */
export const kubeOperations = {
  "kube.get": operation({
    args: z.strictObject({ ref: refSchema }),
    needs: { verb: "get" },
    request: ({ ref }) => ({ target: ref }),
  }),
  "kube.list": operation({
    args: z.strictObject({
      ...collectionShape,
      labelSelector: selectorSchema,
      fieldSelector: selectorSchema,
      limit: z.int().min(1).max(10_000).optional(),
      continue: z.string().max(4096).optional(),
    }),
    needs: { verb: "list" },
    request: ({ apiVersion, kind, namespace, limit, ...query }) => ({
      target: { apiVersion, kind, ...(namespace !== undefined && { namespace }) },
      query: { ...query, limit: limit?.toString() },
    }),
  }),
  "kube.create": operation({
    args: z.strictObject({ object: objectSchema }),
    needs: { verb: "create" },
    request: ({ object }) => {
      const { name, ...collection } = referenceOf(object);
      if (name === undefined && !object.metadata.generateName) throw invalid("kube.create: metadata.name is missing");
      return { target: collection, body: object };
    },
  }),
  "kube.update": operation({
    args: z.strictObject({ object: objectSchema }),
    needs: { verb: "update" },
    request: ({ object }) => ({ ...written(object), mayCreate: true }),
  }),
  "kube.patch": operation({
    args: z.discriminatedUnion("type", [
      z.strictObject({ ref: refSchema, patch: patchObject, type: z.enum(["merge", "strategic"]) }),
      z.strictObject({ ref: refSchema, patch: z.array(patchObject).max(10_000), type: z.literal("json") }),
    ]),
    needs: { verb: "patch" },
    request: ({ ref, patch, type }) => ({ target: ref, body: patch, contentType: patchTypes[type] }),
  }),
  "kube.apply": operation({
    args: z.strictObject({
      object: objectSchema,
      force: z.boolean().optional(),
      skipUnchanged: z.boolean().optional(),
    }),
    needs: { verb: "patch" },
    request: ({ object, force, skipUnchanged }) => ({
      ...written(object),
      contentType: applyType,
      query: { force: force ? "true" : undefined },
      mayCreate: true,
      skipUnchanged,
    }),
  }),
  "kube.delete": operation({
    args: z.strictObject({
      ref: refSchema,
      propagationPolicy: z.enum(["Background", "Foreground", "Orphan"]).optional(),
      preconditions,
    }),
    needs: { verb: "delete" },
    request: ({ ref, ...options }) => ({
      target: ref,
      body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
    }),
  }),
  "kube.updateStatus": operation({
    args: z.strictObject({ object: objectSchema }),
    needs: { verb: "update", subresource: "status" },
    request: ({ object }) => written(object),
  }),
  "kube.patchStatus": operation({
    args: z.strictObject({ ref: refSchema, patch: patchObject }),
    needs: { verb: "patch", subresource: "status" },
    request: ({ ref, patch }) => merged(ref, patch),
  }),
  "kube.getScale": operation({
    args: z.strictObject({ ref: refSchema }),
    needs: { verb: "get", subresource: "scale" },
    request: ({ ref }) => ({ target: ref }),
  }),
  "kube.setScale": operation({
    args: z.strictObject({ ref: refSchema, replicas: int32 }),
    needs: { verb: "patch", subresource: "scale" },
    request: ({ ref, replicas }) => merged(ref, { spec: { replicas } }),
  }),
  "kube.restart": operation({
    args: z.strictObject({
      ref: refSchema.extend({
        apiVersion: z.literal("apps/v1"),
        kind: z.enum(["Deployment", "StatefulSet", "DaemonSet"]),
      }),
    }),
    needs: { verb: "patch" },
    // kubectl's own annotation, to the second as it writes it (`polymorphichelpers/objectrestarter.go`).
    request: ({ ref }, now) => {
      const restartedAt = new Date(now).toISOString().replace(/\.\d+/, "");
      const metadata = { annotations: { "kubectl.kubernetes.io/restartedAt": restartedAt } };
      return merged(ref, { spec: { template: { metadata } } });
    },
  }),
  "kube.evict": operation({
    args: z.strictObject({
      ref: refSchema.extend({ apiVersion: z.literal("v1"), kind: z.literal("Pod") }),
      gracePeriodSeconds: int32.optional(),
      preconditions,
    }),
    needs: { verb: "create", subresource: "eviction" },
    request: ({ ref, ...deleteOptions }) => {
      const { name, namespace } = ref;
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, deleteOptions };
      return { target: ref, body };
    },
  }),
  "kube.subresource": operation({
    args: z.strictObject({
      ref: refSchema,
      name: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, { error: "is not the name of a subresource such as resize" }),
      body: patchObject,
      verb: z.enum(["patch", "update", "create"]).default("patch"),
      type: z.enum(["merge", "strategic"]).optional(),
    }),
    request: ({ ref, name, body, verb, type }) => {
      if (neverWritten.has(name)) {
        const what = `the runtime refuses to ${verb} the subresource ${name}`;
        throw withheld(new WatchfireError("WF_ACCESS_SUBRESOURCE", { what }));
      }
      if (verb !== "patch" && type !== undefined)
        throw invalid(`kube.subresource: the verb ${verb} takes no type of patch`);
      const contentType = verb === "patch" ? { contentType: patchTypes[type ?? "merge"] } : {};
      return { target: ref, verb, subresource: name, body, ...contentType };
    },
  }),
};

/** The name of an operation that is one request. */
export type KubeOperation = keyof typeof kubeOperations;

/** Checked arguments of such an operation. */
export type KubeArguments<Name extends KubeOperation> = z.output<(typeof kubeOperations)[Name]["args"]>;

/** Returns the request for an operation with checked arguments, at `now` in milliseconds since the epoch. */
export function planOf<Name extends KubeOperation>(name: Name, args: KubeArguments<Name>, now: number): Plan {
  const { needs, request } = kubeOperations[name] as unknown as KubeOperationOf<z.ZodType<KubeArguments<Name>>>;
  const planned = { ...needs, ...request(args, now) } as PlannedRequest & CallPermission;
  if (name !== "kube.list" && name !== "kube.create" && planned.target.name === undefined) {
    throw invalid(`${name}: metadata.name is missing`);
  }
  return { ...planned, method: methods[planned.verb] };
}

const written = (object: z.output<typeof objectSchema>) => ({ target: referenceOf(object), body: object });

const merged = (target: Reference, body: object) => ({ target, body, contentType: patchTypes.merge });
