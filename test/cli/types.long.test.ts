import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import { afterAll, expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { folderOf } from "../tools/folder.ts";
import { compilerFaults, typedProject } from "../tools/typed-project.ts";
import { watchfire } from "./run.ts";

const cluster = await startCluster();
const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
afterAll(async () => {
  await transport.close();
  await cluster.close();
});

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "shops.shop.example" },
  spec: {
    group: "shop.example",
    scope: "Namespaced",
    names: { kind: "Shop", listKind: "ShopList", plural: "shops", singular: "shop" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: { size: { type: "integer", description: "How many rooms it has." } },
              },
            },
          },
        },
      },
    ],
  },
};

const handler = (field: string) => `
import { defineHandler } from "@watchfire/sdk";
export default defineHandler(async (_event, { kube }) => {
  const shop = await kube.get({ apiVersion: "shop.example/v1", kind: "Shop", name: "a", namespace: "b" });
  return shop.spec?.${field};
});
`;

test("types writes the types of a cluster's definitions, and a handler's wrong field is an error from then on", async () => {
  await transport.json({
    method: "POST",
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(definition),
  });
  const folder = typedProject({ "good.ts": handler("size"), kubeconfig: cluster.kubeconfig });
  const out = join(folder, "types");
  const { stdout, status } = await watchfire(
    ["types", "--kubeconfig", join(folder, "kubeconfig"), "--out", out],
    {},
    folder,
  );
  expect(stdout).toBe(`${join(out, "shops.shop.example.ts")}\n`);
  expect(status).toBe(0);
  expect(readFileSync(join(out, "shops.shop.example.ts"), "utf8")).toMatch(
    /\* How many rooms it has\.\n +\*\/\n +size\?: number;/,
  );
  expect(compilerFaults(folder)).toEqual([]);
  writeFileSync(join(folder, "bad.ts"), handler("sise"));
  expect(compilerFaults(folder).join("\n")).toMatch(/^bad\.ts\(5,\d+\): .*'sise' does not exist .*size\?: number/);
});

test("types without a cluster says that files of definitions serve as well", async () => {
  const folder = folderOf({});
  const none = await watchfire(["types", "--out", join(folder, "types")], { KUBECONFIG: join(folder, "none") }, folder);
  expect(none.stderr).toMatch(/^WF_KUBE_CONFIG: .*; name the definitions' file or folder with --crd, or a cluster/);
  const absent = await watchfire(
    ["types", "--crd", join(folder, "absent"), "--out", join(folder, "types")],
    {},
    folder,
  );
  expect(absent.stderr).toMatch(/^WF_TYPES_DEFINITION .*absent: .*; name a file or folder that can be read with --crd/);
});

test("types makes those that are named, and answers a misspelt name with the one that was probably meant", async () => {
  const named = (name: string) => ({ ...definition, metadata: { name } });
  const folder = folderOf({ "crds/all.json": JSON.stringify({ kind: "List", items: ["a.b", "c.d"].map(named) }) });
  const types = (...words: string[]) =>
    watchfire(["types", "--crd", join(folder, "crds"), "--out", join(folder, "types"), ...words], {}, folder);
  expect((await types("c.d")).status).toBe(0);
  expect(readdirSync(join(folder, "types"))).toEqual(["c.d.ts"]);
  const { stderr, status } = await types("c.e");
  expect(stderr).toMatch(/^WF_TYPES_NONE: .*"c\.e"; did you mean c\.d\?/);
  expect(status).toBe(1);
});

const greet = (trigger: string, kind = "ConfigMap") => `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ./handler.ts
  triggers: [{ name: ${trigger}, watch: { apiVersion: v1, kind: ${kind} } }]
`;

test("types writes the types of each function without a cluster, and those of named definitions alone", async () => {
  const folder = folderOf({
    "functions/greet/function.yaml": greet("all"),
    "functions/greet/handler.ts": "export default () => {};",
    "functions/bad/function.yaml": greet("all", "configmap!").replace("greet", "bad"),
    "crds/a.json": JSON.stringify({ ...definition, metadata: { name: "a.b" } }),
  });
  const named = await watchfire(["types", "--crd", "crds", "a.b"], {}, folder);
  expect(named).toMatchObject({ status: 0, stdout: "types/a.b.ts\n" });
  const refused = await watchfire(["types"], { KUBECONFIG: join(folder, "none") }, folder);
  expect(refused).toMatchObject({ status: 1, stdout: "functions/greet/function.d.ts\n" });
  expect(refused.stderr).toMatch(/^WF_MANIFEST_\S+ functions\/bad\/function\.yaml:/);
  rmSync(join(folder, "functions/bad"), { recursive: true });
  const { stdout, stderr, status } = await watchfire(["types"], { KUBECONFIG: join(folder, "none") }, folder);
  expect({ stdout, status }).toEqual({ stdout: "functions/greet/function.d.ts\n", status: 0 });
  expect(stderr).toMatch(/^no types of custom resources: WF_KUBE_CONFIG: .*--crd/);
  expect(readFileSync(join(folder, "functions/greet/function.d.ts"), "utf8")).toContain(
    'readonly all: sdk.ObjectOf<"v1", "ConfigMap">;',
  );
});

const placeholder = (name: string) => `$\{${name}}`;

test("types fills manifests with --values, and refuses a value that no manifest uses", async () => {
  const folder = folderOf({
    "functions/greet/function.yaml": greet(`"${placeholder("trigger")}"`),
    "functions/greet/handler.ts": "export default () => {};",
    "stage.yaml": "trigger: staged\n",
  });
  const types = () => watchfire(["types", "--values", "stage.yaml"], { KUBECONFIG: join(folder, "none") }, folder);
  await types();
  expect(readFileSync(join(folder, "functions/greet/function.d.ts"), "utf8")).toContain(
    "readonly staged: sdk.ObjectOf",
  );
  writeFileSync(join(folder, "stage.yaml"), "trigger: staged\nspare: 1\n");
  const { stderr, status } = await types();
  expect(stderr).toContain(`WF_MANIFEST_VALUE_UNUSED stage.yaml:2:1: no manifest has ${placeholder("spare")}`);
  expect(status).toBe(1);
});
