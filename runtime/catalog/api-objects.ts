import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { applyBody, applyType } from "../kube/apply-body.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeRequest, KubeTransport } from "../kube/transport.ts";

/** Field manager of the fields that `deploy` sets, in `managedFields`. */
const fieldManager = "watchfire-deploy";

/** Concurrent requests. */
const parallel = 8;

/** Time limit of a write, in milliseconds, so that no lock expires while a request is running. */
const writeMs = 10_000;

/** Objects per page: twenty of the largest ConfigMaps stay within the limit of an answer. */
const pageSize = 20;

const rbac = { group: "rbac.authorization.k8s.io", version: "v1" } as const;

const resources = {
  ConfigMap: { group: "", version: "v1", plural: "configmaps", namespaced: true },
  ServiceAccount: { group: "", version: "v1", plural: "serviceaccounts", namespaced: true },
  ClusterRole: { ...rbac, plural: "clusterroles", namespaced: false },
  ClusterRoleBinding: { ...rbac, plural: "clusterrolebindings", namespaced: false },
  Role: { ...rbac, plural: "roles", namespaced: true },
  RoleBinding: { ...rbac, plural: "rolebindings", namespaced: true },
} as const;

/** A kind that `deploy` writes. */
export type DeployedKind = keyof typeof resources;

/** An object to be applied. */
export interface AppliedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** Reads an object of the cluster; its kind is not in the items of a list. */
export const foundSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    uid: z.string(),
    resourceVersion: z.string().default(""),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
});

/** An object as it is in the cluster. */
export type ClusterObject = z.output<typeof foundSchema> & { readonly kind: string };

const pageSchema = z.looseObject({
  metadata: z.looseObject({ continue: z.string().optional() }),
  items: z.array(foundSchema),
});

/** Reads and writes the objects of a deployment. An API server's refusal becomes a WF_DEPLOYED_REFUSED that names the object. */
export class ApiObjects {
  private readonly transport: KubeTransport;
  private readonly guard: () => Promise<void>;

  /** `guard` is awaited before each `apply` and `delete`, and prevents it by throwing. */
  constructor(transport: KubeTransport, guard: () => Promise<void> = async () => undefined) {
    this.transport = transport;
    this.guard = guard;
  }

  /** Applies each object by server-side apply, eight at a time; `applied` is called for each one done. */
  async apply(objects: readonly AppliedObject[], applied?: (found: ClusterObject) => void): Promise<void> {
    await each(objects, async (object) => {
      await this.guard();
      const found = await this.patch(object);
      applied?.(found);
    });
  }

  /**
   * Creates each object, eight at a time; `created` is called for each one done.
   * @throws WatchfireError WF_DEPLOYED_CONFLICT if one is there
   */
  async create(objects: readonly AppliedObject[], created?: (found: ClusterObject) => void): Promise<void> {
    await each(objects, async (object) => {
      await this.guard();
      const found = await this.replace(object, undefined);
      created?.(found);
    });
  }

  /**
   * Checks by dry run whether the API server would apply each object. For a binding, the answer is only known once its role
   * exists.
   */
  async tryApply(objects: readonly AppliedObject[]): Promise<void> {
    await each(objects, async (object) => {
      await this.patch(object, "All").catch((error: unknown) => {
        const notFound = error instanceof WatchfireError && (error.cause as Partial<ApiError>)?.status === 404;
        if (!(notFound && object.kind.endsWith("Binding"))) throw error;
      });
    });
  }

  /**
   * Checks by dry run whether the API server would create each object.
   * @throws WatchfireError WF_DEPLOYED_CONFLICT if one is there
   */
  async tryCreate(objects: readonly AppliedObject[]): Promise<void> {
    await each(objects, async (object) => void (await this.replace(object, undefined, "All")));
  }

  private patch(object: AppliedObject, dryRun?: "All"): Promise<ClusterObject> {
    return this.ask(object, {
      method: "PATCH",
      path: pathOf(object),
      query: { fieldManager, force: "true", dryRun },
      headers: { "content-type": applyType },
      body: applyBody(object),
      timeoutMs: writeMs,
    });
  }

  /** Returns those of the objects that exist in the cluster, in their current form. */
  async find(objects: readonly Named[]): Promise<ClusterObject[]> {
    const found: ClusterObject[] = [];
    await each(objects, async (object) => {
      const answer = this.ask(object, { method: "GET", path: pathOf(object) }).catch((error: unknown) => {
        if (error instanceof WatchfireError && (error.cause as Partial<ApiError>)?.status === 404) return undefined;
        throw error;
      });
      const there = await answer;
      if (there) found.push(there);
    });
    return found;
  }

