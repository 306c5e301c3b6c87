import { systemClock } from "../base/clock.ts";
import { ownUser } from "../kube/access-review.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { compare, type Finding, subjectsOf } from "../rbac/comparison.ts";
import { describeNeed, missingNeeds } from "../rbac/missing.ts";
import { absenceAmong } from "../rbac/namespaces.ts";
import { functionObjects, rbacObjects } from "../rbac/objects.ts";
import { type PersonRole, personRoles, personRules } from "../rbac/people.ts";
import { type Need, needsOf } from "../rbac/scoped-rule.ts";
import { command, type Invocation } from "./command.ts";
import { functions, kubeconfig, output } from "./options.ts";
import {
  expressible,
  knownKinds,
  readPerson,
  readRules,
  readValidManifests,
  rulesOptions,
  withCluster,
} from "./rbac.ts";
import { shellWord } from "./shell-word.ts";

const options = {
  functions,
  ...rulesOptions,
  namespace: { value: "NS", summary: "the runtime's namespace; default: the context's" },
  kubeconfig,
  context: { value: "NAME", summary: "the kubeconfig's context" },
  role: {
    value: "ROLE",
    summary: "checks instead whether you have the rights of a deployer, operator or reader",
    choices: personRoles,
  },
  set: { value: "NAME", summary: "for --role operator and reader: only for the functions of the folder, the set NAME" },
  output: output("json"),
} as const;

export const doctor = command({
  name: "doctor",
  summary: "compares the rights that the runtime and every function need with those that they have",
  options,
  async run(invocation) {
    const { kubeconfig, context, functions: folder, namespace, output: format } = invocation.options;
    const isJson = format === "json";
    const loaded = await readValidManifests(folder);
    return withCluster({ kubeconfig, context }, async ({ transport, defaultNamespace }) => {
      const rules = readRules({ ...invocation.options, namespace: namespace ?? defaultNamespace }, invocation.given);
      const kinds = await knownKinds(folder, loaded.functions, transport);
      const manifests = expressible(loaded, kinds, rules);
      const person = readPerson(invocation.options);
      if (person) {
        const deployed = manifests.flatMap((each) => functionObjects(each, kinds, rules));
        const functions = manifests.map(({ name }) => name);
        const needs = needsOf(personRules({ ...person, ...rules, functions, deployed }));
        return checkPerson(transport, person, rules.namespace, needs, isJson);
      }
      const isWhole = loaded.faults.length === 0 && manifests.length === loaded.functions.length;
      const absence = await absenceAmong(transport, rules.namespace, rbacObjects(manifests, kinds, rules));
      if (absence) process.stderr.write(`${absence.fault.message}\n`);
      const isThere = ({ namespace }: Need) => !absence?.namespaces.has(namespace ?? "");
      const user = await ownUser(transport);
      const parts = { transport, user, namespace: rules.namespace, clock: systemClock, random: Math.random };
      const findings: Finding[] = [];
      for (const subject of subjectsOf(manifests, kinds, rules)) {
        // Rights in a missing namespace cannot be granted, and would hide those that can.
        const found = await compare({ ...subject, needs: subject.needs.filter(isThere) }, parts);
        // If functions were refused, the runtime's rights for them are not superfluous.
        const finding = isWhole || subject.functionName ? found : { ...found, beyond: undefined };
        findings.push(finding);
        if (!isJson) process.stdout.write(`${describe(finding, rules.namespace).join("\n")}\n`);
      }
      const command = remedy(invocation, rules.namespace);
      if (isJson) process.stdout.write(`${JSON.stringify(answerOf(findings, rules.namespace, command), null, 2)}\n`);
      else if (findings.some(isLacking)) process.stdout.write(`\nto grant what is missing:\n  ${command}\n`);
      else if (!findings.every(isWell)) process.stdout.write(`\n${unknown}\n`);
      return findings.every(isWell) && isWhole && !absence ? 0 : 1;
    });
  },
});

