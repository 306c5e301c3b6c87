import type { DeleteOptions, ListQuery, ObjectList, PatchType, Ref, Scale } from "./kube.ts";
import type { KubeObject, UnknownObject } from "./object.ts";

/**
 * What a handler's side asks of the runtime, by operation: the JSON it sends and the JSON it gets.
 * One place for both ends; the runtime checks every argument all the same.
 */
export interface Operations {
  "kube.get": { args: { ref: Ref }; result: UnknownObject };
  "kube.list": { args: ListQuery; result: ObjectList<UnknownObject> };
  "kube.create": { args: { object: KubeObject }; result: UnknownObject };
  "kube.update": { args: { object: KubeObject }; result: UnknownObject };
  "kube.patch": { args: { ref: Ref; patch: unknown; type?: PatchType }; result: UnknownObject };
  "kube.apply": { args: { object: KubeObject; force?: boolean }; result: UnknownObject };
  "kube.delete": { args: { ref: Ref } & DeleteOptions; result: UnknownObject };
  "kube.updateStatus": { args: { object: KubeObject }; result: UnknownObject };
  "kube.patchStatus": { args: { ref: Ref; patch: unknown }; result: UnknownObject };
  "kube.getScale": { args: { ref: Ref }; result: Scale };
  "kube.setScale": { args: { ref: Ref; replicas: number }; result: Scale };
  "events.emit": { args: EmitArguments; result: null };
  fetch: { args: FetchArguments; result: FetchResult };
}

/** The name of an operation. */
export type Operation = keyof Operations;

/** A Kubernetes Event to write. */
export interface EmitArguments {
  /** Of the object only what names it is sent. */
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

/** Bytes of a request's body. */
const maxBody = 1024 * 1024;

/** What is wrong with a body of so many bytes; undefined where nothing is. */
export const bodyFault = (bytes: number): string | undefined =>
  bytes > maxBody ? `the body has ${bytes} bytes, larger than the ${maxBody} that a request may have` : undefined;

/** Its response, whole. */
export interface FetchResult {
  /** The URL that answered, after redirects. */
  url: string;
  redirected: boolean;
  status: number;
  statusText: string;
  headers: [name: string, value: string][];
  /** Base64 of the body's bytes, content-decoded. */
  body: string;
}

/** Carries one operation to the runtime; rejects with a typed error. */
export type Call = <O extends Operation>(operation: O, args: Operations[O]["args"]) => Promise<Operations[O]["result"]>;
