import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ./handler.ts
  triggers: [{ name: all, watch: { apiVersion: v1, kind: ConfigMap } }]
  permissions: [{ apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [watchfire] }]
`;

const project = (text = manifest): string =>
  folderOf({ "greet/function.yaml": text, "greet/handler.ts": "export default () => {};" });

test("rbac -o json prints the objects of its YAML as one list, and its warnings on stderr", async () => {
  const words = ["rbac", "--functions", project(), "--namespace", "watchfire"];
  const [yaml, json] = await Promise.all([watchfire(words), watchfire([...words, "-o", "json"])]);
  const items = parseAllDocuments(yaml.stdout).map((document) => document.toJS());
  expect(items.length).toBeGreaterThan(3);
  expect(JSON.parse(json.stdout)).toEqual({ apiVersion: "v1", kind: "List", items });
  expect(json.stderr).toMatch(/^warning: WF_RBAC_/);
});

test("rbac --explain -o json prints what each function can see and do", async () => {
  const { stdout } = await watchfire(["rbac", "--explain", "--functions", project(), "-o", "json"]);
  expect(JSON.parse(stdout)).toEqual({
    functions: [
      expect.objectContaining({
        function: "greet",
        account: "watchfire-greet",
        namespace: null,
        triggers: ["all: each ConfigMap (v1) everywhere, as a whole"],
        sees: ["get secrets in namespace watchfire"],
        does: ["write Events about the objects of its triggers"],
        egress: [],
      }),
    ],
  });
});

test("a manifest's fault leaves stdout of rbac -o json empty, and is on stderr", async () => {
  const functions = project(manifest.replace("ConfigMap", "configmap!"));
  const { status, stdout, stderr } = await watchfire([
    "rbac",
    "--functions",
    functions,
    "--namespace",
    "watchfire",
    "-o",
    "json",
  ]);
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toMatch(/function\.yaml:\d+:\d+ spec\.triggers\[0\]\.watch\.kind/);
});

test("types -o json prints the files that it has written, with the function or the definition of each", async () => {
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "shops.shop.example" },
    spec: { group: "shop.example", names: { kind: "Shop" }, versions: [{ name: "v1" }] },
  };
  const folder = folderOf({
    "crd.json": JSON.stringify(definition),
    "functions/greet/function.yaml": manifest,
    "functions/greet/handler.ts": "export default () => {};",
  });
  const { stdout } = await watchfire(["types", "--crd", "crd.json", "-o", "json"], {}, folder);
  expect(JSON.parse(stdout)).toEqual({
    files: [
      { file: "functions/greet/function.d.ts", function: "greet" },
      { file: "types/shops.shop.example.ts", definition: "shops.shop.example" },
    ],
  });
});

test("validate warns of a function.d.ts that is not of its manifest, and says what to do", async () => {
  const functions = folderOf({
    "greet/function.yaml": manifest,
    "greet/handler.ts": "export default () => {};",
    "greet/function.d.ts": "// old",
  });
  const { status, stdout } = await watchfire(["validate", "--functions", functions, "-o", "json"]);
  expect(status).toBe(0);
  expect(JSON.parse(stdout).warnings).toContainEqual(
    expect.objectContaining({ code: "WF_TYPES_STALE", hint: "run `watchfire types`" }),
  );
});
