import { join } from "node:path";
import { expect, it } from "vitest";
import type { KubeRequest, KubeTransport } from "../../runtime/kube/transport.ts";
import { fetchDefinitions, readDefinitions } from "../../runtime/types/definition.ts";
import { folderOf } from "../tools/folder.ts";

const definition = (name: string) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name },
  spec: {
    group: "shop.example",
    names: { kind: "Shop" },
    versions: [{ name: "v1", served: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
});

const namesIn = (path: string) => readDefinitions(path).map(({ metadata }) => metadata.name);

it("definitions are found below a folder, amid other documents, and in a list as kubectl prints it; not in installed packages", () => {
  const folder = folderOf({
    "a/one.yaml": `kind: Namespace\n---\n${JSON.stringify(definition("one.shop.example"))}`,
    "b/list.json": JSON.stringify({ kind: "List", items: [definition("two.shop.example"), { kind: "Pod" }] }),
    "node_modules/x/crd.yaml": JSON.stringify(definition("three.shop.example")),
    "notes.md": "kind: CustomResourceDefinition",
  });
  expect(namesIn(folder)).toEqual(["one.shop.example", "two.shop.example"]);
  expect(namesIn(join(folder, "a/one.yaml"))).toEqual(["one.shop.example"]);
});

it.each([
  ["that is no YAML", "kind: CustomResourceDefinition\na: [", /^WF_TYPES_DEFINITION .*crd\.yaml:2:5: [^:]+; /],
  ["without versions", JSON.stringify({ ...definition("a.b"), spec: {} }), /crd\.yaml spec\.group: expected string/],
  ["whose name would leave the folder", JSON.stringify(definition("../a")), /metadata\.name: expected a DNS name/],
])("a definition %s is told of with its place", (_, text, fault) => {
  const folder = folderOf({ "crd.yaml": text });
  expect(() => readDefinitions(folder)).toThrow(fault);
});

it("a path that is not there is told of", () => {
  expect(() => readDefinitions(join(folderOf({}), "none"))).toThrow(/^WF_TYPES_DEFINITION.*none: there is no such/);
});

it("a cluster is asked for all pages of its definitions, whose items do not say their kind", async () => {
  const pages = [["a.shop.example", "b.shop.example"], ["c.shop.example"]];
  const asked: unknown[] = [];
  const json = async ({ query }: KubeRequest) => {
    asked.push(query?.continue);
    const page = pages[asked.length - 1] ?? [];
    const items = page.map(definition).map(({ kind: _, ...item }) => item);
    return { items, metadata: { continue: asked.length < pages.length ? `page ${asked.length}` : "" } };
  };
  const found = await fetchDefinitions({ json } as unknown as KubeTransport);
  expect(found.map(({ metadata }) => metadata.name)).toEqual(pages.flat());
  expect(asked).toEqual([undefined, "page 1"]);
});
