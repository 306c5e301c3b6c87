import { z } from "zod";
import { accountLabel, runtimeLabel, selectorOf } from "../../catalog/names.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { LastLook } from "../../kube/last-look.ts";
import type { KubeRequest, KubeTransport } from "../../kube/transport.ts";
import {
  type Condition,
  type FunctionShare,
  type FunctionSpec,
  shareSchema,
  type statusOf,
} from "./function-object.ts";

/** The version of Function objects. */
export const apiVersion = "watchfire.dev/v1alpha1";

/** Number of objects in one page of a list. */
const pageSize = 500;

const condition = z.looseObject({ type: z.string(), status: z.string(), lastTransitionTime: z.string() });

const pageSchema = z.looseObject({
  metadata: z.looseObject({ continue: z.string().optional() }),
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string(), uid: z.string().default("") }),
      spec: z.unknown(),
      status: z
        .looseObject({
          conditions: z.array(condition).default([]),
          // An unreadable share counts as one that has not been written.
          shares: z.record(z.string(), shareSchema.nullable().catch(null)).default({}),
        })
        .optional(),
    }),
  ),
});

/** An existing Function object. */
interface FoundFunction {
  readonly name: string;
  readonly uid: string;
  readonly conditions: readonly Condition[];
  /** The shares written by replicas, by replica name; null if one cannot be read. */
  readonly shares: ReadonlyMap<string, FunctionShare | null>;
}

/** The Function objects of one runtime in its namespace. */
export class FunctionObjects {
  private readonly transport: KubeTransport;
  private readonly account: string;
  private readonly path: string;
  private readonly lastLook: LastLook | undefined;

  /** `lastLook` is checked as each write is sent. Default: every write is sent. */
  constructor(transport: KubeTransport, namespace: string, account: string, lastLook?: LastLook) {
    this.transport = transport;
    this.account = account;
    this.lastLook = lastLook;
    this.path = `/apis/${apiVersion}/namespaces/${namespace}/functions`;
  }

  /** Returns the objects with this runtime's label: the one with the given name, or all. */
  async list(signal: AbortSignal, name?: string): Promise<FoundFunction[]> {
    const found: FoundFunction[] = [];
    const fieldSelector = name === undefined ? undefined : `metadata.name=${name}`;
    let next: string | undefined;
    do {
      const query = { labelSelector: selectorOf(this.account), fieldSelector, limit: String(pageSize), continue: next };
      const page = pageSchema.parse(
        await this.transport.json<unknown>({ method: "GET", path: this.path, query, signal }),
      );
      found.push(
        ...page.items.map(({ metadata: { name, uid }, status }) => ({
          name,
          uid,
          conditions: (status?.conditions ?? []) as unknown as Condition[],
          shares: new Map(Object.entries(status?.shares ?? {})),
        })),
      );
      next = page.metadata.continue || undefined;
    } while (next);
    return found;
  }

  /** Returns false if an object of this name belongs to someone else. */
  async create(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<boolean> {
    const labels = { [runtimeLabel]: accountLabel(this.account) };
    const body = JSON.stringify({ apiVersion, kind: "Function", metadata: { name, labels }, spec: withoutNulls(spec) });
    return this.unless(409, { method: "POST", path: this.path, body, signal });
  }

  /** Returns false if the object is gone. */
  setSpec(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<boolean> {
    return this.merge(`${this.path}/${name}`, { spec }, signal);
  }

  /** Null values in `shares` remove replicas' shares. Returns false if the object is gone. */
  setStatus(
    name: string,
    status: ReturnType<typeof statusOf> & { readonly shares?: Readonly<Record<string, null>> },
    signal: AbortSignal,
  ): Promise<boolean> {
    return this.merge(`${this.path}/${name}/status`, { status }, signal);
  }

  /** Writes a replica's share and leaves everything else unchanged. Returns false if the object does not exist yet. */
  setShare(name: string, replica: string, share: FunctionShare, signal: AbortSignal): Promise<boolean> {
    return this.merge(`${this.path}/${name}/status`, { status: { shares: { [replica]: share } } }, signal);
  }

  async delete(name: string, signal: AbortSignal): Promise<void> {
    await this.unless(404, { method: "DELETE", path: `${this.path}/${name}`, signal });
  }

  private merge(path: string, patch: object, signal: AbortSignal): Promise<boolean> {
    const headers = { "content-type": "application/merge-patch+json" };
    return this.unless(404, { method: "PATCH", path, headers, body: JSON.stringify(patch), signal });
  }

  /** Makes a write. Returns false if the answer has this status. */
  private async unless(status: number, request: KubeRequest): Promise<boolean> {
    try {
      await this.transport.json({ ...request, lastLook: this.lastLook });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === status) return false;
      throw error;
    }
  }
}

/** In a create request there is nothing to remove. */
const withoutNulls = (value: FunctionSpec): unknown =>
  JSON.parse(JSON.stringify(value), (_, inner: unknown) => (inner === null ? undefined : inner));
