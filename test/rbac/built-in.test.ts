import fc from "fast-check";
import { expect, test } from "vitest";
import { builtInTable } from "../../runtime/kube/built-in-kinds.ts";
import { builtInWarnings } from "../../runtime/rbac/built-in.ts";
import type { DefinedResource } from "../../runtime/rbac/kinds.ts";
import { trigger } from "./trigger.ts";

const code = "WF_MANIFEST_NOT_BUILT_IN";
const rows = Object.entries(builtInTable).flatMap(([apiVersion, kinds]) =>
  Object.entries(kinds).map(([kind, [plural]]) => ({ apiVersion, kind, plural })),
);
const rule = (apiGroups: string[], ...resources: string[]) => ({ apiGroups, resources, verbs: ["get"] });
const ofKind = (apiVersion: string, kind: string, defined: DefinedResource[] = []) =>
  builtInWarnings({ triggers: [trigger({ apiVersion, kind })], schedules: [], reads: [], permissions: [] }, defined);
const ofRule = (apiGroups: string[], ...resources: string[]) =>
  builtInWarnings({ triggers: [], schedules: [], reads: [], permissions: [rule(apiGroups, ...resources)] }, []);

test("every built-in kind passes, and each with a letter left out is told with the name that was meant", () => {
  fc.assert(
    fc.property(fc.constantFrom(...rows), fc.nat(), ({ apiVersion, kind, plural }, at) => {
      const group = apiVersion.includes("/") ? apiVersion.replace(/\/.*/, "") : "";
      const without = (word: string) => word.slice(0, at % word.length) + word.slice((at % word.length) + 1);
      expect([...ofKind(apiVersion, kind), ...ofRule([group], plural, `${plural}/status`)]).toEqual([]);
      const siblings = rows.filter((row) => row.apiVersion === apiVersion).map((row) => row.kind);
      if (siblings.includes(without(kind))) return;
      const [warning] = ofKind(apiVersion, without(kind));
      expect(warning).toMatchObject({ code, path: ["spec", "triggers", 0, "watch", "kind"] });
      if (kind.length > 4) expect(warning?.hint).toMatch(/^did you mean \w+\?$/);
    }),
  );
});

test("a resource that its group lacks is told with the near name, or with the group that has it", () => {
  const path = ["spec", "permissions", 0, "resources", 1];
  expect(ofRule([""], "pods", "configmap")).toMatchObject([{ code, path, hint: "did you mean configmaps?" }]);
  expect(ofRule([""], "pods/log", "deployments")).toMatchObject([{ code, path, hint: "it is in the API group apps" }]);
  expect(ofRule(["apps"], "deployments", "pods")).toMatchObject([{ code, path, hint: 'it is in the API group ""' }]);
});

test("a group that has lost its end is told, with the version that has the kind, or with the whole group", () => {
  const path = ["spec", "triggers", 0, "watch", "apiVersion"];
  const kind = (apiVersion: string, name: string) => ofKind(apiVersion, name);
  expect(kind("networking/v1", "Ingress")).toMatchObject([{ code, path, hint: "Ingress is in networking.k8s.io/v1" }]);
  expect(kind("core/v1", "ConfigMap")).toMatchObject([{ code, path, hint: "ConfigMap is in v1" }]);
  const group = ["spec", "permissions", 0, "apiGroups", 1];
  expect(ofRule(["apps", "networking"], "ingresses")).toMatchObject([
    { code, path: group, hint: "did you mean networking.k8s.io?" },
  ]);
});

test("a kind of another group, and of a version that is gone, is told with the version that has it", () => {
  const path = ["spec", "triggers", 0, "watch"];
  const hint = "Deployment is in apps/v1";
  expect(ofKind("v1", "Deployment")).toMatchObject([{ code, path: [...path, "kind"], hint }]);
  expect(ofKind("batch/v1", "Deployment")).toMatchObject([{ code, path: [...path, "kind"], hint }]);
  for (const version of ["apps/v1beta1", "apps/v1beta2", "apps/v9"])
    expect(ofKind(version, "Deployment")).toMatchObject([{ code, path: [...path, "apiVersion"], hint }]);
  expect(ofKind("extensions.example/v1beta1", "Ingress")).toEqual([]);
});

test("nothing is said of other groups, wildcards, what nobody watches, and what a definition defines", () => {
  expect(ofKind("example.com/v1", "Deploymnt")).toEqual([]);
  expect(ofKind("apps/v9", "Shop")).toEqual([]);
  expect(ofRule(["", "example.com"], "shops")).toEqual([]);
  expect(ofRule(["*"], "shops")).toEqual([]);
  expect(ofRule([""], "*", "*/status", "users", "componentstatuses")).toEqual([]);
  const shop = { group: "apps", kind: "Shop", plural: "shops", namespaced: true, versions: ["v1"] };
  expect(ofKind("apps/v1", "Shop")).toHaveLength(1);
  expect(ofKind("apps/v1", "Shop", [shop])).toEqual([]);
});
