import type { Clock } from "../base/clock.ts";
import { ApiError, readApiError } from "../kube/api-error.ts";
import { applyBody, applyType } from "../kube/apply-body.ts";
import type { Lookup, NotServed } from "../kube/discovery.ts";
import type { GroupVersion } from "../kube/discovery-document.ts";
import { requiredName } from "../kube/field-selector.ts";
import type { LastLook } from "../kube/last-look.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeRequest, KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { answerTooLarge, callErrorOf, notServedError, whatToCheck } from "./api-answer.ts";
import { AppliedObjects, type KeptObject } from "./applied.ts";
import { CallFailure, invalid, refused, withheld } from "./failure.ts";
import { describeDemand, isGranted, mayBeGranted, missingRule, type RequestAttributes } from "./grants.ts";
import { type KubeArguments, type KubeOperation, type Plan, planOf } from "./kube-operations.ts";
import type { OwnObjects } from "./own-objects.ts";
import type { Reference } from "./reference.ts";
import type { ServerWarnings } from "./server-warnings.ts";

/** Resolves a kind to its resource. `Discovery` of the kube room implements it. */
export interface KindLookup {
  /** Returns everything that the server's document of all kinds names. */
  served(): Promise<readonly GroupVersion[]>;
  resolve(apiVersion: string, kind: string): Promise<Lookup>;
  missing(apiVersion: string, kind: string): NotServed | undefined;
  /** Forgets a group version. */
  invalidate(apiVersion: string): void;
}

/** The whole objects of functions' `reads`. `Reads` implements it. */
export interface KeptObjects {
  /** Returns the object as it is known; `undefined` if it is not there, or the function does not keep whole objects of its kind. */
  kept(functionName: string, ref: Reference): KeptObject | undefined;
  /** Returns the state of such an object with this resourceVersion, as `kept` does; `undefined` if the function keeps no such objects. */
  stateOf(functionName: string, ref: Reference, resourceVersion: string): string | undefined;
}

/** Dependencies of `KubeCalls`. */
interface KubeParts {
  /** Returns the connection under which a function sends requests. */
  readonly transportOf: (functionName: string) => KubeTransport;
  /** True if functions have separate accounts, with no more rights than their manifests. */
  readonly ownAccounts: boolean;
  readonly discovery: KindLookup;
  /** Whole objects that functions keep in memory. Default: no objects. */
  readonly reads?: KeptObjects;
  readonly clock: Clock;
  readonly own: OwnObjects;
  readonly answers: AnswerReader;
  /** Maximum size of an answer to a guest, in bytes. */
  readonly answerLimit: number;
  /** Timeout of one request, in milliseconds. */
  readonly timeoutMs: number;
  readonly warnings: Pick<ServerWarnings, "read">;
  /** Called as each request is sent. */
  readonly lastLook?: LastLook | undefined;
}

/** The part of a call that its request needs or finds. */
interface MadeRequest {
  /** Receives the status of the answer. */
  status?: number;
  readonly traceparent?: string | undefined;
}

/** A call that the manifest grants. */
interface CheckedCall {
  readonly manifest: FunctionManifest;
  readonly plan: Plan;
  readonly demand: RequestAttributes;
  /** The object's path, or the collection's, without a subresource. */
  readonly path: string;
  /** The request's body. */
  readonly text: string | undefined;
  readonly signal: AbortSignal;
  readonly made: MadeRequest | undefined;
}

/** Returns the field manager of a function's writes, as `kubectl get --show-managed-fields` shows it. */
const fieldManager = (functionName: string): string => `watchfire:${functionName}`;

/**
 * Calls the API server on behalf of a function: resolves the kind, checks the grant, sends the request, and returns the answer.
 */
export class KubeCalls {
  private readonly parts: KubeParts;
  private readonly applied = new AppliedObjects();

  constructor(parts: KubeParts) {
    this.parts = parts;
  }

