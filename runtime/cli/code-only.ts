import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { SharedTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { lackOf, subjectsFor } from "../rbac/comparison.ts";
import type { KnownKinds } from "../rbac/kinds.ts";
import { describeNeed } from "../rbac/missing.ts";
import type { RulesOptions } from "../rbac/rules.ts";

interface CodeOnlyParts {
  readonly transport: SharedTransport;
  /** The user who deploys, as known to the API server. */
  readonly user: string | undefined;
  readonly kinds: KnownKinds;
  readonly rules: RulesOptions;
}

/** Returns true if the functions' accounts, and the runtime's, have the rights that these manifests need. Otherwise writes those that are missing to stderr. */
export async function areRightsThere(
  manifests: readonly FunctionManifest[],
  { transport, user, kinds, rules }: CodeOnlyParts,
): Promise<boolean> {
  const { namespace } = rules;
  const parts = { transport, user, namespace, clock: systemClock, random: Math.random };
  let suffices = true;
  for (const subject of subjectsFor(manifests, kinds, rules)) {
    const { account, functionName, needs } = subject;
    const { missing, absent } = await lackOf(subject, { ...parts, namespace: subject.namespace ?? namespace });
    // A runtime that is not installed yet has rights if roles are bound to its name.
    const isGone = absent && functionName !== undefined;
    if (missing?.length === 0 && !isGone) continue;
    suffices = false;
    const who = `the account ${subject.namespace ?? namespace}/${account}`;
    const fault = isGone
      ? lack(`there is no ServiceAccount ${namespace}/${account}`, uncreated)
      : missing === undefined
        ? lack(`the rights of ${who} cannot be seen`, unseen)
        : lack(`${who} lacks ${missing.length} of ${needs.length} rights`);
    const lines = (missing ?? []).map((need) => `  missing: ${describeNeed(need)}`);
    process.stderr.write(`${[fault.message, ...lines].join("\n")}\n`);
  }
  return suffices;
}

const uncreated =
  "deploy without --code-only, or apply what `watchfire rbac` prints: either creates the account; nothing was written";

const unseen =
  "grant `create` on subjectaccessreviews.authorization.k8s.io (the ClusterRole system:auth-delegator has it), or on the accounts' tokens; nothing was written";

const lack = (what: string, hint?: string): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_LACKS_RIGHTS", { what, ...(hint !== undefined && { hint }) });
