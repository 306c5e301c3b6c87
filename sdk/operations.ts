import type {
  ApplyOptions,
  DeleteOptions,
  EvictOptions,
  KindsQuery,
  ListQuery,
  ObjectList,
  PatchType,
  Ref,
  Scale,
  ServedKind,
  SubresourceOptions,
} from "./kube.ts";
import type { KubeObject, UnknownObject } from "./object.ts";

/**
 * Requests of a handler's side to the runtime, by operation: the JSON of the arguments and of the result. Shared by both ends;
 * the runtime validates every argument all the same.
 */
export interface Operations {
  "kube.get": { args: { ref: Ref }; result: UnknownObject };
  "kube.list": { args: ListQuery; result: ObjectList<UnknownObject> };
  "kube.create": { args: { object: KubeObject }; result: UnknownObject };
  "kube.update": { args: { object: KubeObject }; result: UnknownObject };
  "kube.patch": { args: { ref: Ref; patch: unknown; type?: PatchType }; result: UnknownObject };
  "kube.apply": { args: { object: KubeObject } & ApplyOptions; result: UnknownObject };
  "kube.delete": { args: { ref: Ref } & DeleteOptions; result: UnknownObject };
  "kube.updateStatus": { args: { object: KubeObject }; result: UnknownObject };
  "kube.patchStatus": { args: { ref: Ref; patch: unknown }; result: UnknownObject };
  "kube.getScale": { args: { ref: Ref }; result: Scale };
  "kube.setScale": { args: { ref: Ref; replicas: number }; result: Scale };
  "kube.restart": { args: { ref: Ref }; result: UnknownObject };
  "kube.evict": { args: { ref: Ref } & EvictOptions; result: UnknownObject };
  "kube.subresource": { args: { ref: Ref; name: string; body: object } & SubresourceOptions; result: UnknownObject };
  "kube.kinds": { args: KindsQuery; result: ServedKind[] };
  "state.get": { args: { key: string }; result: { value?: unknown } };
  "state.keys": { args: { prefix?: string }; result: string[] };
  "state.set": { args: { key: string; value: unknown }; result: null };
  "state.delete": { args: { key: string }; result: null };
  "events.emit": { args: EmitArguments; result: null };
  fetch: { args: FetchArguments; result: FetchResult };
}

/** Name of an operation. */
export type Operation = keyof Operations;

/** A Kubernetes Event to write. */
export interface EmitArguments {
  /** Only the fields that identify the object are sent. */
  object: {
    apiVersion: string;
    kind: string;
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
  };
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** An HTTP request of `ctx.fetch`. */
export interface FetchArguments {
  url: string;
  method?: string;
  headers?: [name: string, value: string][];
  /** Base64 of the body's bytes. */
  body?: string;
  redirect?: "follow" | "error" | "manual";
}

/** Limit of a request's body, in bytes. */
const maxBody = 1024 * 1024;

/** Returns what is wrong with a body of this size; `undefined` if it is accepted. */
export const bodyFault = (bytes: number): string | undefined =>
  bytes > maxBody ? `the body has ${bytes} bytes, larger than the ${maxBody} that a request may have` : undefined;

/** A complete HTTP response. */
export interface FetchResult {
  /** URL that answered, after redirects. */
  url: string;
  redirected: boolean;
  status: number;
  statusText: string;
  headers: [name: string, value: string][];
  /** Base64 of the body's bytes, content-decoded. */
  body: string;
}

/** Sends one operation to the runtime; rejects with a typed error. */
export type Call = <O extends Operation>(operation: O, args: Operations[O]["args"]) => Promise<Operations[O]["result"]>;
