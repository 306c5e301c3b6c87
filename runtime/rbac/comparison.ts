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
import { covers, impossibleNamespace, missingNeeds } from "./missing.ts";
import { functionRules, type RulesOptions, runtimeRules, runtimeRulesFor } from "./rules.ts";
import { type Need, needsOf } from "./scoped-rule.ts";

/** One account and the rights it needs. */
interface AccountNeeds {
  readonly account: string;
  /** Absent: the runtime's own account. */
  readonly functionName?: string;
  /** The account's namespace, if it is not that of the functions. */
  readonly namespace?: string | undefined;
  readonly needs: readonly Need[];
}

/** Result of the comparison for one account. */
export interface Finding {
  readonly subject: AccountNeeds;
  /** Needs without a grant; `undefined` if they could not be determined. */
  readonly missing: readonly Need[] | undefined;
  /** True if the ServiceAccount itself does not exist. */
  readonly absent: boolean;
  /** Grants without a need, in the namespaces in which it needs anything; `undefined` if they cannot be determined. */
  readonly beyond: readonly Need[] | undefined;
}

interface ComparisonParts {
  /** Connection of the user who asks. */
  readonly transport: SharedTransport;
  /** The user who asks, as known to the API server. */
  readonly user: string | undefined;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Returns all accounts of a runtime, its own first. @throws WatchfireError as the rules do */
export function subjectsOf(
  manifests: readonly FunctionManifest[],
  kinds: KnownKinds,
  options: RulesOptions,
): AccountNeeds[] {
  const own = needsOf(runtimeRules(options));
  const [runtime, ...functions] = subjectsFor(manifests, kinds, options);
  return [{ account: options.account, needs: needsOf([...own, ...(runtime?.needs ?? [])].map(toRule)) }, ...functions];
}

/** Like `subjectsOf`, without what the runtime needs for any functions. */
export function subjectsFor(
  manifests: readonly FunctionManifest[],
  kinds: KnownKinds,
  options: RulesOptions,
): AccountNeeds[] {
  return [
    {
      account: options.account,
      namespace: options.runtimeNamespace,
      needs: needsOf(manifests.flatMap((each) => runtimeRulesFor(each, kinds, options))),
    },
    ...manifests.map((manifest) => ({
      account: functionAccount(options.account, manifest.name),
      functionName: manifest.name,
      needs: needsOf(functionRules(manifest, kinds, options)),
    })),
  ];
}

/**
 * Compares what an account needs with what it is granted. The API server is asked on its behalf (SubjectAccessReview). If that is
 * forbidden, the account itself is asked: possible if we are that account, or may create its tokens.
 */
export async function compare(subject: AccountNeeds, parts: ComparisonParts): Promise<Finding> {
  const { itself, ...lack } = await lackOf(subject, parts);
  const beyond = itself && (await ifAllowed(beyondNeed(itself, subject.needs)));
  return { ...lack, beyond };
}

/** Like `compare`, without what is granted beyond need. `itself`: a connection as the account, which may be refused. */
export async function lackOf(
  subject: AccountNeeds,
  parts: ComparisonParts,
): Promise<Omit<Finding, "beyond"> & { readonly itself: KubeTransport | undefined }> {
  const { namespace, transport, user } = parts;
  const { account, needs } = subject;
  const absent = await isAbsent(transport, namespace, account);
  const itself = absent ? undefined : user === userOf(namespace, account) ? transport : asAccount(account, parts);
  const missing =
    (await ifAllowed(missingOf(transport, subject, namespace))) ??
    (itself && (await ifAllowed(missingNeeds(itself, needs))));
  return { subject, missing, absent, itself };
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
  const namespaces = new Set([impossibleNamespace, ...needs.flatMap(({ namespace }) => namespace ?? [])]);
  const granted: Need[] = [];
  for (const namespace of namespaces) {
    const rules = await ownRules(itself, namespace);
    granted.push(
      ...needsOf(rules.map((rule) => ({ ...rule, ...(namespace !== impossibleNamespace && { namespace }) }))),
    );
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

/** A need in all namespaces, or for all names, covers a grant for one namespace or one name. */
const isNeeded = (grant: Need, needs: readonly Need[]): boolean =>
  needs.some(
    (need) => (need.namespace === undefined || need.namespace === grant.namespace) && covers(toRule(need), grant),
  );

/** Rights that Kubernetes grants to every account (`system:basic-user`): to ask about itself. */
const isEverybodys = ({ group, resource }: Need): boolean =>
  /^auth(?:entication|orization)\.k8s\.io$/.test(group) && resource.startsWith("selfsubject");

function asAccount(account: string, { transport, namespace, clock, random }: ComparisonParts): KubeTransport {
  return transport.as(new AccountToken({ transport, namespace, account, clock, random }), account);
}

/** Whether a ServiceAccount does not exist; if reading it is forbidden, it counts as existing. */
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

/** Returns `undefined` if the API server refuses the question. */
async function ifAllowed<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    if (error instanceof WatchfireError && error.code === "WF_KUBE_FORBIDDEN") return undefined;
    throw error;
  }
}
