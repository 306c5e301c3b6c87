import { functionAccount } from "../access/account.ts";
import type { Clock, Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { type GrantedRule, isAllowed, ownRules } from "../kube/access-review.ts";
import { AccountToken } from "../kube/account-token.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport, SharedTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "./kinds.ts";
import { covers, missingNeeds, nowhere } from "./missing.ts";
import { functionRules, type RulesOptions, runtimeRules, runtimeRulesFor } from "./rules.ts";
import { type Need, needsOf } from "./scoped-rule.ts";

/** One account, and what it must be allowed. */
interface AccountNeeds {
  readonly account: string;
  /** Absent: the runtime's own. */
  readonly functionName?: string;
  readonly needs: readonly Need[];
}

/** What was found out about one account. */
export interface Finding {
  readonly subject: AccountNeeds;
  /** Undefined where nobody would tell. */
  readonly missing: readonly Need[] | undefined;
  /** The ServiceAccount itself is not there. */
  readonly absent: boolean;
  /** What it is granted and does not need, in the namespaces that it needs anything in; undefined where it cannot be known. */
  readonly beyond: readonly Need[] | undefined;
}

interface ComparisonParts {
  /** The connection of whoever asks. */
  readonly transport: SharedTransport;
  /** Whoever asks, as the API server knows them. */
  readonly user: string | undefined;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Every account of a runtime, its own first. @throws WatchfireError as the rules do */
export function subjectsOf(
  manifests: readonly FunctionManifest[],
  kinds: KnownKinds,
  options: RulesOptions,
): AccountNeeds[] {
  const own = [...runtimeRules(options), ...manifests.flatMap((each) => runtimeRulesFor(each, kinds, options))];
  return [
    { account: options.account, needs: needsOf(own) },
    ...manifests.map((manifest) => ({
      account: functionAccount(options.account, manifest.name),
      functionName: manifest.name,
      needs: needsOf(functionRules(manifest, kinds, options)),
    })),
  ];
}

/**
 * Compares what an account needs with what it is granted. The API server is asked on its behalf (SubjectAccessReview).
 * Where that is not allowed to us, the account is asked itself: if we are it, or may make its tokens.
 */
export async function compare(subject: AccountNeeds, parts: ComparisonParts): Promise<Finding> {
  const { namespace, transport, user } = parts;
  const { account, needs } = subject;
  const absent = await isAbsent(transport, namespace, account);
  const itself = absent ? undefined : user === userOf(namespace, account) ? transport : asAccount(account, parts);
  const missing =
    (await ifAllowed(missingOf(transport, subject, namespace))) ??
    (itself && (await ifAllowed(missingNeeds(itself, needs))));
  const beyond = itself && (await ifAllowed(beyondNeed(itself, needs)));
  return { subject, missing, absent, beyond };
}

const userOf = (namespace: string, account: string): string => `system:serviceaccount:${namespace}:${account}`;

async function missingOf(
  transport: KubeTransport,
  { account, needs }: AccountNeeds,
  namespace: string,
): Promise<Need[]> {
  const user = userOf(namespace, account);
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
  const missing: Need[] = [];
  for (const need of needs) if (!(await isAllowed(transport, need, { user, groups }))) missing.push(need);
  return missing;
}

async function beyondNeed(itself: KubeTransport, needs: readonly Need[]): Promise<Need[]> {
  const namespaces = new Set([nowhere, ...needs.flatMap(({ namespace }) => namespace ?? [])]);
  const granted: Need[] = [];
  for (const namespace of namespaces) {
    const rules = await ownRules(itself, namespace);
    granted.push(...needsOf(rules.map((rule) => ({ ...rule, ...(namespace !== nowhere && { namespace }) }))));
  }
  const unneeded = needsOf(granted.map(toRule)).filter((grant) => !isEverybodys(grant) && !isNeeded(grant, needs));
  return unneeded;
}

const toRule = ({ group, resource, verb, name, namespace }: Need): GrantedRule & Pick<Need, "namespace"> => ({
  apiGroups: [group],
  resources: [resource],
  verbs: [verb],
  ...(name !== undefined && { resourceNames: [name] }),
  namespace,
});

/** A need that holds everywhere, or for all names, covers the grant in one place, or of one name. */
const isNeeded = (grant: Need, needs: readonly Need[]): boolean =>
  needs.some(
    (need) => (need.namespace === undefined || need.namespace === grant.namespace) && covers(toRule(need), grant),
  );

/** What Kubernetes lets every account do (`system:basic-user`): ask about itself. */
const isEverybodys = ({ group, resource }: Need): boolean =>
  /^auth(?:entication|orization)\.k8s\.io$/.test(group) && resource.startsWith("selfsubject");

function asAccount(account: string, { transport, namespace, clock, random }: ComparisonParts): KubeTransport {
  return transport.as(new AccountToken({ transport, namespace, account, clock, random }), account);
}

/** Whether a ServiceAccount is not there; where we may not look, it counts as there. */
export async function isAbsent(transport: KubeTransport, namespace: string, account: string): Promise<boolean> {
  const collection = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
  try {
    await transport.json<unknown>({ method: "GET", path: resourcePath(collection, namespace, account) });
    return false;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return error.status === 404;
    throw error;
  }
}

/** Undefined where the API server does not let us know. */
async function ifAllowed<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    if (error instanceof WatchfireError && error.code === "WF_KUBE_FORBIDDEN") return undefined;
    throw error;
  }
}
