import { ConflictError } from "./errors.ts";
import type {
  ApplyOptions,
  DeleteOptions,
  EvictOptions,
  JsonPatchOperation,
  KindsQuery,
  Kube,
  ListQuery,
  ObjectList,
  PatchType,
  Ref,
  Scale,
  ServedKind,
  SubresourceOptions,
} from "./kube.ts";
import type { UnknownObject } from "./object.ts";
import type { Call } from "./operations.ts";

/** Attempts of `retryOnConflict`, with the delays of client-go's `retry.DefaultRetry` (util/retry/util.go). */
const conflictAttempts = 5;
const conflictDelayMs = 10;
const conflictJitter = 0.1;

/** `Kube` without a type for each kind, for its implementation and for tests that replace one of its calls. */
export interface RawKube {
  get(ref: Ref): Promise<UnknownObject>;
  list(query: ListQuery): Promise<ObjectList<UnknownObject>>;
  create(object: UnknownObject): Promise<UnknownObject>;
  update(object: UnknownObject): Promise<UnknownObject>;
  patch(ref: Ref, patch: object | JsonPatchOperation[], options?: { type?: PatchType }): Promise<UnknownObject>;
  apply(object: UnknownObject, options?: ApplyOptions): Promise<UnknownObject>;
  delete(ref: Ref, options?: DeleteOptions): Promise<UnknownObject>;
  updateStatus(object: UnknownObject): Promise<UnknownObject>;
  patchStatus(ref: Ref, patch: object): Promise<UnknownObject>;
  getScale(ref: Ref): Promise<Scale>;
  setScale(ref: Ref, replicas: number): Promise<Scale>;
  restart(ref: Ref): Promise<UnknownObject>;
  evict(pod: Ref, options?: EvictOptions): Promise<UnknownObject>;
  subresource(ref: Ref, name: string, body: object, options?: SubresourceOptions): Promise<UnknownObject>;
  kinds(query?: KindsQuery): Promise<ServedKind[]>;
  retryOnConflict(ref: Ref, change: (object: UnknownObject) => unknown): Promise<UnknownObject>;
}

/** Dependencies of the client. */
export interface ClientParts {
  readonly call: Call;
  /** Resolves after that many milliseconds. */
  readonly pause: (delayMs: number) => Promise<void>;
  /** In [0, 1), for jitter. Default `Math.random`. */
  readonly random?: () => number;
}

/** Creates `ctx.kube` on top of a function that carries calls: the sandbox passes its own, the test harness another. */
export function createKube({ call, pause, random = Math.random }: ClientParts): Kube {
  const kube: RawKube = {
    get: (ref) => call("kube.get", { ref }),
    list: async (query) => {
      const list = await call("kube.list", query);
      // The API states apiVersion and kind once per list; without them an item could not be passed to update or apply.
      const { apiVersion, kind } = query;
      // Assigned in place: a copy would lose the text of numbers that cannot be held exactly.
      for (const item of list.items) if (item.kind === undefined) Object.assign(item, { apiVersion, kind });
      return list;
    },
    create: (object) => call("kube.create", { object }),
    update: (object) => call("kube.update", { object }),
    patch: (ref, patch, options) => call("kube.patch", { ...options, ref, patch }),
    apply: (object, options) => call("kube.apply", { ...options, object }),
    delete: (ref, options) => call("kube.delete", { ...options, ref }),
    updateStatus: (object) => call("kube.updateStatus", { object }),
    patchStatus: (ref, patch) => call("kube.patchStatus", { ref, patch }),
    getScale: (ref) => call("kube.getScale", { ref }),
    setScale: (ref, replicas) => call("kube.setScale", { ref, replicas }),
    restart: (ref) => call("kube.restart", { ref }),
    evict: (ref, options) => call("kube.evict", { ...options, ref }),
    subresource: (ref, name, body, options) => call("kube.subresource", { ...options, ref, name, body }),
    kinds: (query = {}) => call("kube.kinds", query),
    async retryOnConflict(ref, change) {
      for (let attempt = 1; ; attempt++) {
        const object = await kube.get(ref);
        const changed = ((await change(object)) as UnknownObject | undefined) ?? object;
        try {
          return await kube.update(changed);
        } catch (error) {
          if (!(error instanceof ConflictError) || attempt === conflictAttempts) throw error;
          await pause(conflictDelayMs * 2 ** (attempt - 1) * (1 + conflictJitter * random()));
        }
      }
    },
  };
  // A caller may name the expected type, or the kind's own type is used; neither can be checked at run time.
  return kube as Kube;
}
