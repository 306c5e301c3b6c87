import { expect, it } from "vitest";
import { eachItem } from "../../runtime/manifest/field-path.ts";
import { loadSpec } from "./manifest.ts";

const triggers = "  triggers: [{ watch: { apiVersion: v1, kind: Pod } }]\n";
const faultsOf = async (more: string) =>
  (await loadSpec(`${triggers}  ${more}`)).faults.map(({ code, detail }) => `${detail.path} ${code}`);

it("a read is taken as a trigger's watch is, with an index's path in segments", async () => {
  const { functions, faults } = await loadSpec(`${triggers}  reads:
    - apiVersion: apps/v1
      kind: Deployment
      namespaceSelector: { matchNames: [b, a] }
      labelSelector: { matchLabels: { tier: web } }
      fieldSelector: metadata.name!=x
      indexes: [{ name: byImage, field: '.metadata.annotations["a.b/image"]' }]
  resources: { cache: 8Mi }`);
  expect(faults).toEqual([]);
  expect(functions[0]).toMatchObject({
    cacheBytes: 8 * 2 ** 20,
    reads: [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        namespaces: { type: "names", names: ["a", "b"] },
        labelSelector: "tier=web",
        fieldSelector: "metadata.name!=x",
        object: "Full",
        indexes: [{ name: "byImage", field: ["metadata", "annotations", "a.b/image"] }],
      },
    ],
  });
});

it("an index leads into the items of a list by [*], and by nothing else", async () => {
  const faultOf = async (field: string) =>
    await loadSpec(
      `${triggers}  reads: [{ apiVersion: v1, kind: Pod, object: Metadata, indexes: [{ name: a, field: '${field}' }] }]`,
    );
  const { functions } = await faultOf(".metadata.ownerReferences[*].uid");
  expect(functions[0]?.reads[0]?.indexes).toEqual([
    { name: "a", field: ["metadata", "ownerReferences", eachItem, "uid"] },
  ]);
  for (const field of ["[*].metadata", ".metadata[*", ".metadata.[*]", ".metadata[**]", ".metadata[]"])
    expect((await faultOf(field)).faults).toHaveLength(1);
  const [fault] = (await faultOf(".metadata.ownerReferences[0].uid")).faults;
  expect(fault?.message).toMatch(/an index is of all items: \.metadata\.ownerReferences\[\*\]\.uid/);
  expect(
    await faultsOf(
      "reads: [{ apiVersion: v1, kind: Pod, object: Metadata, indexes: [{ name: a, field: '.spec.containers[*].image' }] }]",
    ),
  ).toEqual(["spec.reads[0].indexes[0].field WF_MANIFEST_INVALID_VALUE"]);
  const changed = "triggers: [{ watch: { apiVersion: v1, kind: Pod, changedFields: ['.spec.containers[*].image'] } }]";
  expect((await loadSpec(`  ${changed}`)).faults).toHaveLength(1);
});

it("a kind is read once, whatever its version, since the handler names it by the kind", async () => {
  const reads = "reads: [{ apiVersion: apps/v1, kind: Deployment }, { apiVersion: apps/v1beta1, kind: Deployment }]";
  expect(await faultsOf(reads)).toEqual(["spec.reads[1].kind WF_MANIFEST_DUPLICATE_NAME"]);
  expect(
    await faultsOf("reads: [{ apiVersion: v1, kind: Event }, { apiVersion: events.k8s.io/v1, kind: Event }]"),
  ).toEqual([]);
});

it("an index of metadata's form is of the metadata, and its name is taken once", async () => {
  expect(
    await faultsOf(
      "reads: [{ apiVersion: v1, kind: Pod, object: Metadata, indexes: [{ name: a, field: .spec.nodeName }, { name: a, field: .metadata.name }] }]",
    ),
  ).toEqual([
    "spec.reads[0].indexes[0].field WF_MANIFEST_INVALID_VALUE",
    "spec.reads[0].indexes[1].name WF_MANIFEST_DUPLICATE_NAME",
  ]);
});

it("triggers and reads make 200 watches at most: one each, or one for each namespace that they name", async () => {
  const names = (from: number, count: number) =>
    `{ matchNames: [${Array.from({ length: count }, (_, at) => `n${from + at}`).join(", ")}] }`;
  const spec = (count: number) => `  triggers:
    - { name: a, watch: { apiVersion: v1, kind: Pod, namespaceSelector: ${names(0, 100)} } }
    - { name: b, watch: { apiVersion: v1, kind: Service, namespaceSelector: ${names(0, count)} } }
  reads: [{ apiVersion: v1, kind: ConfigMap }]`;
  expect((await loadSpec(spec(99))).faults).toEqual([]);
  const { faults } = await loadSpec(spec(100));
  expect(faults.map(({ code, detail }) => [detail.path, code])).toEqual([
    ["spec.triggers", "WF_MANIFEST_INVALID_VALUE"],
  ]);
  expect(faults[0]?.message).toContain("make 201 watches");
});

it("permissions name 5,000 rights at most, though their lists may be multiplied", async () => {
  const list = (stem: string, count: number) =>
    `[${Array.from({ length: count }, (_, at) => `${stem}${at}`).join(", ")}]`;
  const spec = (count: number) => `  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap } }]
  permissions:
    - apiGroups: [""]
      resources: ${list("things", 10)}
      verbs: [get, list, patch, update, delete]
      namespaces: ${list("n", count)}`;
  expect((await loadSpec(spec(100))).faults).toEqual([]);
  const wide = `${spec(100)}\n      resourceNames: ${list("o", 100)}`;
  const { faults } = await loadSpec(wide);
  expect(faults.map(({ code, detail }) => [detail.path, code])).toEqual([
    ["spec.permissions", "WF_MANIFEST_INVALID_VALUE"],
  ]);
  expect(faults[0]?.message).toContain("name 500000 rights");
});
