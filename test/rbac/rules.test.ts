import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { functionAccount } from "../../runtime/access/account.ts";
import { grants } from "../../runtime/access/grants.ts";
import type { FunctionManifest, Permission, Trigger } from "../../runtime/manifest/function.ts";
import { builtInKinds, type KnownKinds } from "../../runtime/rbac/kinds.ts";
import { rbacObjects } from "../../runtime/rbac/objects.ts";
import { functionRules, type RulesOptions, runtimeRules, runtimeRulesFor } from "../../runtime/rbac/rules.ts";
import { needsOf, rulesByNamespace } from "../../runtime/rbac/scoped-rule.ts";
import { manifestOf } from "../access/api-server.ts";
import { read } from "../reads/manifest.ts";
import { trigger } from "./trigger.ts";

const options: RulesOptions = { namespace: "wf", account: "watchfire" };
const kinds: KnownKinds = (apiVersion, kind) =>
  kind === "MyApp" ? { plural: "myapps", namespaced: true } : builtInKinds(apiVersion, kind);

/** One line per need: `list configmaps @demo`, `get secrets/slack @wf`; `@*` is everywhere. */
const lines = (rules: Parameters<typeof needsOf>[0]): string[] =>
  needsOf(rules)
    .map(({ verb, group, resource, name, namespace }) =>
      [verb, `${resource}${group && `.${group}`}${name === undefined ? "" : `=${name}`}`, `@${namespace ?? "*"}`].join(
        " ",
      ),
    )
    .sort();

const runtimeLines = (manifest: Partial<FunctionManifest>) =>
  lines(runtimeRulesFor(manifestOf(manifest), kinds, options));
const functionLines = (manifest: Partial<FunctionManifest>) =>
  lines(functionRules(manifestOf(manifest), kinds, options));
const token = "create serviceaccounts/token=watchfire-f @wf";

describe("the runtime's account", () => {
  test.each<[string, Partial<Trigger>, string[]]>([
    [
      "in the namespaces named",
      { namespaces: { type: "names", names: ["a", "b"] } },
      ["list configmaps @a", "list configmaps @b", "watch configmaps @a", "watch configmaps @b"],
    ],
    ["everywhere, where no namespace is named", {}, ["list configmaps @*", "watch configmaps @*"]],
    [
      "everywhere with the namespaces themselves, where labels choose them",
      { namespaces: { type: "labels", labelSelector: "t=1" } },
      ["list configmaps @*", "list namespaces @*", "watch configmaps @*", "watch namespaces @*"],
    ],
    [
      "everywhere, where the kind lies in no namespace",
      { kind: "Node", namespaces: { type: "names", names: ["a"] } },
      ["list nodes @*", "watch nodes @*"],
    ],
    [
      "with the definition of a custom kind by name",
      { apiVersion: "my.domain/v1", kind: "MyApp" },
      [
        "get customresourcedefinitions.apiextensions.k8s.io=myapps.my.domain @*",
        "list myapps.my.domain @*",
        "watch myapps.my.domain @*",
      ],
    ],
    [
      "one object, where the selector asks for it by its name",
      {
        kind: "Secret",
        fieldSelector: "metadata.name=tls-cert,type!=Opaque",
        namespaces: { type: "names", names: ["a"] },
      },
      ["list secrets=tls-cert @a", "watch secrets=tls-cert @a"],
    ],
    [
      "all that a selector leaves, where it names what is left out",
      { fieldSelector: "metadata.name!=x" },
      ["list configmaps @*", "watch configmaps @*"],
    ],
    [
      "everywhere, where a field alone says the namespace, of which authorizers know nothing",
      { fieldSelector: "metadata.namespace=a" },
      ["list configmaps @*", "watch configmaps @*"],
    ],
  ])("lists and watches %s", (_, more, expected) => {
    expect(runtimeLines({ triggers: [trigger(more)] })).toEqual([...expected, token].sort());
  });

  test("needs nothing for a schedule", () => {
    const times = { everyMs: 60_000 };
    const schedules = [{ name: "tick", index: 0, times, jitterMs: 0, missed: "Once" as const }];
    expect(runtimeLines({ triggers: [], schedules })).toEqual([token]);
    expect(functionLines({ triggers: [], schedules })).toEqual([]);
  });

  test("lists and watches what the reads name, as it does what the triggers name, and the function's account gains nothing", () => {
    const reads = [
      read({ kind: "Pod", namespaces: { type: "names", names: ["a"] } }),
      read({ kind: "Secret", fieldSelector: "metadata.name=x" }),
      read({ kind: "Node" }),
      read({ apiVersion: "my.domain/v1", kind: "MyApp" }),
    ];
    expect(runtimeLines({ reads })).toEqual(
      [
        token,
        "get customresourcedefinitions.apiextensions.k8s.io=myapps.my.domain @*",
        "list myapps.my.domain @*",
        "list nodes @*",
        "list pods @a",
        "list secrets=x @*",
        "watch secrets=x @*",
        "watch myapps.my.domain @*",
        "watch nodes @*",
        "watch pods @a",
      ].sort(),
    );
    expect(functionLines({ reads })).toEqual([]);
    expect(() => runtimeLines({ reads: [read({ kind: "Podd" })] })).toThrow(/WF_RBAC_UNKNOWN_KIND .*spec\.reads\[0\]/);
  });

  test("reads no Secret, writes nothing, and acts as no function but by its token", () => {
    const powers: Partial<FunctionManifest> = {
      triggers: [trigger()],
      permissions: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["*"] }],
      env: [{ name: "A", secretKeyRef: { name: "slack", key: "k", optional: false } }],
    };
    expect(runtimeLines(powers)).toEqual([token, "list configmaps @*", "watch configmaps @*"].sort());
  });

  test("needs of itself to look at namespaces alone, and more by each thing that it is asked to do", () => {
    const of = (more: Partial<RulesOptions>) =>
      lines(runtimeRules({ ...options, ...more })).filter((line) => line !== "get namespaces @*");
    expect(of({})).toEqual([]);
    expect(of({ deployed: true })).toEqual(["list configmaps @wf", "watch configmaps @wf"]);
    expect(of({ leaderElect: true })).toContain("update leases.coordination.k8s.io=watchfire @wf");
    expect(of({ store: "kubernetes" })).toContain("update secrets=watchfire-checkpoint-0 @wf");
    expect(
      of({ store: "kubernetes" }).filter((line) => !/^(?:get|update) secrets=watchfire-checkpoint-\d+ @wf$/.test(line)),
    ).toEqual([]);
    expect(of({ functionStatus: true })).toContain("patch functions/status.watchfire.dev @wf");
    expect(of({ functionStatus: true })).toContain("watch functionsets.watchfire.dev @wf");
  });
});