  /** Returns the answer's JSON text, unparsed. `made` receives the status of the answer. Throws CallFailure. */
  async run<Name extends KubeOperation>(
    manifest: FunctionManifest,
    operation: Name,
    args: KubeArguments<Name>,
    signal: AbortSignal,
    made?: MadeRequest,
  ): Promise<string> {
    const plan = planOf(operation, args, this.parts.clock.now());
    const resource = await this.lookUp(manifest, plan, signal);
    const demand = demandOf(plan, resource);
    assertGranted(manifest, demand);
    const objection = this.parts.own.objection(demand, plan);
    if (objection) throw withheld(objection);
    const body = await this.pinned(manifest, plan, resource, demand, signal);
    const { target, method, contentType } = plan;
    const path = resourcePath(resource, target.namespace, target.name);
    const text = body && (contentType === applyType ? applyBody(body) : JSON.stringify(body));
    const call = { manifest, plan, demand, path, text, signal, made };
    if (plan.skipUnchanged && text) return this.applyUnlessApplied({ ...call, text });
    const isWrite = method !== "GET" && target.name !== undefined;
    if (isWrite) this.applied.forget(manifest.name, path);
    try {
      return await this.send(call);
    } finally {
      if (isWrite) this.applied.forget(manifest.name, path);
    }
  }

  /** Answers with the object as it is known if the apply would change nothing. Otherwise sends it. */
  private async applyUnlessApplied(call: CheckedCall & { readonly text: string }): Promise<string> {
    const { manifest, plan, path, text } = call;
    const { reads } = this.parts;
    const { name } = manifest;
    const kept = reads?.kept(name, plan.target);
    if (kept && this.applied.isApplied(name, path, text, kept)) return kept.body.toString("utf8");
    const left = this.applied.begin(name, path, text);
    const answer = await this.send(call);
    left(reads?.stateOf(name, plan.target, resourceVersionOf(answer)));
    return answer;
  }

  private async send({ manifest, plan, demand, path, text, signal, made }: CheckedCall): Promise<string> {
    const { target, subresource, method, contentType } = plan;
    const trace = made?.traceparent === undefined ? undefined : { traceparent: made.traceparent };
    const request: KubeRequest = {
      purpose: "call",
      method,
      path: subresource === undefined ? path : `${path}/${subresource}`,
      query: { ...this.queryOf(plan, demand), fieldManager: writes(method) ? fieldManager(manifest.name) : undefined },
      ...((contentType !== undefined || trace !== undefined) && {
        headers: { ...(contentType !== undefined && { "content-type": contentType }), ...trace },
      }),
      ...(text !== undefined && { body: text }),
      timeoutMs: this.parts.timeoutMs,
      lastLook: this.parts.lastLook,
      signal,
    };
    try {
      const response = await this.parts.transportOf(manifest.name).request(request);
      if (made) made.status = response.status;
      this.parts.warnings.read(manifest.name, response.headers.warning);
      if (response.status >= 300) throw await readApiError(response);
      const { answers, answerLimit: limit } = this.parts;
      const tooLarge = () => answerTooLarge(response.status, limit);
      const reading = { functionName: manifest.name, limit, tooLarge, signal };
      return await answers.read(response.body, reading, (bytes) => bytes.toString("utf8"));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // A 404 without a Status means that the path is missing, not the object: the kind may have been removed.
      if (error instanceof ApiError && error.status === 404 && error.reason === "")
        this.parts.discovery.invalidate(target.apiVersion);
      throw new CallFailure(callErrorOf(error, demand));
    }
  }

  /** Returns the query. For a list of Secrets, adds a selector that hides the runtime's own. */
  private queryOf({ query }: Plan, demand: RequestAttributes): Plan["query"] {
    const hiding = demand.verb === "list" ? this.parts.own.hiding(demand) : undefined;
    if (hiding === undefined) return query;
    return { ...query, fieldSelector: [hiding, query?.fieldSelector].filter(Boolean).join(",") };
  }

  private async lookUp(manifest: FunctionManifest, plan: Plan, signal: AbortSignal): Promise<Resource> {
    const { apiVersion, kind } = plan.target;
    const group = groupOf(apiVersion);
    const guess = { ...demandOf(plan, { group, plural: guessPlural(kind), namespaced: true }), verb: plan.verb };
    // Discovery is not called for a call that no rule can grant. Rules cannot grant a kind that does not exist.
    if (!mayBeGranted(manifest.permissions, guess)) {
      const missing = this.parts.discovery.missing(apiVersion, kind);
      throw missing ? notServed(missing) : refusal(manifest, guess);
    }
    let found: Lookup;
    try {
      found = await this.parts.discovery.resolve(apiVersion, kind);
    } catch (error) {
      throw new CallFailure(callErrorOf(error, guess));
    }
    signal.throwIfAborted();
    if (found.type === "NotServed") throw notServed(found);
    const { resource } = found;
    assertScope(plan.target, resource, plan.verb);
    return resource;
  }

