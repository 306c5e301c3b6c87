import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { deploy } from "../catalog/deploy/deploy.ts";
import { messageLimit, type RevisionNote } from "../catalog/deploy/revision.ts";
import type { PackedFunction } from "../catalog/packed-function.ts";
import type { SigningKey } from "../catalog/signature.ts";
import { ownUser } from "../kube/access-review.ts";
import { ApiError } from "../kube/api-error.ts";
import type { SharedTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import type { ValueUse } from "../manifest/values.ts";
import { isAbsent } from "../rbac/comparison.ts";
import { builtInKinds, type KnownKinds } from "../rbac/kinds.ts";
import { absenceAmong } from "../rbac/namespaces.ts";
import type { RulesOptions } from "../rbac/rules.ts";
import type { BuildOutcome } from "./built-functions.ts";
import { areRightsThere } from "./code-only.ts";
import type { Option } from "./command.ts";
import { deployedRbac } from "./deployed-rbac.ts";
import { Deployment, deployerOf } from "./deployment.ts";
import { compareWithContainer } from "./executor-memory.ts";
import { gitState } from "./git-state.ts";
import { allExpressible } from "./rbac.ts";
import { warningsOfStore } from "./store-limits.ts";
import { warn, warningsOfReach } from "./warning.ts";

export const messageOption = {
  value: "TEXT",
  short: "m",
  summary: "the reason, shown by `watchfire revisions`",
} as const satisfies Option;

/** Functions with their code, ready to be deployed. */
export interface SetCode {
  readonly loaded: LoadedFunctions;
  readonly built: readonly BuildOutcome[];
  readonly packed: readonly PackedFunction[];
}

interface SetParts {
  readonly set: string;
  readonly rules: RulesOptions;
  readonly kinds: KnownKinds;
  readonly transport: SharedTransport;
  readonly given: ReadonlySet<string>;
  readonly key: SigningKey | undefined;
  readonly note: Omit<RevisionNote, "kinds">;
  readonly isJson: boolean;
  /** Values that were filled into the manifests. */
  readonly filled: readonly ValueUse[];
  /** The percentage of the keys that they get as a canary. Default: all. */
  readonly canary?: number | undefined;
}

/**
 * Deploys functions as a set, with the accounts and the rights that their manifests ask for, and prints the result. Faults go to
 * stderr. Resolves with the exit status.
 */
export async function deploySet({ loaded, built, packed }: SetCode, parts: SetParts): Promise<number> {
  const { set, rules, kinds, transport, given, key, note, isJson, filled, canary } = parts;
  const { functions: manifests } = loaded;
  const { namespace, account } = rules;
  if (!allExpressible(loaded, kinds, rules)) return 1;
  const fitting = await compareWithContainer(loaded, transport, rules);
  if (!areNone(fitting.faults)) return 1;
  const warnings = [...warningsOfReach(loaded, rules), ...warningsOfStore(loaded, built, rules.store)];
  for (const { message } of warnings) warn(message);
  const codeOnly = given.has("code-only") || canary !== undefined;
  const user = "account" in note.by ? note.by.account : undefined;
  if (given.has("code-only") && !(await areRightsThere(manifests, { transport, user, kinds, rules }))) return 1;
  const all = codeOnly ? [] : deployedRbac(manifests, kinds, rules);
  const absence = await absenceAmong(transport, namespace, all);
  const objects = all.filter(({ metadata }) => !absence?.namespaces.has(metadata.namespace ?? ""));
  const deployment = new Deployment({
    ...{ set, given, transport, runtime: rules, packed, manifests, filled },
    json: isJson ? { namespace, account, warnings } : undefined,
    terminal: { input: process.stdin, output: process.stderr },
  });
  const report = await deploy({
    ...rules,
    ...deployerOf(set),
    transport,
    functions: packed,
    objects,
    codeOnly,
    key,
    note: { ...note, kinds: kindsOf(manifests, kinds) },
    canary,
    approve: deployment.approve,
  });
  if (deployment.unwritten !== undefined) {
    if (absence) process.stderr.write(`${absence.fault.message}\n`);
    return deployment.unwritten;
  }
  deployment.print(report);
  deployment.warn(report);
  const home = rules.runtimeNamespace ?? namespace;
  const runtime = `${home}/${account}`;
  const asRevision = report.revision === undefined ? "" : ` as revision ${report.revision}`;
  const as = canary === undefined ? asRevision : ` as a canary, for ${canary}% of the keys,`;
  const where = home === namespace ? "" : ` in ${namespace}`;
  process.stderr.write(`deployed the set ${set}${where}${as} for the runtime ${runtime} at ${transport.description}\n`);
  if (await isAbsent(transport, home, account)) {
    process.stderr.write(
      `there is no ServiceAccount ${runtime}: the functions run once a runtime with this account is installed\n`,
    );
  }
  if (!absence) return 0;
  // A misspelt namespace must be reported, but a deleted one must not prevent the rest from being deployed.
  process.stderr.write(`${absence.fault.message}\neverything else is deployed\n`);
  return 1;
}

/**
 * Returns the note about a deployment of a folder by the connection's account.
 * @throws WatchfireError WF_CLI_USAGE if the message is too long
 */
export async function noteOf(
  transport: SharedTransport,
  folder: string,
  message: string,
): Promise<Omit<RevisionNote, "kinds">> {
  return {
    by: await deployer(transport),
    git: await gitState(folder, readEnvironment().variables),
    message: readMessage(message),
  };
}

/** Returns the account of a connection, by its name at the API server, or why it is unknown. */
export async function deployer(transport: SharedTransport): Promise<RevisionNote["by"]> {
  try {
    const account = await ownUser(transport);
    if (account !== undefined) return { account };
    return { unknown: "the API server is older than Kubernetes 1.28, or forbids a SelfSubjectReview" };
  } catch (error) {
    // A deployment must not fail because of who made it.
    if (!(error instanceof ApiError) || error.status === 401) throw error;
    return { unknown: `the API server did not answer a SelfSubjectReview: ${error.message}` };
  }
}

/** @throws WatchfireError WF_CLI_USAGE if the message is too long */
export function readMessage(message: string): string {
  if (message.length <= messageLimit) return message;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `--message takes ${messageLimit} characters, not ${message.length}`,
  });
}

/** Writes faults to stderr. Returns true if there is no fault. Throws errors that are not the user's fault. */
export function areNone(faults: readonly unknown[]): boolean {
  for (const fault of faults) {
    if (!(fault instanceof WatchfireError)) throw fault;
    process.stderr.write(`${fault.message}\n`);
  }
  return faults.length === 0;
}

/** Returns the kinds of triggers and reads that are not built in, each once. */
function kindsOf(manifests: readonly FunctionManifest[], kinds: KnownKinds): RevisionNote["kinds"] {
  const named = manifests.flatMap(({ triggers, reads }) => [...triggers, ...reads]);
  const custom = new Map(
    named.flatMap(({ apiVersion, kind }) => {
      const facts = builtInKinds(apiVersion, kind) ? undefined : kinds(apiVersion, kind);
      return facts ? [[`${apiVersion} ${kind}`, { apiVersion, kind, ...facts }] as const] : [];
    }),
  );
  return [...custom.values()];
}
