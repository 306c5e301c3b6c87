import { accountLabel, runtimeLabel, selectorOf } from "../../catalog/names.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { LastLook } from "../../kube/last-look.ts";
import type { KubeRequest, KubeTransport } from "../../kube/transport.ts";

/** The version of Function and FunctionSet objects. */
export const apiVersion = "watchfire.dev/v1alpha1";

/** Number of objects in one page of a list. */
const pageSize = 500;

/** A kind of object that the runtime writes, by its name and its resource. */
type StatusKind =
  | { readonly kind: "Function"; readonly plural: "functions" }
  | { readonly kind: "FunctionSet"; readonly plural: "functionsets" };

/** The place of the objects of one runtime. */
interface ObjectsPlace {
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** The runtime's account, whose label the objects have. */
  readonly account: string;
  /** Checked as each write is sent. Default: every write is sent. */
  readonly lastLook?: LastLook | undefined;
}

/** One page of a list. */
interface Page<T> {
  readonly metadata: { readonly continue?: string | undefined };
  readonly items: readonly T[];
}

/** The objects of one kind with the label of one runtime, in one namespace. */
export class LabelledObjects {
  private readonly place: ObjectsPlace;
  private readonly kind: StatusKind;
  private readonly path: string;

  constructor(kind: StatusKind, place: ObjectsPlace) {
    this.kind = kind;
    this.place = place;
    this.path = `/apis/${apiVersion}/namespaces/${place.namespace}/${kind.plural}`;
  }

  /** Returns the one with the given name, or all. `parse`: reads a page. */
  async list<T>(parse: (page: unknown) => Page<T>, signal: AbortSignal, name?: string): Promise<T[]> {
    const { transport, account } = this.place;
    const found: T[] = [];
    const fieldSelector = name === undefined ? undefined : `metadata.name=${name}`;
    let next: string | undefined;
    do {
      const query = { labelSelector: selectorOf(account), fieldSelector, limit: String(pageSize), continue: next };
      const page = parse(await transport.json<unknown>({ method: "GET", path: this.path, query, signal }));
      found.push(...page.items);
      next = page.metadata.continue || undefined;
    } while (next);
    return found;
  }

  /** Null values in `spec` are left out. Returns false if an object of this name belongs to someone else. */
  async create(name: string, spec: object, signal: AbortSignal): Promise<boolean> {
    const labels = { [runtimeLabel]: accountLabel(this.place.account) };
    const { kind } = this.kind;
    const body = JSON.stringify({ apiVersion, kind, metadata: { name, labels }, spec: withoutNulls(spec) });
    return this.unless(409, { method: "POST", path: this.path, body, signal });
  }

  /** Changes fields of the spec; null removes one. Returns false if the object is gone. */
  setSpec(name: string, spec: object, signal: AbortSignal): Promise<boolean> {
    return this.merge(`${this.path}/${name}`, { spec }, signal);
  }

  /** Changes fields of the status; null removes one. Returns false if the object does not exist. */
  setStatus(name: string, status: object, signal: AbortSignal): Promise<boolean> {
    return this.merge(`${this.path}/${name}/status`, { status }, signal);
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
    const { transport, lastLook } = this.place;
    try {
      await transport.json({ ...request, lastLook });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === status) return false;
      throw error;
    }
  }
}

const withoutNulls = (value: object): unknown =>
  JSON.parse(JSON.stringify(value), (_, inner: unknown) => (inner === null ? undefined : inner));
