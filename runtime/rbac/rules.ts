import { functionAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import { showPath } from "../document/path.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import { checkpointSecrets } from "../journal/secrets/names.ts";
import { splitApiVersion } from "../kube/discovery.ts";
import { requiredName } from "../kube/field-selector.ts";
import type { FunctionManifest, Permission, Selection, Trigger } from "../manifest/function.ts";
import { placeOfWatch } from "../manifest/schedule.ts";
import { builtInKinds, type KindFacts, type KnownKinds } from "./kinds.ts";
import type { ScopedRule } from "./scoped-rule.ts";
import { wildcardFaults } from "./wildcards.ts";

/** Which runtime the rules are for: what `watchfire start` is told. */
export interface RulesOptions {
  /** The runtime's own namespace: where its account, the functions' accounts and what `env` names lie. */
  readonly namespace: string;
  /** The runtime's ServiceAccount. */
  readonly account: string;
  /** `--leader-elect`. */
  readonly leaderElect?: boolean;
  /** It is one of several replicas that share the functions. */
  readonly fleet?: boolean;
  /** `--store`. */
  readonly store?: StoreKind;
  /** `--deployed`. */
  readonly deployed?: boolean;
  /** `--function-status`. */
  readonly functionStatus?: boolean;
}

/** What `ctx.kube` can do: all that `*` can mean. */
const clientVerbs = ["create", "delete", "get", "list", "patch", "update"];

/** client-go's event correlator creates an Event and then counts its repeats by a patch; so does ours. */
const eventVerbs = ["create", "patch"];

/** What a function asks of the API server in its own name. @throws WatchfireError WF_RBAC_WILDCARD, WF_RBAC_UNKNOWN_KIND */
export function functionRules(
  manifest: FunctionManifest,
  kinds: KnownKinds,
  { namespace }: Pick<RulesOptions, "namespace">,
): ScopedRule[] {
  refuseWildcards(manifest);
  for (const [path, selection] of selectionsOf(manifest)) kindOf(manifest, selection, path, kinds);
  return knownRules(manifest, kinds, { namespace });
}

/** The same as far as it is known: wildcards as somebody grants them by hand, and no Events about a kind whose scope nothing tells. */
export function knownRules(
  manifest: FunctionManifest,
  kinds: KnownKinds,
  { namespace }: Pick<RulesOptions, "namespace">,
): ScopedRule[] {
  const events = manifest.triggers.flatMap((trigger) => {
    const facts = kinds(trigger.apiVersion, trigger.kind);
    return facts ? eventRules(trigger, facts) : [];
  });
  return [...manifest.permissions.flatMap(permissionRules), ...envRules(manifest, namespace), ...events];
}

/** What the runtime's account needs for one function: to follow its triggers and its reads, and to make tokens of its account. */
export function runtimeRulesFor(manifest: FunctionManifest, kinds: KnownKinds, options: RulesOptions): ScopedRule[] {
  const token: ScopedRule = {
    apiGroups: [""],
    resources: ["serviceaccounts/token"],
    resourceNames: [functionAccount(options.account, manifest.name)],
    verbs: ["create"],
    namespace: options.namespace,
  };
  const watched = selectionsOf(manifest).flatMap(([path, selection]) =>
    watchRules(selection, kindOf(manifest, selection, path, kinds)),
  );
  return [...watched, token];
}

/** What the runtime's account needs whatever the functions are. */
export function runtimeRules(options: RulesOptions): ScopedRule[] {
  const { namespace, account, leaderElect, fleet, store, deployed, functionStatus } = options;
  const own = (apiGroup: string, resource: string, verbs: readonly string[], resourceNames?: readonly string[]) => ({
    apiGroups: [apiGroup],
    resources: [resource],
    verbs,
    ...(resourceNames && { resourceNames }),
    namespace,
  });
  return [
    // The uid of kube-system is the cluster's identity: positions of another cluster are never taken for this one's.
    // Whether rights are missing, or the namespace is that they would lie in, the namespace alone tells.
    { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
    ...(leaderElect || store === "nats"
      ? [
          own("coordination.k8s.io", "leases", ["create"]),
          own("coordination.k8s.io", "leases", ["get", "update"], [account]),
        ]
      : []),
    // Replicas and slots have Leases of their own, whose names no rule can tell beforehand.
    ...(fleet ? [own("coordination.k8s.io", "leases", ["delete", "get", "list", "update"])] : []),
    ...(store === "kubernetes" ? [own("", "secrets", ["get", "update"], checkpointSecrets(account))] : []),
    ...(deployed ? [own("", "configmaps", ["list", "watch"])] : []),
    ...(functionStatus
      ? [
          own("watchfire.dev", "functions", ["create", "delete", "list", "patch"]),
          own("watchfire.dev", "functions/status", ["patch"]),
        ]
      : []),
  ];
}

function refuseWildcards(manifest: FunctionManifest): void {
  const [first] = wildcardFaults(manifest);
  if (!first) return;
  const { code, path, ...said } = first;
  throw new WatchfireError(code, { ...said, place: { file: manifest.file }, path: showPath(path) });
}

/** The manifest's own rule as it is; a list of verbs for all of them. */
function permissionRules({ apiGroups, resources, resourceNames, namespaces, verbs: given }: Permission): ScopedRule[] {
  const asked = given.includes("*") ? clientVerbs : given;
  // A rule with names grants no plain create, to us as to RBAC.
  const verbs = resourceNames ? asked.filter((verb) => verb !== "create") : asked;
  const rule = { apiGroups, resources, verbs, ...(resourceNames && { resourceNames }) };
  const emits = resources.includes("events") && verbs.includes("create");
  const event = emits && apiGroups.some((group) => group === "" || group === "events.k8s.io");
  const rules = event ? [rule, { apiGroups: [""], resources: ["events"], verbs: eventVerbs }] : [rule];
  return rules.flatMap((each) => (namespaces ?? [undefined]).map((namespace) => ({ ...each, namespace })));
}

/** `ctx.events` on the object that fired the handler: the Event lies beside it, that of a cluster-scoped one in `default`. */
function eventRules({ namespaces }: Trigger, { namespaced }: Pick<KindFacts, "namespaced">): ScopedRule[] {
  const rule = { apiGroups: [""], resources: ["events"], verbs: eventVerbs };
  if (!namespaced) return [{ ...rule, namespace: "default" }];
  return namespaces.type === "names" ? namespaces.names.map((namespace) => ({ ...rule, namespace })) : [rule];
}

function envRules({ env }: FunctionManifest, namespace: string): ScopedRule[] {
  return env.flatMap(({ secretKeyRef, configMapKeyRef }) => {
    const ref = secretKeyRef ?? configMapKeyRef;
    if (!ref) return [];
    const resources = [secretKeyRef ? "secrets" : "configmaps"];
    return [{ apiGroups: [""], resources, resourceNames: [ref.name], verbs: ["get"], namespace }];
  });
}

/** What the runtime lists and watches for a function, each with its place in the manifest. */
const selectionsOf = (manifest: FunctionManifest): (readonly [path: string, Selection])[] => [
  ...manifest.triggers.map(
    (trigger, index) => [`spec.triggers[${placeOfWatch(manifest, index)}].watch`, trigger] as const,
  ),
  ...manifest.reads.map((read, index) => [`spec.reads[${index}]`, read] as const),
];

function watchRules(
  { apiVersion, kind, namespaces, fieldSelector }: Selection,
  { group, plural, namespaced }: KindFacts,
): ScopedRule[] {
  const verbs = ["list", "watch"];
  const name = requiredName(fieldSelector);
  const rule = { apiGroups: [group], resources: [plural], verbs, ...(name !== undefined && { resourceNames: [name] }) };
  const rules: ScopedRule[] =
    namespaced && namespaces.type === "names" ? namespaces.names.map((namespace) => ({ ...rule, namespace })) : [rule];
  // Which namespaces have the labels changes: the kind is read in each of them, and they are followed themselves.
  if (namespaces.type === "labels") rules.push({ apiGroups: [""], resources: ["namespaces"], verbs });
  // Whether a kind that is gone was removed with its objects, its definition says.
  if (group.includes(".") && !builtInKinds(apiVersion, kind)) {
    const resourceNames = [`${plural}.${group}`];
    rules.push({
      apiGroups: ["apiextensions.k8s.io"],
      resources: ["customresourcedefinitions"],
      resourceNames,
      verbs: ["get"],
    });
  }
  return rules;
}

function kindOf(
  manifest: FunctionManifest,
  { apiVersion, kind }: Selection,
  path: string,
  kinds: KnownKinds,
): KindFacts {
  const found = kinds(apiVersion, kind);
  if (found) return { ...found, group: splitApiVersion(apiVersion).group };
  throw new WatchfireError("WF_RBAC_UNKNOWN_KIND", {
    what: `nothing says which resource ${apiVersion} ${kind} is`,
    place: { file: manifest.file },
    path,
    actual: kind,
  });
}
