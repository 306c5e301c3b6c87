import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { RbacObject } from "../../runtime/rbac/objects.ts";
import { type PersonRoleOptions, personObjects, personRules, personWords } from "../../runtime/rbac/people.ts";
import { needsOf, type ScopedRule } from "../../runtime/rbac/scoped-rule.ts";

const options = (over: Partial<PersonRoleOptions>): PersonRoleOptions => ({
  role: "reader",
  namespace: "wf",
  account: "watchfire",
  functions: [],
  deployed: [],
  ...over,
});

const lines = (rules: readonly ScopedRule[]): string[] =>
  needsOf(rules).map(({ verb, resource, name, namespace }) =>
    [verb, resource, name, `@${namespace ?? "*"}`].filter(Boolean).join(" "),
  );

const role = (kind: "Role" | "ClusterRole", namespace?: string): RbacObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind,
  metadata: { name: "x", ...(namespace !== undefined && { namespace }) },
});

test("a reader finds the runtime, forwards its port and sees functions, and no more", () => {
  expect(lines(personRules(options({})))).toEqual([
    "get pods @wf",
    "list pods @wf",
    "create pods/portforward @wf",
    "get functions @wf",
    "list functions @wf",
  ]);
});

test("an operator may do what a reader may, and update functions", () => {
  const reader = lines(personRules(options({})));
  const operator = lines(personRules(options({ role: "operator" })));
  expect(operator.filter((line) => !reader.includes(line))).toEqual(["update functions @wf"]);
});

test("an operator of a set has no right on functions of another", () => {
  const rules = personRules(options({ role: "operator", set: "greeting", functions: ["greet", "wave"] }));
  expect(lines(rules).filter((line) => line.includes("functions"))).toEqual([
    "get functions greet @wf",
    "update functions greet @wf",
    "get functions wave @wf",
    "update functions wave @wf",
  ]);
});

test("a deployer has the rights that the page about deploying lists, in the namespaces that the functions name", () => {
  const page = readFileSync(join(import.meta.dirname, "../../runtime/docs/deploy-rights.md"), "utf8");
  const documented: ScopedRule[] = parse(/```\n(apiVersion[\s\S]*?)```/.exec(page)?.[1] ?? "").rules;
  const at = (namespace: string, rules: readonly ScopedRule[]) => rules.map((rule) => ({ ...rule, namespace }));
  const ofRoles = documented.filter(({ apiGroups }) => apiGroups[0]?.startsWith("rbac"));
  const deployed = [role("Role", "wf"), role("Role", "demo")];
  const rules = personRules(options({ role: "deployer", deployed }));
  expect(lines(rules)).toEqual(lines([...at("wf", documented), ...at("demo", ofRoles)]));
  const cluster = personObjects(options({ role: "deployer", deployed: [...deployed, role("ClusterRole")] }));
  expect(cluster.map(({ kind, metadata: { name, namespace } }) => [kind, name, namespace])).toEqual([
    ["ClusterRole", "watchfire-deployer.wf", undefined],
    ["Role", "watchfire-deployer.wf", "demo"],
    ["Role", "watchfire-deployer", "wf"],
  ]);
});

test.each(["reader", "operator"] as const)(
  "a %s reads no Secret or ConfigMap, runs nothing in a pod and creates no token",
  (name) => {
    const needs = needsOf(personRules(options({ role: name })));
    expect(
      needs.filter(({ resource }) => /secrets|configmaps|exec|attach|token|roles|accounts/.test(resource)),
    ).toEqual([]);
    expect(needs.filter(({ verb, resource }) => resource === "*" || verb === "*")).toEqual([]);
    const [object] = personObjects(options({ role: name }));
    expect(object?.metadata.annotations?.["kubernetes.io/description"]).toBe(
      personWords(options({ role: name })).join(" "),
    );
  },
);