/** Compares the rights of a role with those of the kubeconfig's user. */
async function checkPerson(
  transport: KubeTransport,
  { role, set }: { readonly role: PersonRole; readonly set: string | undefined },
  namespace: string,
  needs: readonly Need[],
  isJson: boolean,
): Promise<number> {
  const missing = await missingNeeds(transport, needs);
  const user = (await ownUser(transport)) ?? "you";
  const remedy = `watchfire rbac --role ${role}${set === undefined ? "" : ` --set ${set}`} --namespace ${namespace}`;
  if (isJson) {
    const found = { user, role, namespace, needs: needs.length, missing: missing.map(describeNeed) };
    process.stdout.write(`${JSON.stringify(missing.length > 0 ? { ...found, remedy } : found, null, 2)}\n`);
  } else {
    const what =
      missing.length === 0
        ? `all that it needs (${needs.length})`
        : `${needs.length - missing.length} of ${needs.length} rights`;
    process.stdout.write(`${[`${role}: ${user} has ${what}`, ...lines("missing", missing)].join("\n")}\n`);
    if (missing.length > 0) process.stdout.write(`\nthe Role that grants them:\n  ${remedy}\n`);
  }
  return missing.length === 0 ? 0 : 1;
}

/** Returns the findings for programs. `missing` and `beyond` are null if unknown. */
const answerOf = (findings: readonly Finding[], namespace: string, command: string) => ({
  accounts: findings.map(({ subject, absent, missing, beyond }) => ({
    account: subject.account,
    namespace,
    function: subject.functionName ?? null,
    isThere: !absent,
    needs: subject.needs.length,
    missing: missing?.map(describeNeed) ?? null,
    beyond: beyond?.map(describeNeed) ?? null,
  })),
  ...(findings.some(isLacking) && { remedy: command }),
});

const isLacking = ({ missing, absent }: Finding): boolean => absent || (missing?.length ?? 0) > 0;

const unknown =
  "missing rights are unknown: run this as a user who may create subjectaccessreviews.authorization.k8s.io";

const isWell = ({ missing, absent }: Finding): boolean => !absent && missing?.length === 0;

function describe({ subject, missing, absent, beyond }: Finding, namespace: string): string[] {
  const { account, functionName, needs } = subject;
  const who = functionName === undefined ? "runtime" : `function ${functionName}`;
  const what = absent
    ? "there is no such ServiceAccount"
    : missing === undefined
      ? "not known: neither SubjectAccessReview nor tokens of the account are granted to you"
      : missing.length === 0
        ? `has all that it needs (${needs.length})`
        : `lacks ${missing.length} of ${needs.length}`;
  return [
    `${who}: ${namespace}/${account}: ${what}`,
    ...lines("missing", missing ?? []),
    ...lines("granted beyond need", beyond ?? []),
  ];
}

const lines = (label: string, needs: readonly Need[]): string[] =>
  needs.map((need) => `  ${label}: ${describeNeed(need)}`);

/** Returns the command that grants the rights, with this command's arguments. */
function remedy({ options: values, given }: Invocation<typeof options>, namespace: string): string {
  const { kubeconfig, context } = values;
  const said: Readonly<Record<string, string | readonly string[] | undefined>> = values;
  const own = [
    "functions",
    "service-account",
    "store",
    "leader-elect",
    "slots",
    "deployed",
    "sets-namespace",
    "function-status",
    "token-review",
  ]
    .filter((name) => given.has(name))
    .flatMap((name) => {
      const value = said[name];
      return value === undefined ? `--${name}` : [value].flat().map((each) => `--${name} ${shellWord(each)}`);
    });
  const cluster = [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig ${shellWord(kubeconfig)}`]),
    ...(context === undefined ? [] : [`--context ${shellWord(context)}`]),
  ];
  const rbac = ["watchfire rbac", ...own, `--namespace ${namespace}`, ...cluster].join(" ");
  return `${rbac} | ${["kubectl", ...cluster, "apply --server-side --force-conflicts -f -"].join(" ")}`;
}