describe("a function's account", () => {
  test("may do what the manifest says, where it says so", () => {
    const permissions: Permission[] = [
      { apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["get", "patch"], namespaces: ["a", "b"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["list"] },
    ];
    expect(functionLines({ permissions })).toEqual([
      "get deployments/scale.apps @a",
      "get deployments/scale.apps @b",
      "list namespaces @*",
      "patch deployments/scale.apps @a",
      "patch deployments/scale.apps @b",
    ]);
  });

  test("all verbs means those of its client, and with names those that RBAC grants by name", () => {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["*"], namespaces: ["a"] };
    const verbs = (permission: Permission) =>
      functionLines({ permissions: [permission] }).map((line) => line.split(" ")[0]);
    expect(verbs(rule)).toEqual(["create", "delete", "get", "list", "patch", "update"]);
    expect(verbs({ ...rule, resourceNames: ["x"] })).toEqual(["delete", "get", "list", "patch", "update"]);
    const evict = { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"], resourceNames: ["x"] };
    expect(functionLines({ permissions: [evict] })).toEqual(["create pods/eviction=x @*"]);
  });

  test("is granted once what two rules ask for, by the wider of them", () => {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] };
    const permissions = [
      { ...rule, namespaces: ["a"] },
      { ...rule, namespaces: ["a"], resourceNames: ["x"] },
    ];
    expect(functionLines({ permissions })).toEqual(["get configmaps @a"]);
    expect(functionLines({ permissions: [...permissions, rule] })).toEqual(["get configmaps @*"]);
  });

  test("reads what its environment names, and only that", () => {
    const env = [
      { name: "A", secretKeyRef: { name: "slack", key: "k", optional: false } },
      { name: "B", configMapKeyRef: { name: "settings", key: "k", optional: true } },
      { name: "C", value: "plain" },
    ];
    expect(functionLines({ env })).toEqual(["get configmaps=settings @wf", "get secrets=slack @wf"]);
  });

  test.each<[string, Partial<Trigger>, string]>([
    ["beside objects in the namespaces named", { namespaces: { type: "names", names: ["a"] } }, "@a"],
    ["wherever its objects may lie", {}, "@*"],
    ["in default, of objects that lie in no namespace", { kind: "Node" }, "@default"],
  ])("writes Events %s", (_, more, where) => {
    expect(functionLines({ triggers: [trigger(more)] })).toEqual([`create events ${where}`, `patch events ${where}`]);
  });

  test.each(["", "events.k8s.io"])("that may create Events (%j) may count them", (group) => {
    const permissions = [{ apiGroups: [group], resources: ["events"], verbs: ["create"], namespaces: ["a"] }];
    expect(functionLines({ permissions })).toEqual(expect.arrayContaining(["create events @a", "patch events @a"]));
  });

  test.each<[string, Partial<Permission>]>([
    ["resources", { resources: ["*"] }],
    ["resources", { resources: ["*/scale"] }],
    ["apiGroups", { apiGroups: ["*"] }],
    ["resourceNames", { resourceNames: ["*"] }],
  ])("is refused where its %s are all that there are", (field, more) => {
    const permissions = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"], ...more }];
    expect(() => functionLines({ permissions })).toThrow(
      expect.objectContaining({
        code: "WF_RBAC_WILDCARD",
        detail: expect.objectContaining({ path: `spec.permissions[0].${field}[0]` }),
      }),
    );
  });

  test("is refused where nobody knows the resource behind a trigger's kind", () => {
    const triggers = [trigger(), trigger({ apiVersion: "other.domain/v1", kind: "Thing" })];
    expect(() => functionLines({ triggers })).toThrow(
      expect.objectContaining({
        code: "WF_RBAC_UNKNOWN_KIND",
        detail: expect.objectContaining({ path: "spec.triggers[1].watch" }),
      }),
    );
  });
});

