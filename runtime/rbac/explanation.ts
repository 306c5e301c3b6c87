import { functionAccount } from "../access/account.ts";
import { clean } from "../base/wording.ts";
import type { FunctionManifest, NamespaceScope, Permission, Selection } from "../manifest/function.ts";
import { scheduleText } from "../manifest/schedule.ts";
import { type ReachOptions, reachOf } from "./reach.ts";

/** Verbs of `ctx.kube` that read objects and change nothing. */
const seeing = ["get", "list"];
const doing = ["create", "update", "patch", "delete"];

/**
 * Returns what a function can see and do, for a reviewer of its manifest. It covers what the manifest requests; `watchfire doctor`
 * reports what is granted.
 * `namespace` is null if the runtime's is not given.
 */
export function explanationOf(manifest: FunctionManifest, runtime: ReachOptions) {
  const { name, permissions } = manifest;
  return {
    function: name,
    account: functionAccount(runtime.account, name),
    namespace: runtime.namespace ?? null,
    triggers: [...manifest.triggers.map(triggerWords), ...manifest.schedules.map(clockWords)],
    reads: manifest.reads.map(selectionWords),
    sees: permissions.flatMap((each) => permissionWords(each, seeing)),
    does: [...permissions.flatMap((each) => permissionWords(each, doing)), ...eventWords(manifest)],
    env: manifest.env.flatMap(envWords),
    egress: manifest.egress.map(egressWords),
    reach: reachWords(permissions, runtime),
  };
}

/** Returns an explanation as text, one line for each right. */
export function explanationText(explained: ReturnType<typeof explanationOf>): string {
  const account = `${explained.account} in ${explained.namespace ?? "the runtime's namespace"}`;
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ["is shown, by its triggers", explained.triggers],
    ["is shown, by its reads", explained.reads],
    ["may see, by its calls", explained.sees],
    ["may do, by its calls", explained.does],
    ["is given, by its env", explained.env],
    ["may send requests to", explained.egress],
    ["reaches further than its permissions say", explained.reach],
  ];
  const lines = sections.flatMap(([title, each]) => [
    `  ${title}: ${each.length === 0 ? "nothing" : ""}`.trimEnd(),
    // Escaped, so that a selector's text cannot imitate a line of the summary.
    ...new Set(each.map((line) => `    ${clean(line).replaceAll("\n", "\\u000a")}`)),
  ]);
  return [explained.function, `  acts, with --identity function, as the ServiceAccount ${account}`, ...lines, ""].join(
    "\n",
  );
}

const triggerWords = (trigger: FunctionManifest["triggers"][number]): string =>
  `${trigger.name}: ${selectionWords(trigger)}`;

const clockWords = (schedule: FunctionManifest["schedules"][number]): string =>
  `${schedule.name}: no object, on a schedule: ${scheduleText(schedule)}`;

function selectionWords({ apiVersion, kind, object, namespaces, labelSelector, fieldSelector }: Selection): string {
  const whole = apiVersion === "v1" && kind === "Secret" ? "with its data" : "as a whole";
  const selectors = [
    ...(labelSelector === "" ? [] : [`labels ${labelSelector}`]),
    ...(fieldSelector === "" ? [] : [`fields ${fieldSelector}`]),
  ];
  const which = selectors.length === 0 ? "" : `, selected by ${selectors.join(" and ")}`;
  return `each ${kind} (${apiVersion}) ${scopeWords(namespaces)}, ${object === "Full" ? whole : "only its metadata"}${which}`;
}

function scopeWords(scope: NamespaceScope): string {
  if (scope.type === "labels") return `in namespaces with the labels ${scope.labelSelector}`;
  return placeWords(scope.type === "names" ? scope.names : undefined);
}

const placeWords = (namespaces: readonly string[] | undefined): string => {
  if (namespaces === undefined) return "everywhere";
  return `in namespace${namespaces.length === 1 ? "" : "s"} ${namespaces.join(", ")}`;
};

function permissionWords(permission: Permission, among: readonly string[]): string[] {
  const { apiGroups, resources, verbs, resourceNames, namespaces } = permission;
  const granted = among.filter((verb) => verbs.includes("*") || verbs.includes(verb));
  if (granted.length === 0) return [];
  const what = apiGroups.flatMap((group) => resources.map((resource) => resourceWords(resource, group)));
  const names = resourceNames ? ` named ${resourceNames.join(", ")}` : "";
  return [`${granted.join(", ")} ${what.join(", ")}${names} ${placeWords(namespaces)}`];
}

/** Returns a resource as `kubectl` writes it: `deployments.apps/scale`. */
function resourceWords(resource: string, group: string): string {
  const [plural = "", ...subresource] = resource.split("/");
  const kinds = plural === "*" ? "all resources" : plural;
  const of = group === "*" ? " of every API group" : group === "" ? "" : plural === "*" ? ` of ${group}` : `.${group}`;
  return `${kinds}${of}${subresource.map((each) => `/${each}`).join("")}`;
}

const eventWords = ({ triggers }: FunctionManifest): string[] =>
  triggers.length === 0 ? [] : ["write Events about the objects of its triggers"];

function envWords({ name, secretKeyRef, configMapKeyRef }: FunctionManifest["env"][number]): string[] {
  const ref = secretKeyRef ?? configMapKeyRef;
  // A literal value is visible in the manifest.
  if (!ref) return [];
  return [`${name}: the key ${ref.key} of the ${secretKeyRef ? "Secret" : "ConfigMap"} ${ref.name}`];
}

const egressWords = ({ host, ports, network }: FunctionManifest["egress"][number]): string =>
  `${host}, port${ports.length === 1 ? "" : "s"} ${ports.join(", ")}, at ${network === "Public" ? "public addresses" : "private addresses too"}`;

const reachWords = (permissions: readonly Permission[], runtime: ReachOptions): string[] =>
  permissions.flatMap((each) => reachOf(each, runtime).map(({ words }) => words));
