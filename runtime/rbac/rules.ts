import { functionAccount } from "../access/account.ts";
import { grantableVerbs } from "../access/grants.ts";
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

/** Options of the runtime that the rules are for: those of `watchfire start`. */
export interface RulesOptions {
  /** The runtime's own namespace, which holds its account, the functions' accounts, and the objects that `env` names. */
  readonly namespace: string;
  /** Name of the runtime's ServiceAccount. */
  readonly account: string;
  /** The namespace of the runtime's account, if it is another one: `namespace` then has the sets of a team that shares the runtime. */
  readonly runtimeNamespace?: string | undefined;
  /** `--leader-elect`. */
  readonly leaderElect?: boolean;
  /** True for one of several replicas that share the functions. */
  readonly fleet?: boolean;
  /** `--store`. */
  readonly store?: StoreKind;
  /** `--deployed`. */
  readonly deployed?: boolean;
  /** `--sets-namespace`. */
  readonly setNamespaces?: readonly string[];
  /** `--function-status`. */
  readonly functionStatus?: boolean;
  /** `--token-review`. */
  readonly tokenReview?: boolean;
}

/** Verbs of `ctx.kube`: the meaning of `*`. */
const clientVerbs = ["create", "delete", "get", "list", "patch", "update"];

/** Verbs for Events. Like client-go's event correlator, the runtime creates an Event and then counts repeats by patching it. */
const eventVerbs = ["create", "patch"];

/**
 * Returns the rules for a function's own requests to the API server. @throws WatchfireError WF_RBAC_WILDCARD,
 * WF_RBAC_UNKNOWN_KIND
 */
export function functionRules(
  manifest: FunctionManifest,
  kinds: KnownKinds,
  { namespace, runtimeNamespace = namespace }: Pick<RulesOptions, "namespace" | "runtimeNamespace">,
): ScopedRule[] {
  refuseWildcards(manifest);
  for (const [path, selection] of selectionsOf(manifest)) kindOf(manifest, selection, path, kinds);
  const seen = runtimeNamespace === namespace ? [] : seenRules(manifest, kinds);
  return [...knownRules(manifest, kinds, { namespace }), ...seen];
}

/**
 * Returns the rules for everything that a function's triggers and `reads` show it. In a shared runtime its account needs them,
 * because the runtime's account may watch what others may not see.
 * @throws WatchfireError WF_RBAC_UNKNOWN_KIND
 */
export const seenRules = (manifest: FunctionManifest, kinds: KnownKinds): ScopedRule[] =>
  selectionsOf(manifest).flatMap(([path, selection]) => listRules(selection, kindOf(manifest, selection, path, kinds)));

/**
 * Like `functionRules`, as far as the rules are known: wildcards as somebody would grant them by hand, and no Events about a kind
 * of unknown scope.
 */
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

/**
 * Returns the rules that the runtime's account needs for one function: to follow its triggers and its reads, and to create tokens
 * of its account.
 */
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

/** Returns the rules that the runtime's account needs for any set of functions. */
export function runtimeRules(options: RulesOptions): ScopedRule[] {
  const { namespace, account, leaderElect, fleet, store, deployed, setNamespaces, functionStatus, tokenReview } =
    options;
  const own = (apiGroup: string, resource: string, verbs: readonly string[], resourceNames?: readonly string[]) => ({
    apiGroups: [apiGroup],
    resources: [resource],
    verbs,
    ...(resourceNames && { resourceNames }),
    namespace,
  });
  return [
    // The uid of kube-system identifies the cluster, so that checkpoints of another cluster are never used for this one. Reading
    // a namespace also tells a missing right from a missing namespace.
    { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
    ...(leaderElect || store === "nats"
      ? [
          own("coordination.k8s.io", "leases", ["create"]),
          own("coordination.k8s.io", "leases", ["get", "update"], [account]),
        ]
      : []),
    // Replicas and slots have their own Leases, whose names are not known in advance.
    ...(fleet ? [own("coordination.k8s.io", "leases", ["delete", "get", "list", "update"])] : []),
    ...(store === "kubernetes" ? [own("", "secrets", ["get", "update"], checkpointSecrets(account))] : []),
    ...[...(deployed ? [namespace] : []), ...(setNamespaces ?? [])].map((each) => ({
      ...own("", "configmaps", ["list", "watch"]),
      namespace: each,
    })),
    ...(functionStatus
      ? [
          ...[namespace, ...(setNamespaces ?? [])].flatMap((each) => [
            { ...own("watchfire.dev", "functions", ["create", "delete", "list", "patch"]), namespace: each },
            { ...own("watchfire.dev", "functions/status", ["patch"]), namespace: each },
            // Those of sets; `spec.paused` is watched.
            {
              ...own("watchfire.dev", "functionsets", ["create", "delete", "list", "patch", "watch"]),
              namespace: each,
            },
            { ...own("watchfire.dev", "functionsets/status", ["patch"]), namespace: each },
          ]),
          // Changes that somebody asked for are Events on the objects.
          own("", "events", ["create"]),
        ]
      : []),
    // To review callers of the control API.
    ...(tokenReview
      ? [
          { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
          { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
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

/** Expands the verbs of the manifest's own rule; the rest is unchanged. */
function permissionRules({ apiGroups, resources, resourceNames, namespaces, verbs: given }: Permission): ScopedRule[] {
  const asked = given.includes("*") ? clientVerbs : given;
  const verbs = grantableVerbs({ resources, resourceNames }, asked);
  const rule = { apiGroups, resources, verbs, ...(resourceNames && { resourceNames }) };
  const emits = resources.includes("events") && verbs.includes("create");
  const event = emits && apiGroups.some((group) => group === "" || group === "events.k8s.io");
  const rules = event ? [rule, { apiGroups: [""], resources: ["events"], verbs: eventVerbs }] : [rule];
  return rules.flatMap((each) => (namespaces ?? [undefined]).map((namespace) => ({ ...each, namespace })));
}

/**
 * Returns the rules for `ctx.events` on the object that fired the handler: the Event is created in its namespace, or in `default`
 * for a cluster-scoped object.
 */
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

/** Returns everything that the runtime lists and watches for a function, each with its path in the manifest. */
const selectionsOf = (manifest: FunctionManifest): (readonly [path: string, Selection])[] => [
  ...manifest.triggers.map(
    (trigger, index) => [`spec.triggers[${placeOfWatch(manifest, index)}].watch`, trigger] as const,
  ),
  ...manifest.reads.map((read, index) => [`spec.reads[${index}]`, read] as const),
];

/** The rules to list and watch the objects of a selection. */
function listRules({ namespaces, fieldSelector }: Selection, { group, plural, namespaced }: KindFacts): ScopedRule[] {
  const verbs = ["list", "watch"];
  const name = requiredName(fieldSelector);
  const rule = { apiGroups: [group], resources: [plural], verbs, ...(name !== undefined && { resourceNames: [name] }) };
  const rules: ScopedRule[] =
    namespaced && namespaces.type === "names" ? namespaces.names.map((namespace) => ({ ...rule, namespace })) : [rule];
  // The set of namespaces with the labels changes, so the kind is read in every namespace, and namespaces are watched too.
  if (namespaces.type === "labels") rules.push({ apiGroups: [""], resources: ["namespaces"], verbs });
  return rules;
}

/** The rules to follow a selection. */
function watchRules(selection: Selection, facts: KindFacts): ScopedRule[] {
  const { apiVersion, kind } = selection;
  const { group, plural } = facts;
  const rules = listRules(selection, facts);
  // A kind's definition tells whether the kind was removed with its objects.
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
