import { boundedName, functionAccount } from "../access/account.ts";
import { checkpointSecrets } from "../journal/secrets/names.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "./kinds.ts";
import { functionRules, type RulesOptions, runtimeRules, runtimeRulesFor } from "./rules.ts";
import { needsOf, type PolicyRule, rulesByNamespace, type ScopedRule } from "./scoped-rule.ts";

/** A Kubernetes object to be applied. */
export interface RbacObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    /** Absent only on the runtime's own account. */
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

const rbacVersion = "rbac.authorization.k8s.io/v1";

/** Longest value of a label. */
const labelLimit = 63;

/**
 * Returns exactly the objects that the runtime and these functions need, in the order in which to apply them. Without the
 * runtime's own for a set that shares a runtime of another namespace.
 */
export function rbacObjects(
  manifests: readonly FunctionManifest[],
  kinds: KnownKinds,
  options: RulesOptions,
): RbacObject[] {
  const own = manifests
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((each) => functionObjects(each, kinds, options));
  const isShared = (options.runtimeNamespace ?? options.namespace) !== options.namespace;
  return inOrder([...(isShared ? [] : runtimeObjects(options)), ...own]);
}

/** Returns the runtime's account and the rules that do not depend on the functions. */
export function runtimeObjects(options: RulesOptions): RbacObject[] {
  const { account, namespace, store } = options;
  const labels = rbacLabels(options);
  // The chart creates these Secrets as well: with our value of the label that Helm uses, Helm would refuse every later upgrade.
  const { "app.kubernetes.io/managed-by": _, ...ours } = labels;
  const shards = store === "kubernetes" ? checkpointSecrets(account) : [];
  return inOrder([
    // Without labels, so that deleting by label does not remove it: the chart's pod runs under it.
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace } },
    ...shards.map((name) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace, labels: ours },
      type: "Opaque",
    })),
    ...roles(`${account}.${namespace}`, account, runtimeRules(options), namespace, labels),
  ]);
}

/**
 * Returns one function's account and rules, and the rules that the runtime's account needs for it. They do not refer to other
 * functions, so they can be applied and removed alone.
 */
export function functionObjects(manifest: FunctionManifest, kinds: KnownKinds, options: RulesOptions): RbacObject[] {
  const { account, namespace, runtimeNamespace = namespace } = options;
  const name = functionAccount(account, manifest.name);
  const labels = { ...rbacLabels(options), "watchfire.dev/function": manifest.name };
  return inOrder([
    // Its tokens are requested: no pod runs under it.
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name, namespace, labels },
      automountServiceAccountToken: false,
    },
    ...roles(`${name}.${namespace}`, name, functionRules(manifest, kinds, options), namespace, labels),
    ...roles(
      `${name}.${namespace}.runtime`,
      account,
      runtimeRulesFor(manifest, kinds, options),
      runtimeNamespace,
      labels,
    ),
  ]);
}

/** Returns the labels of all objects of one runtime, by which objects of removed functions are found. */
function rbacLabels({ account, namespace }: RulesOptions): Record<string, string> {
  return {
    "app.kubernetes.io/managed-by": "watchfire",
    "watchfire.dev/namespace": namespace,
    "watchfire.dev/runtime": boundedName(account, labelLimit),
  };
}

/**
 * Creates roles and bindings for an account of the namespace `home`. Their names include the namespace of the set, because they are
 * created in namespaces that others use as well.
 */
function roles(
  fullName: string,
  account: string,
  rules: readonly ScopedRule[],
  home: string,
  labels: Readonly<Record<string, string>>,
): RbacObject[] {
  const name = boundedName(fullName, 253);
  return [...rulesByNamespace(needsOf(rules))].flatMap(([namespace, those]) =>
    roleAndBinding({ name, labels, ...(namespace !== "" && { namespace }) }, those, { account, home }),
  );
}

function roleAndBinding(
  metadata: RbacObject["metadata"],
  rules: readonly PolicyRule[],
  { account, home }: { readonly account: string; readonly home: string },
): RbacObject[] {
  const kind = metadata.namespace === undefined ? "ClusterRole" : "Role";
  return [
    { apiVersion: rbacVersion, kind, metadata, rules },
    {
      apiVersion: rbacVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: metadata.name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace: home }],
    },
  ];
}

const kindOrder = ["ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

const inOrder = (objects: readonly RbacObject[]): RbacObject[] =>
  objects.toSorted((a, b) => kindOrder.indexOf(a.kind) - kindOrder.indexOf(b.kind));
