import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { GroupVersion } from "../../runtime/kube/discovery-document.ts";
import type { Permission } from "../../runtime/manifest/function.ts";
import { accessTo, errorOf, everything } from "./api-server.ts";

const all = ["create", "delete", "get", "list", "patch", "update", "watch"];

const served = (apiVersion: string, ...resources: (readonly [string, string, boolean, (readonly string[])?])[]) => {
  const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  return {
    group,
    version,
    resources: resources.map(([plural, kind, namespaced, verbs = all]) => ({
      group,
      version,
      plural,
      kind,
      namespaced,
      verbs,
      subresources: [],
    })),
  } satisfies GroupVersion;
};

const cluster = [
  served("v1", ["configmaps", "ConfigMap", true], ["nodes", "Node", false], ["bindings", "Binding", true, ["create"]]),
  served("autoscaling/v2", ["horizontalpodautoscalers", "HorizontalPodAutoscaler", true]),
  served("autoscaling/v1", ["horizontalpodautoscalers", "HorizontalPodAutoscaler", true], ["olds", "Old", true]),
];

async function kindsOf(permissions: readonly Permission[], args: object = {}) {
  const discovery = { ...lookup, served: async () => cluster };
  const { call } = await accessTo({ manifest: { permissions }, discovery });
  const reply = await call("kube.kinds", args);
  if (!reply.ok) throw new Error(reply.error.message);
  return JSON.parse(reply.json) as { apiVersion: string; kind: string; verbs: string[] }[];
}

const lookup = {
  resolve: () => Promise.reject(new Error("no kind is looked up")),
  missing: () => undefined,
  invalidate: () => {},
};

const names = (kinds: readonly { apiVersion: string; kind: string }[]) =>
  kinds.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`);

describe("the kinds that a function may use", () => {
  it("are those that it may list, each once, in the version that the server prefers", async () => {
    expect(names(await kindsOf([everything]))).toEqual([
      "v1 ConfigMap",
      "v1 Node",
      "autoscaling/v2 HorizontalPodAutoscaler",
      "autoscaling/v1 Old",
    ]);
  });

  it("are bounded by groups, resources and verbs of the manifest, and have the verbs that are granted and served", async () => {
    const rule = { apiGroups: [""], resources: ["configmaps", "bindings"], verbs: ["list", "create", "delete"] };
    expect(await kindsOf([rule])).toEqual([
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        namespaced: true,
        verbs: ["list", "create", "delete"],
      },
    ]);
    expect(names(await kindsOf([rule], { verbs: ["create"] }))).toEqual(["v1 ConfigMap", "v1 Binding"]);
    expect(await kindsOf([rule], { verbs: ["list", "patch"] })).toEqual([]);
    expect(await kindsOf([])).toEqual([]);
  });

  it("of a namespace are the namespaced ones that are granted there, and rules with names or namespaces count nowhere else", async () => {
    const rules = [
      { ...everything, namespaces: ["demo"], resources: ["configmaps", "nodes"] },
      { ...everything, resources: ["olds"], resourceNames: ["one"] },
    ];
    expect(names(await kindsOf(rules, { namespace: "demo" }))).toEqual(["v1 ConfigMap"]);
    expect(await kindsOf(rules, { namespace: "other" })).toEqual([]);
    expect(await kindsOf(rules)).toEqual([]);
  });

  it.each([
    [{ verbs: [] }, "verbs"],
    [{ verbs: ["watch"] }, "verbs"],
    [{ namespace: "No/t" }, "namespace"],
  ])("are refused for %j", async (args, said) => {
    const { call } = await accessTo({ manifest: { permissions: [everything] } });
    expect(errorOf(await call("kube.kinds", args))).toMatchObject({
      type: "InvalidError",
      message: expect.stringContaining(said),
    });
  });

  it("are an error, and not empty, on a server that has no document of all kinds", async () => {
    const { call } = await accessTo({ manifest: { permissions: [everything] } });
    expect(errorOf(await call("kube.kinds", {}))).toMatchObject({ type: "KubeError", reason: "NotServed" });
  });

  it("are read again after ten minutes, without those that are gone, and in the server's order", async () => {
    let now = 0;
    const documents = [
      [{ metadata: { name: "a" }, versions: [versionOf("v1", "ones"), versionOf("v2", "ones")] }],
      [{ metadata: { name: "a" }, versions: [versionOf("v2", "ones"), versionOf("v1", "ones")] }],
    ];
    documents[0]?.push({ metadata: { name: "b" }, versions: [versionOf("v1", "others")] });
    const transport = {
      description: "a server",
      json: async ({ path }: { path: string }) =>
        ({ kind: "APIGroupDiscoveryList", items: path === "/apis" ? documents[now === 0 ? 0 : 1] : [] }) as never,
    };
    const clock = { ...systemClock, monotonic: () => now };
    const discovery = new Discovery(transport as never, clock as never);
    const { call } = await accessTo({ manifest: { permissions: [everything] }, discovery });
    const kinds = async () => {
      const reply = await call("kube.kinds", {});
      return reply.ok ? names(JSON.parse(reply.json)) : reply;
    };
    expect(await kinds()).toEqual(["a/v1 One", "b/v1 Other"]);
    now = 600_000;
    expect(await kinds()).toEqual(["a/v2 One"]);
  });
});

const versionOf = (version: string, resource: string) => {
  const kind = resource === "ones" ? "One" : "Other";
  return { version, resources: [{ resource, responseKind: { kind }, scope: "Cluster", verbs: all }] };
};
