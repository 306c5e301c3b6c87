// Grants that reach further than they say. The lists are written by hand, so that a line cannot disappear from the table
// unnoticed.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Permission } from "../../runtime/manifest/function.ts";
import { powers } from "../../runtime/rbac/powers.ts";
import { reachOf, reachWarnings } from "../../runtime/rbac/reach.ts";
import { manifestOf } from "../access/api-server.ts";

const runtime = { namespace: "watchfire", account: "watchfire" };

const rule = (group: string, resource: string, verb: string, more: Partial<Permission> = {}): Permission => ({
  apiGroups: [group],
  resources: [resource],
  verbs: [verb],
  ...more,
});

const wordsOf = (permission: Permission): string =>
  reachOf(permission, runtime)
    .map(({ words }) => words)
    .join("; ");
const warningsOf = (permission: Permission) => reachWarnings(manifestOf({ permissions: [permission] }), runtime);

const rbac = "rbac.authorization.k8s.io";
const admission = "admissionregistration.k8s.io";

type Grant = readonly [group: string, resource: string, verb: string, reached: RegExp];

/** Grants with a warning in all namespaces and in kube-system. */
const system: readonly Grant[] = [
  ["", "secrets", "get", /credentials in the namespace/],
  ["", "secrets", "list", /credentials in the namespace/],
  ["", "secrets", "create", /token of any account of the namespace/],
  ["", "configmaps", "patch", /cluster's DNS/],
  ["", "pods", "create", /Secrets, volumes and accounts of the namespace.* the node/],
  ["", "replicationcontrollers", "update", /Secrets, volumes and accounts/],
  ["apps", "daemonsets", "patch", /Secrets, volumes and accounts/],
  ["apps", "deployments", "create", /Secrets, volumes and accounts/],
  ["apps", "statefulsets", "update", /Secrets, volumes and accounts/],
  ["apps", "replicasets", "create", /Secrets, volumes and accounts/],
  ["apps", "daemonsets", "delete", /DNS, network and storage/],
  ["batch", "jobs", "create", /Secrets, volumes and accounts/],
  ["batch", "cronjobs", "patch", /Secrets, volumes and accounts/],
  ["", "pods/exec", "create", /inside of every running container/],
  ["", "pods/exec", "get", /inside of every running container/],
  ["", "pods/attach", "create", /inside of every running container/],
  ["", "pods/ephemeralcontainers", "patch", /inside of every running container/],
  ["", "pods/portforward", "create", /ports that no NetworkPolicy opens/],
  ["", "services/proxy", "get", /ports that no NetworkPolicy opens/],
  ["", "pods", "delete", /pods of the control plane .* it can stop/],
  ["", "pods/eviction", "create", /pods of the control plane .* it can stop/],
  ["", "serviceaccounts", "patch", /cloud identity/],
  [rbac, "roles", "update", /who may do what in the namespace of the control plane/],
  [rbac, "rolebindings", "create", /who may do what in the namespace of the control plane/],
  ["", "namespaces", "patch", /labels by which Pod Security admission/],
  ["", "namespaces", "delete", /everything in a namespace/],
  ["networking.k8s.io", "networkpolicies", "delete", /which pods may talk to which/],
  ["", "services", "patch", /where traffic for a service goes/],
  ["", "endpoints", "update", /where traffic for a service goes/],
  ["discovery.k8s.io", "endpointslices", "create", /where traffic for a service goes/],
  ["networking.k8s.io", "ingresses", "create", /where traffic from outside goes/],
  ["coordination.k8s.io", "leases", "update", /scheduler and of the controller manager/],
];

/** Grants with a warning in every namespace. */
const anywhere: readonly Grant[] = [
  ["", "serviceaccounts/token", "create", /token of any account of the namespace/],
  ["", "serviceaccounts", "impersonate", /all that the accounts of the namespace may do/],
  [rbac, "roles", "escalate", /every right in the namespace/],
  [rbac, "roles", "bind", /every right in the namespace/],
];

/** Grants with a warning if the rule is cluster-wide, because their objects are in no namespace. */
const cluster: readonly Grant[] = [
  ["", "users", "impersonate", /system:masters/],
  ["", "groups", "impersonate", /system:masters/],
  ["authentication.k8s.io", "userextras", "impersonate", /attributes/],
  [rbac, "clusterroles", "escalate", /every right in the cluster/],
  [rbac, "clusterroles", "bind", /every right in the cluster/],
  [rbac, "clusterroles", "update", /rights of every account/],
  [rbac, "clusterrolebindings", "create", /rights of every account/],
  ["certificates.k8s.io", "certificatesigningrequests", "create", /client certificate under any name/],
  ["certificates.k8s.io", "certificatesigningrequests/approval", "update", /including those of system components/],
  ["certificates.k8s.io", "certificatesigningrequests/status", "patch", /including those of system components/],
  ["certificates.k8s.io", "signers", "approve", /kube-apiserver-client/],
  ["", "nodes/proxy", "get", /commands in every pod of a node/],
  ["", "nodes/proxy", "create", /commands in every pod of a node/],
  ["", "nodes", "patch", /where pods run/],
  ["", "nodes/status", "patch", /where pods run/],
  ["", "persistentvolumes", "create", /files of any node/],
  [
    admission,
    "mutatingwebhookconfigurations",
    "create",
    /each object that anybody writes, including Secrets: a webhook/,
  ],
  [
    admission,
    "validatingwebhookconfigurations",
    "patch",
    /each object that anybody writes, including Secrets: a webhook/,
  ],
  [admission, "mutatingadmissionpolicies", "create", /each object that anybody writes, including Secrets: a policy/],
  [
    admission,
    "validatingadmissionpolicybindings",
    "update",
    /each object that anybody writes, including Secrets: a policy/,
  ],
  [admission, "validatingadmissionpolicies", "delete", /the checks/],
  [admission, "validatingwebhookconfigurations", "delete", /the checks/],
  ["apiregistration.k8s.io", "apiservices", "create", /every request for an API group/],
  ["apiextensions.k8s.io", "customresourcedefinitions", "patch", /every object of a custom kind/],
];

const helm = rule("", "secrets", "update", {
  resourceNames: ["sh.helm.release.v1.shop.v3"],
  namespaces: ["team-a"],
});

describe("a grant that reaches further than it says", () => {
  it.each([...system, ...anywhere, ...cluster])(
    "is warned of for all namespaces, with what it reaches: %s %s %s",
    (group, resource, verb, reached) => {
      expect(wordsOf(rule(group, resource, verb))).toMatch(reached);
      const [warning, ...more] = warningsOf(rule(group, resource, verb));
      expect(more).toEqual([]);
      expect(warning?.code).toMatch(/^WF_RBAC_(?:POWERFUL|OWN_OBJECTS)$/);
      expect(warning?.what).toContain(`${verb} of ${resource} reaches `);
    },
  );

  it.each(system)(
    "is warned of in kube-system, and in an ordinary namespace not: %s %s %s",
    (group, resource, verb, reached) => {
      const [warning] = warningsOf(rule(group, resource, verb, { namespaces: ["kube-system", "team-a"] }));
      expect(warning?.code).toBe("WF_RBAC_POWERFUL");
      expect(warning?.what).toMatch(reached);
      expect(warning?.hint).toMatch(/^take kube-system out of its `namespaces`, or give it `resourceNames`$/);
      expect(warningsOf(rule(group, resource, verb, { namespaces: ["team-a"] }))).toEqual([]);
    },
  );

  it.each(anywhere)("is warned of in every namespace: %s %s %s", (group, resource, verb, reached) => {
    const [warning] = warningsOf(rule(group, resource, verb, { namespaces: ["team-a"] }));
    expect(warning).toMatchObject({ code: "WF_RBAC_POWERFUL", what: expect.stringMatching(reached) });
  });

  it.each(cluster)("is none in a namespace, where nothing of the kind lies: %s %s %s", (group, resource, verb) => {
    expect(warningsOf(rule(group, resource, verb, { namespaces: ["kube-system"] }))).toEqual([]);
  });

  it("is warned of where it is for a release that Helm installed, in every namespace", () => {
    expect(warningsOf(helm)).toMatchObject([
      { code: "WF_RBAC_POWERFUL", what: expect.stringContaining("reaches what Helm installed") },
    ]);
    expect(warningsOf({ ...helm, resourceNames: ["shop"] })).toEqual([]);
  });

  it("has a line here for each entry of the table but those over the runtime", () => {
    const told = new Set(
      [
        ...[...system, ...anywhere, ...cluster].map(([group, resource, verb]) => rule(group, resource, verb)),
        helm,
      ].flatMap((permission) => reachOf(permission, runtime).map(({ power }) => power)),
    );
    expect(powers.filter((power) => power.where !== "Runtime" && !told.has(power))).toEqual([]);
  });

  it("has a source that is kept, and says what it reaches in one sentence", () => {
    for (const { where, source, reached } of powers) {
      if (where !== "Runtime") expect(source).toMatch(/^(?:https:\/\/|Trivy KSV-\d|Kubescape C-\d|rbac-police \w)/);
      expect(reached).toMatch(/^[a-z][^.]*(?:\.[^. ][^.]*)*$/);
    }
  });

  it("is narrowed by `resourceNames` where another name is another thing, and not where each of them has the power", () => {
    const of = (group: string, resource: string, verb: string, ...resourceNames: string[]) =>
      warningsOf(rule(group, resource, verb, { resourceNames })).length;
    expect(of("", "secrets", "get", "tls")).toBe(0);
    expect(of("", "configmaps", "patch", "coredns")).toBe(1);
    expect(of("", "configmaps", "patch", "settings")).toBe(0);
    expect(of("", "namespaces", "patch", "team-a")).toBe(0);
    expect(of("", "namespaces", "patch", "kube-system")).toBe(1);
    expect(of("apiextensions.k8s.io", "customresourcedefinitions", "patch", "functions.watchfire.dev")).toBe(1);
    expect(of("apiextensions.k8s.io", "customresourcedefinitions", "patch", "shops.example.com")).toBe(0);
    expect(of(admission, "validatingwebhookconfigurations", "patch", "mine")).toBe(1);
    expect(of("apiregistration.k8s.io", "apiservices", "patch", "v1.example.com")).toBe(1);
    expect(of("", "nodes/proxy", "get", "node-1")).toBe(1);
    const inSystem = { namespaces: ["kube-system"], resourceNames: ["any"] };
    expect(warningsOf(rule("", "secrets", "get", inSystem))).toHaveLength(1);
  });

  it("is told what to narrow, or that nothing does", () => {
    const hintOf = (permission: Permission) => warningsOf(permission)[0]?.hint;
    expect(hintOf(rule("", "secrets", "get"))).toBe(
      "give it `namespaces` other than watchfire and kube-system, or `resourceNames`",
    );
    expect(hintOf(rule("networking.k8s.io", "networkpolicies", "delete"))).toContain("other than kube-system,");
    expect(hintOf(rule("", "nodes/proxy", "get"))).toContain("leave out what the handler does without");
    expect(hintOf(rule("", "secrets", "get", { namespaces: ["kube-system"] }))).toContain("leave out");
  });

  it.each([
    ["", "configmaps", "get"],
    ["", "pods", "list"],
    ["", "events", "create"],
    ["", "nodes", "list"],
    ["apps", "deployments/scale", "patch"],
    ["apps", "secrets", "get"],
    ["example.com", "apiservices", "create"],
    [admission, "validatingwebhookconfigurations", "list"],
  ])("is none of those that reach what they say: %s %s %s", (group, resource, verb) => {
    expect(warningsOf(rule(group, resource, verb))).toEqual([]);
  });
});

describe("however wide a rule is written", () => {
  const exact = fc.constantFrom(...powers.filter(({ isByName }) => !isByName)).chain(({ group, resources, verbs }) =>
    fc.record({
      group: fc.constant(group),
      resource: fc.constantFrom(...resources),
      verb: fc.constantFrom(...verbs),
    }),
  );
  const place = fc.constantFrom(undefined, ["kube-system"], ["watchfire", "team-a"], ["team-a"]);
  const extra = fc.array(fc.constantFrom("apps", "widgets", "get"), { maxLength: 2 });

  it("it has each power that the rule in so many words has: by `*` for groups, resources, verbs, and of subresources", () => {
    fc.assert(
      fc.property(
        exact,
        place,
        fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()),
        extra,
        (one, namespaces, wide, more) => {
          const { group, resource, verb } = one;
          const where = namespaces === undefined ? {} : { namespaces };
          const [anyGroup, anyResource, anyVerb, anyParent] = wide;
          const subresource = anyParent ? resource.replace(/^[^/]+(?=\/)/, "*") : resource;
          const widened: Permission = {
            apiGroups: [...more, anyGroup ? "*" : group],
            resources: [anyResource ? "*" : subresource, ...more],
            verbs: [...more, anyVerb ? "*" : verb],
            ...where,
          };
          const had = reachOf(rule(group, resource, verb, where), runtime).map(({ power }) => power);
          const has = reachOf(widened, runtime).map(({ power }) => power);
          expect(has).toEqual(expect.arrayContaining(had));
        },
      ),
    );
  });

  it("a rule for a resource has none of its subresources' powers, nor the other way round", () => {
    expect(wordsOf(rule("", "nodes", "get"))).toBe("");
    expect(wordsOf(rule("", "pods/status", "get"))).toBe("");
    expect(wordsOf(rule("", "*/exec", "create"))).not.toContain("nodes/proxy");
  });

  it("a rule for everything has every power that needs no name", () => {
    const all = reachOf(rule("*", "*", "*"), runtime).map(({ power }) => power);
    expect(all).toEqual(powers.filter(({ isByName }) => !isByName));
  });
});
