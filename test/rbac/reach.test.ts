// Permissions that reach the runtime's own objects, and permissions that need no warning.
import { describe, expect, it } from "vitest";
import type { Permission } from "../../runtime/manifest/function.ts";
import { reachWarnings } from "../../runtime/rbac/reach.ts";
import { manifestOf } from "../access/api-server.ts";

const runtime = { namespace: "watchfire", account: "watchfire" };

const rule = (group: string, resources: string[], verbs: string[], more: Partial<Permission> = {}): Permission => ({
  apiGroups: [group],
  resources,
  verbs,
  ...more,
});

const warningsOf = (permission: Permission, of: Parameters<typeof reachWarnings>[1] = runtime) =>
  reachWarnings(manifestOf({ permissions: [permission] }), of);

const rbac = "rbac.authorization.k8s.io";
/** One example of each kind of right that leads to the runtime. */
const reaching: [group: string, resource: string, verb: string][] = [
  ...["create", "update", "patch", "delete"].map((verb): [string, string, string] => ["", "configmaps", verb]),
  ...["get", "list", "create", "update"].map((verb): [string, string, string] => ["", "secrets", verb]),
  ["", "serviceaccounts", "delete"],
  ["", "pods", "create"],
  ["", "pods/exec", "create"],
  ["", "pods/ephemeralcontainers", "patch"],
  ["apps", "deployments", "patch"],
  ["apps", "statefulsets", "delete"],
  ["apps", "statefulsets/scale", "patch"],
  ["batch", "cronjobs", "create"],
  ["coordination.k8s.io", "leases", "update"],
  [rbac, "roles", "create"],
  [rbac, "rolebindings", "patch"],
  ["watchfire.dev", "functions", "delete"],
  ["watchfire.dev", "functions/status", "patch"],
  ["", "namespaces", "delete"],
];
const harmless: [group: string, resource: string, verb: string][] = [
  ["", "configmaps", "get"],
  ["", "pods", "list"],
  ["", "events", "create"],
  ["", "namespaces", "get"],
  ["apps", "deployments/scale", "patch"],
  ["apps", "configmaps", "patch"],
];

describe("a permission", () => {
  it.each(reaching)("in all namespaces is warned of: %s %s %s", (group, resource, verb) => {
    const [warning, ...more] = warningsOf(rule(group, [resource], [verb]));
    expect(more).toEqual([]);
    expect(warning).toMatchObject({ code: "WF_RBAC_OWN_OBJECTS", path: ["spec", "permissions", 0] });
    expect(warning?.what).toMatch(new RegExp(`^${verb} of ${resource} reaches `));
    expect(warning?.hint).toContain("`namespaces` other than watchfire");
  });

  it.each(reaching)("in the runtime's namespace is warned of, and in others not: %s %s %s", (group, resource, verb) => {
    const [warning] = warningsOf(rule(group, [resource], [verb], { namespaces: ["team-a", "watchfire"] }));
    expect(warning?.hint).toMatch(/^take watchfire out of its `namespaces`, or /);
    expect(warningsOf(rule(group, [resource], [verb], { namespaces: ["team-a"] }))).toEqual([]);
  });

  it.each(harmless)("that changes nothing of the runtime's is not warned of: %s %s %s", (group, resource, verb) => {
    expect(warningsOf(rule(group, [resource], [verb]))).toEqual([]);
  });

  it("for objects by name is warned of where a name is reserved", () => {
    const of = (name: string, resource = "configmaps") =>
      warningsOf(rule("", [resource], ["get", "patch", "delete"], { resourceNames: ["notes", name] })).length;
    expect([of("copy"), of("watchfire-functions"), of("watchfire-checkpoint-0", "secrets"), of("watchfires")]).toEqual([
      0, 1, 1, 0,
    ]);
    expect([of("team-a", "namespaces"), of("watchfire", "namespaces")]).toEqual([0, 1]);
    expect(warningsOf(rule("", ["secrets"], ["list"], { resourceNames: ["watchfire-checkpoint-0"] }))[0]?.what).toMatch(
      /^list of secrets reaches /,
    );
    // An apply creates by name.
    const create = (resource: string) =>
      warningsOf(rule("", [resource], ["create"], { resourceNames: ["watchfire-0"] })).map(({ what }) => what);
    expect(create("pods")).toEqual(["create of pods reaches the runtime's pod, and a pod under any account"]);
    expect(create("pods/exec")).toEqual(["create of pods/exec reaches the inside of the runtime's pod"]);
  });

  it("for everything has one warning, which names a few powers and counts the others", () => {
    const [warning, ...more] = warningsOf(rule("*", ["*"], ["*"]));
    expect(more).toEqual([]);
    expect(warning?.what).toMatch(/^create, update, patch, delete of configmaps reaches .*; and \d+ more$/);
    expect(warningsOf(rule("apps", ["*/scale"], ["*"]))[0]?.what).toContain("statefulsets/scale");
  });

  it("is warned of for all namespaces alone where nobody says which the runtime's is", () => {
    const unknown = { namespace: undefined, account: "watchfire" };
    expect(warningsOf(rule("", ["configmaps"], ["patch"]), unknown)[0]?.hint).toContain("other than the runtime's");
    expect(warningsOf(rule("", ["configmaps"], ["patch"], { namespaces: ["watchfire"] }), unknown)).toEqual([]);
  });

  it("has its own warning, at its own place", () => {
    const permissions = [
      rule("", ["events"], ["create"]),
      rule("", ["pods"], ["delete"]),
      rule("", ["secrets"], ["get"]),
    ];
    const paths = reachWarnings(manifestOf({ permissions }), runtime).map(({ path }) => path.at(-1));
    expect(paths).toEqual([1, 2]);
  });
});