  /**
   * Returns the body to send. If the request could create an object and the manifest does not grant that, the body names the uid
   * of the existing object, so that the API server refuses to create another one (409), whatever happens in between.
   */
  private async pinned(
    manifest: FunctionManifest,
    plan: Plan,
    resource: Resource,
    demand: RequestAttributes,
    signal: AbortSignal,
  ): Promise<object | undefined> {
    const { mayCreate, body, target } = plan;
    const metadata = (body as { metadata?: { uid?: string } } | undefined)?.metadata;
    const create: RequestAttributes = { ...demand, verb: "create" };
    if (!mayCreate || metadata?.uid || isGranted(manifest.permissions, create)) return body;
    // The function's account has no right to create either, and may not read unless the manifest grants it.
    if (this.parts.ownAccounts && !isGranted(manifest.permissions, { ...demand, verb: "get" })) return body;
    const path = resourcePath(resource, target.namespace, target.name);
    const { timeoutMs, lastLook } = this.parts;
    try {
      const request: KubeRequest = { purpose: "call", method: "GET", path, timeoutMs, lastLook, signal };
      const transport = this.parts.transportOf(manifest.name);
      const existing = await transport.json<{ metadata: { uid: string } }>(request, this.parts.answerLimit);
      return { ...body, metadata: { ...metadata, uid: existing.metadata.uid } };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const missing = error instanceof ApiError && error.status === 404;
      if (missing && plan.verb === "patch") throw refusal(manifest, create);
      throw new CallFailure(callErrorOf(error, demand));
    }
  }
}

/** Throws the refusal if no rule of the manifest grants the call. */
export function assertGranted(manifest: FunctionManifest, demand: RequestAttributes): void {
  if (!isGranted(manifest.permissions, demand)) throw refusal(manifest, demand);
}

const notServed = ({ reason, hint }: NotServed): CallFailure =>
  new CallFailure(notServedError(hint === undefined ? `${reason}; ${whatToCheck}` : reason));

function refusal(manifest: FunctionManifest, demand: RequestAttributes): CallFailure {
  const rule = missingRule(demand);
  return refused(
    `the manifest of ${manifest.name} does not grant ${describeDemand(demand)}; add to its permissions: ${rule}`,
    rule,
  );
}

/** Returns the attributes of the call. For the API server, an object of kind Namespace is in itself. */
function demandOf(plan: Plan, resource: Pick<Resource, "group" | "plural" | "namespaced">): RequestAttributes {
  const { target, verb, subresource, query } = plan;
  const name = verb === "list" ? requiredName(query?.fieldSelector ?? "") : target.name;
  const itself = resource.group === "" && resource.plural === "namespaces" ? target.name : undefined;
  const namespace = resource.namespaced ? target.namespace : itself;
  return {
    group: resource.group,
    resource: resource.plural,
    verb,
    ...(subresource !== undefined && { subresource }),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  };
}

function assertScope({ namespace, kind }: Reference, resource: Resource, verb: RequestAttributes["verb"]): void {
  if (!resource.namespaced && namespace !== undefined) {
    throw invalid(`${kind} is cluster-scoped: it takes no namespace, got ${JSON.stringify(namespace)}`);
  }
  if (resource.namespaced && namespace === undefined && verb !== "list") {
    throw invalid(`${kind} is namespaced: the namespace is missing`);
  }
}

/** Returns the resourceVersion of an answered object; "" if there is no such field. */
function resourceVersionOf(answer: string): string {
  try {
    const { metadata } = JSON.parse(answer) as { metadata?: { resourceVersion?: string } };
    return metadata?.resourceVersion ?? "";
  } catch {
    return "";
  }
}

const writes = (method: Plan["method"]): boolean => method !== "GET" && method !== "DELETE";

const groupOf = (apiVersion: string): string =>
  apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";

/** Guesses the plural as apimachinery does (`meta/restmapper.go`), for a refusal before discovery. */
function guessPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular.endsWith("s")) return `${singular}es`;
  return singular.endsWith("y") ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}