  /**
   * Replaces the object with this resourceVersion, or creates it if `resourceVersion` is `undefined`.
   * @throws WatchfireError WF_DEPLOYED_CONFLICT if it has another resourceVersion by now
   */
  async replace(object: AppliedObject, resourceVersion: string | undefined, dryRun?: "All"): Promise<ClusterObject> {
    const metadata = { ...object.metadata, ...(resourceVersion && { resourceVersion }) };
    return this.ask(object, {
      method: resourceVersion === undefined ? "POST" : "PUT",
      path: resourceVersion === undefined ? pathOf(object).replace(/\/[^/]+$/, "") : pathOf(object),
      query: { fieldManager, dryRun },
      body: JSON.stringify({ ...object, metadata }),
      timeoutMs: writeMs,
    });
  }

  /**
   * Deletes exactly these objects; one that is gone, or was replaced by another, is left alone. With `unchanged`, so is one that
   * was changed since it was read.
   */
  async delete(objects: readonly ClusterObject[], unchanged = false): Promise<void> {
    await each(objects, async (object) => {
      await this.guard();
      const { uid, resourceVersion } = object.metadata;
      const preconditions = { uid, ...(unchanged && { resourceVersion }) };
      const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions });
      const request = { method: "DELETE", path: pathOf(object), body, timeoutMs: writeMs } as const;
      await this.transport.json(request).catch((error: unknown) => {
        if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return;
        throw refused(nameOf(object), error);
      });
    });
  }

  /** Returns every object of a kind that a selector selects; `undefined` if listing is forbidden. */
  async list(kind: DeployedKind, labelSelector: string, namespace?: string): Promise<ClusterObject[] | undefined> {
    const path = resourcePath(resources[kind], namespace);
    const found: ClusterObject[] = [];
    let next: string | undefined;
    do {
      const query = { labelSelector, limit: String(pageSize), continue: next };
      try {
        const page = pageSchema.parse(await this.transport.json<unknown>({ method: "GET", path, query }));
        found.push(...page.items.map((item) => ({ ...item, kind })));
        next = page.metadata.continue || undefined;
      } catch (error) {
        if (error instanceof ApiError && error.status === 403) return undefined;
        throw refused(path, error);
      }
    } while (next);
    return found;
  }

  /**
   * Returns the ConfigMaps of a namespace that a selector selects.
   * @throws WatchfireError WF_DEPLOYED_REFUSED if listing them is forbidden
   */
  async listConfigMaps(labelSelector: string, namespace: string): Promise<ClusterObject[]> {
    const found = await this.list("ConfigMap", labelSelector, namespace);
    if (found) return found;
    throw new WatchfireError("WF_DEPLOYED_REFUSED", {
      what: `listing the ConfigMaps of ${namespace} is not allowed`,
      hint: `name a namespace of yours with --namespace, or ask for the rights that \`watchfire rbac --role deployer\` prints`,
    });
  }

  private async ask(object: Named, request: KubeRequest): Promise<ClusterObject> {
    try {
      return { ...foundSchema.parse(await this.transport.json<unknown>(request)), kind: object.kind };
    } catch (error) {
      throw refused(nameOf(object), error);
    }
  }
}

/**
 * Runs an action for each item, eight at a time. After the first failure no more are started; resolves or rejects when those that
 * were started have ended.
 */
async function each<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  let failed = false;
  const worker = async () => {
    for (const item of rest) {
      if (failed) return;
      await act(item).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(parallel, items.length) }, worker));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

function refused(name: string, error: unknown): unknown {
  // A 401 concerns the user, not the object.
  if (!(error instanceof ApiError) || error.status === 401) return error;
  const code = error.status === 409 ? "WF_DEPLOYED_CONFLICT" : "WF_DEPLOYED_REFUSED";
  return new WatchfireError(code, {
    what: `${name}: ${error.message}`,
    ...(error.reason === "AlreadyExists" && { hint: foreign }),
    cause: error,
  });
}

const foreign =
  "run the command again if another deployment made it; otherwise the object is not of this runtime: look at it, and delete it";

type Named = Pick<AppliedObject, "kind"> & { metadata: Pick<AppliedObject["metadata"], "name" | "namespace"> };

function pathOf({ kind, metadata }: Named): string {
  const resource = Object.hasOwn(resources, kind) ? resources[kind as DeployedKind] : undefined;
  if (!resource) throw new TypeError(`nothing of kind ${kind} is deployed`);
  return resourcePath(resource, metadata.namespace, metadata.name);
}

/** Returns `Role team-a/watchfire-greet.watchfire`. */
export const nameOf = ({ kind, metadata: { name, namespace } }: Named): string =>
  `${kind} ${[namespace, name].filter(Boolean).join("/")}`;
