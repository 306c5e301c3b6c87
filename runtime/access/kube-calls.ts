import type { Clock } from "../base/clock.ts";
import { ApiError, readApiError } from "../kube/api-error.ts";
import { applyBody, applyType } from "../kube/apply-body.ts";
import type { Lookup, NotServed } from "../kube/discovery.ts";
import { requiredName } from "../kube/field-selector.ts";
import type { LastLook } from "../kube/last-look.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeRequest, KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { answerTooLarge, callErrorOf } from "./api-answer.ts";
import type { ArgumentsOf } from "./arguments.ts";
import { CallFailure, invalid, refused, withheld } from "./failure.ts";
import { describeDemand, isGranted, mayBeGranted, missingRule, type RequestAttributes } from "./grants.ts";
import type { OwnObjects } from "./own-objects.ts";
import { type KubeOperation, type Plan, planOf } from "./plan.ts";
import type { Reference } from "./reference.ts";

/** Turns a kind into its resource; `Discovery` of the kube room is one. */
export interface KindLookup {
  resolve(apiVersion: string, kind: string): Promise<Lookup>;
  missing(apiVersion: string, kind: string): NotServed | undefined;
  /** Forgets what it knew of a group version. */
  invalidate(apiVersion: string): void;
}

/** What the client of the cluster needs. */
interface KubeParts {
  /** The connection by which a function asks. */
  readonly transportOf: (functionName: string) => KubeTransport;
  /** It asks under an account of its own, with no more rights than its manifest says. */
  readonly ownAccounts: boolean;
  readonly discovery: KindLookup;
  readonly clock: Clock;
  readonly own: OwnObjects;
  readonly answers: AnswerReader;
  /** Largest answer handed to a guest, in bytes. */
  readonly answerLimit: number;
  /** Limit of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Asked as each request is written to the network. */
  readonly lastLook?: LastLook | undefined;
}

/** The field manager of a function's writes, as `kubectl get --show-managed-fields` shows it. */
const fieldManager = (functionName: string): string => `watchfire:${functionName}`;

/** Asks the API server in a function's name: looks the kind up, checks the grant, sends, and passes the answer on. */
export class KubeCalls {
  private readonly parts: KubeParts;

  constructor(parts: KubeParts) {
    this.parts = parts;
  }

  /** The answer's JSON text, unparsed. Throws CallFailure. */
  async run<Name extends KubeOperation>(
    manifest: FunctionManifest,
    operation: Name,
    args: ArgumentsOf<Name>,
    signal: AbortSignal,
  ): Promise<string> {
    const plan = planOf(operation, args, this.parts.clock.now());
    const resource = await this.lookUp(manifest, plan, signal);
    const demand = demandOf(plan, resource);
    assertGranted(manifest, demand);
    const objection = this.parts.own.objection(demand, plan);
    if (objection) throw withheld(objection);
    const body = await this.pinned(manifest, plan, resource, demand, signal);
    const { target, subresource, method, contentType } = plan;
    const request: KubeRequest = {
      purpose: "call",
      method,
      path: resourcePath(resource, target.namespace, target.name, subresource),
      query: { ...this.queryOf(plan, demand), fieldManager: writes(method) ? fieldManager(manifest.name) : undefined },
      ...(contentType !== undefined && { headers: { "content-type": contentType } }),
      ...(body !== undefined && { body: contentType === applyType ? applyBody(body) : JSON.stringify(body) }),
      timeoutMs: this.parts.timeoutMs,
      lastLook: this.parts.lastLook,
      signal,
    };
    try {
      const response = await this.parts.transportOf(manifest.name).request(request);
      if (response.status >= 300) throw await readApiError(response);
      const { answers, answerLimit: limit } = this.parts;
      const tooLarge = () => answerTooLarge(response.status, limit);
      const reading = { functionName: manifest.name, limit, tooLarge, signal };
      return await answers.read(response.body, reading, (bytes) => bytes.toString("utf8"));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // A 404 without a Status is the path's, not the object's: the kind may have been taken away.
      if (error instanceof ApiError && error.status === 404 && error.reason === "")
        this.parts.discovery.invalidate(target.apiVersion);
      throw new CallFailure(callErrorOf(error, demand));
    }
  }

  /** Of a list of Secrets: without the runtime's own. */
  private queryOf({ query }: Plan, demand: RequestAttributes): Plan["query"] {
    const hiding = demand.verb === "list" ? this.parts.own.hiding(demand) : undefined;
    if (hiding === undefined) return query;
    return { ...query, fieldSelector: [hiding, query?.fieldSelector].filter(Boolean).join(",") };
  }

  private async lookUp(manifest: FunctionManifest, plan: Plan, signal: AbortSignal): Promise<Resource> {
    const { apiVersion, kind } = plan.target;
    const group = groupOf(apiVersion);
    const guess = { ...demandOf(plan, { group, plural: guessPlural(kind), namespaced: true }), verb: plan.verb };
    // Not even discovery is asked on behalf of a call that no rule can grant. No rule is for a kind that there is not.
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
   * The body to send. Where the request could create and the manifest does not grant it, the body names the uid of the
   * object that is there. The API server then refuses to create another (409), whatever happens in between.
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
    // The function's own account has no right to create either; nor may it read where the manifest says nothing of that.
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

/** Throws the refusal of a call that no rule of the manifest grants. */
export function assertGranted(manifest: FunctionManifest, demand: RequestAttributes): void {
  if (!isGranted(manifest.permissions, demand)) throw refusal(manifest, demand);
}

/** No NotFoundError: a handler that takes "no such kind" for "no such object" would tidy up what is in use. */
const notServed = ({ reason: message }: NotServed): CallFailure =>
  new CallFailure({ type: "KubeError", message, status: 404, reason: "NotServed" });

function refusal(manifest: FunctionManifest, demand: RequestAttributes): CallFailure {
  const rule = missingRule(demand);
  return refused(
    `the manifest of ${manifest.name} does not grant ${describeDemand(demand)}; add to its permissions: ${rule}`,
    rule,
  );
}

/** What the call asks for. To the API server, an object of kind Namespace lies within itself. */
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

const writes = (method: Plan["method"]): boolean => method !== "GET" && method !== "DELETE";

const groupOf = (apiVersion: string): string =>
  apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";

/** The plural as apimachinery guesses it (`meta/restmapper.go`), for the words of a refusal before discovery. */
function guessPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular.endsWith("s")) return `${singular}es`;
  return singular.endsWith("y") ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}
