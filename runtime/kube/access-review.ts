import { z } from "zod";
import { ApiError } from "./api-error.ts";
import type { KubeTransport } from "./transport.ts";

/** One access that the API server's authorizers can be asked about. */
export interface ResourceAccess {
  /** "" for the core group. */
  readonly group: string;
  /** The plural, followed by `/` and the subresource, if any. */
  readonly resource: string;
  readonly verb: string;
  /** `undefined`: a collection, or objects of any name. */
  readonly name: string | undefined;
  /** `undefined`: cluster-scoped, or all namespaces. */
  readonly namespace: string | undefined;
}

/** A rule as the API server reports it; `*` in a list stands for everything. */
export interface GrantedRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Whose rights are reviewed: the connection's own, or those of another user, which requires the right to ask. */
type ReviewedUser =
  | "self"
  | {
      readonly user: string;
      readonly groups: readonly string[];
      readonly uid?: string;
      readonly extra?: Readonly<Record<string, readonly string[]>>;
    };

const answerLimit = 4 * 1024 * 1024;
/** Time limit, in milliseconds. The question is asked again soon, so a late answer is useless. */
const timeoutMs = 5_000;

const rulesSchema = z.looseObject({
  status: z.looseObject({
    resourceRules: z.array(
      z.looseObject({
        apiGroups: z.array(z.string()).nullish(),
        resources: z.array(z.string()).nullish(),
        resourceNames: z.array(z.string()).nullish(),
        verbs: z.array(z.string()),
      }),
    ),
  }),
});

const answerSchema = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/**
 * Returns the rules that hold for the connection's own account in a namespace (SelfSubjectRulesReview, which every account may
 * request). The list may be incomplete: authorizers other than RBAC do not report theirs.
 */
export async function ownRules(
  transport: KubeTransport,
  namespace: string,
  signal?: AbortSignal,
): Promise<GrantedRule[]> {
  const answer = await review(transport, "SelfSubjectRulesReview", { namespace }, signal);
  return rulesSchema.parse(answer).status.resourceRules.map(({ apiGroups, resources, resourceNames, verbs }) => ({
    apiGroups: apiGroups ?? [],
    resources: resources ?? [],
    verbs,
    ...(resourceNames && resourceNames.length > 0 && { resourceNames }),
  }));
}

/** Whether the API server would allow the access, after asking all its authorizers. */
export async function isAllowed(
  transport: KubeTransport,
  { group, resource, verb, name, namespace }: ResourceAccess,
  asked: ReviewedUser,
  signal?: AbortSignal,
): Promise<boolean> {
  const [plural = "", subresource] = resource.split("/");
  const resourceAttributes = { group, resource: plural, subresource, verb, name, namespace };
  const kind = asked === "self" ? "SelfSubjectAccessReview" : "SubjectAccessReview";
  const answer = await review(transport, kind, { resourceAttributes, ...(asked !== "self" && asked) }, signal);
  return answerSchema.parse(answer).status.allowed;
}

const userSchema = z.looseObject({ status: z.looseObject({ userInfo: z.looseObject({ username: z.string() }) }) });

/** Returns the user that the API server takes the connection for; `undefined` if it does not say, as before Kubernetes 1.28. */
export async function ownUser(transport: KubeTransport): Promise<string | undefined> {
  const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  try {
    const answer = await transport.json<unknown>({ method: "POST", path, body, timeoutMs }, answerLimit);
    return userSchema.parse(answer).status.userInfo.username;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}

function review(transport: KubeTransport, kind: string, spec: object, signal?: AbortSignal): Promise<unknown> {
  const path = `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`;
  const body = JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind, spec });
  return transport.json<unknown>({ method: "POST", path, body, timeoutMs, ...(signal && { signal }) }, answerLimit);
}