describe("an account's name", () => {
  test("is the runtime's and the function's", () => {
    expect(functionAccount("watchfire", "copy-labels")).toBe("watchfire-copy-labels");
  });

  test("is never longer than a name may be, and differs where the functions do", () => {
    const account = "a".repeat(240);
    const names = ["one-function-of-many", "one-function-of-more"].map((name) => functionAccount(account, name));
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^[a-z0-9-]{1,252}[a-z0-9]$/);
  });
});

const namespaces = fc.option(fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 }), { nil: undefined });
const names = fc.option(fc.uniqueArray(fc.constantFrom("x", "y"), { minLength: 1 }), { nil: undefined });
const some = <T>(...values: T[]) => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 });
const permission: fc.Arbitrary<Permission> = fc
  .record({
    apiGroups: some("", "apps"),
    resources: some("pods", "configmaps", "deployments/scale"),
    verbs: some("get", "list", "create", "update", "patch", "delete", "*"),
    names,
    namespaces,
  })
  .map(({ names: resourceNames, namespaces: where, ...rule }) => ({
    ...rule,
    ...(resourceNames && { resourceNames }),
    ...(where && { namespaces: where }),
  }));

describe("any manifest", () => {
  test("the printed rules grant just what our own check grants, and hold no wildcard", () => {
    const demands = ["", "apps"].flatMap((group) =>
      ["pods", "configmaps", "deployments"].flatMap((resource) =>
        (["get", "list", "create", "update", "patch", "delete"] as const).flatMap((verb) =>
          ["a", "b", "c", "d", undefined].flatMap((namespace) =>
            (verb === "create" && resource !== "deployments"
              ? [undefined]
              : verb === "list"
                ? [undefined, "x", "z"]
                : ["x", "y", "z"]
            ).map((name) => ({
              group,
              resource,
              verb,
              ...(resource === "deployments" && { subresource: "scale" }),
              ...(namespace !== undefined && { namespace }),
              ...(name !== undefined && { name }),
            })),
          ),
        ),
      ),
    );
    fc.assert(
      fc.property(fc.array(permission, { minLength: 1, maxLength: 4 }), (permissions) => {
        const byNamespace = rulesByNamespace(needsOf(functionRules(manifestOf({ permissions }), kinds, options)));
        const printed = [...byNamespace].flatMap(([namespace, rules]) =>
          rules.map((rule) => ({ ...rule, ...(namespace !== "" && { namespaces: [namespace] }) })),
        );
        expect(JSON.stringify(printed)).not.toContain('"*"');
        for (const demand of demands) {
          const ours = permissions.some((rule) => grants(rule, demand));
          expect(printed.some((rule) => grants(rule, demand))).toBe(ours);
        }
      }),
    );
  });

  test("prints the same objects, each once, in whatever order its functions and rules stand", () => {
    fc.assert(
      fc.property(fc.array(permission, { minLength: 1, maxLength: 4 }), (permissions) => {
        const print = (rules: Permission[], order: (all: FunctionManifest[]) => FunctionManifest[]) =>
          rbacObjects(
            order([manifestOf({ name: "f", permissions: rules }), manifestOf({ name: "g" })]),
            kinds,
            options,
          );
        const printed = print(permissions, (all) => all);
        expect(print(permissions.toReversed(), (all) => all.toReversed())).toEqual(printed);
        const ids = printed.map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name].join("/"));
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });
});
