import type {
  ApplyOptions,
  DeleteOptions,
  EvictOptions,
  JsonPatchOperation,
  KindsQuery,
  ListQuery,
  ObjectList,
  PatchType,
  Ref,
  Scale,
  ServedKind,
  SubresourceOptions,
} from "./kube.ts";
import type { UnknownObject } from "./object.ts";

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
