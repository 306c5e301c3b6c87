import { describe, expect, it } from "vitest";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { folderOf, loadSpec, manifest } from "./folder.ts";

const trigger = (watch: string) => `  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap, ${watch} } }]`;
const withSpec = (more: string) => `${trigger("")}\n  ${more}`;

describe("a faulty manifest", () => {
  it("says code, file, line, column, path, what, value and hint in one line", async () => {
    const { lines } = await loadSpec(withSpec("delivery: { timeout: 30 }"));
    expect(lines).toEqual([
      "WF_MANIFEST_WRONG_TYPE f/function.yaml:7:24 spec.delivery.timeout: " +
        'expected string, received a number, got 30; put it in quotes: "30"',
    ]);
  });

  it("reports all its faults at once, in the order of the file", async () => {
    const { faults } = await loadSpec(
      `  triggers:
    - watch: { apiVersion: v1, kind: configMap, event: [Added] }
    - name: b
      watch: { apiVersion: v1, kind: Pod, labelSelector: { matchLabels: { a: "not ok" }, matchLabel: {} } }
    - name: b
      watch: { kind: Pod, matchConditions: [{ name: c, expression: "][" }] }
  delivery: { timeout: 0s, retry: { initialDelay: 2m, maxDelay: 1m, attempts: 3 } }
  env: [{ name: A }]`,
      { checkExpression: () => "unexpected token" },
    );
    expect(faults.map(({ code, detail }) => `${detail.place?.line} ${detail.path} ${code}`)).toEqual([
      "7 spec.triggers[0].watch.kind WF_MANIFEST_INVALID_VALUE",
      "7 spec.triggers[0].watch.event WF_MANIFEST_UNKNOWN_FIELD",
      "9 spec.triggers[1].watch.labelSelector.matchLabels.a WF_MANIFEST_INVALID_VALUE",
      "9 spec.triggers[1].watch.labelSelector.matchLabel WF_MANIFEST_UNKNOWN_FIELD",
      "10 spec.triggers[2].name WF_MANIFEST_DUPLICATE_NAME",
      "11 spec.triggers[2].watch.apiVersion WF_MANIFEST_MISSING_FIELD",
      "11 spec.triggers[2].watch.matchConditions[0].expression WF_MANIFEST_EXPRESSION",
      "12 spec.delivery.timeout WF_MANIFEST_INVALID_VALUE",
      "12 spec.delivery.retry.maxDelay WF_MANIFEST_INVALID_VALUE",
      "12 spec.delivery.retry.attempts WF_MANIFEST_UNKNOWN_FIELD",
      "13 spec.env[0] WF_MANIFEST_MISSING_FIELD",
    ]);
  });

  it("is told which field was probably meant", async () => {
    const { faults } = await loadSpec(trigger("labelSelectors: {}"));
    expect(faults[0]?.message).toContain("did you mean labelSelector?");
    expect(faults[0]?.detail.place).toMatchObject({ line: 6, column: 58 });
  });

  it("is told which value was probably meant", async () => {
    const { faults } = await loadSpec(withSpec("delivery: { onFailure: deadletter }"));
    expect(faults[0]?.message).toContain("did you mean DeadLetter?");
  });

  it.each([
    ["a duration without a unit", withSpec('delivery: { timeout: "30" }'), "add a unit: 30s"],
    ["a duration of nothing", withSpec("delivery: { timeout: 0ms }"), "above 0"],
    ["a fraction of a millisecond", withSpec("resources: { cpuPerEvent: 1.5ms }"), "whole milliseconds"],
    ["memory too small for an isolate", withSpec("resources: { memory: 4Mi }"), "8Mi to 2Gi"],
    ["an unknown size", withSpec("resources: { memory: 64MB }"), "a size such as 64Mi"],
    ["half a lane", withSpec("delivery: { concurrency: 1.5 }"), "whole number"],
    ["no lane", withSpec("delivery: { concurrency: 0 }"), "at least 1"],
    ["no trigger", "  triggers: []", "at least one trigger"],
    ["a number as a label", trigger("labelSelector: { matchLabels: { sync: true } }"), 'put it in quotes: "true"'],
    ["In without values", trigger("labelSelector: { matchExpressions: [{ key: a, operator: In }] }"), "needs values"],
    ["a bad field selector", trigger("fieldSelector: metadata.name"), "metadata.name=settings"],
    ["a path without a dot", trigger("changedFields: [data]"), ".metadata.labels"],
    ["a path into a list", trigger('changedFields: [".spec.containers[0]"]'), ".metadata.labels"],
    ["an unknown change", trigger("events: [Changed]"), "one of Added, Modified, Deleted"],
    ["no change", trigger("events: []"), "at least one of"],
    ["names and labels of namespaces", trigger("namespaceSelector: { matchNames: [a], matchLabels: {} }"), "exclude"],
    [
      "an unknown verb",
      withSpec('permissions: [{ apiGroups: [""], resources: [pods], verbs: [watch] }]'),
      "one of get",
    ],
    ["no verb", withSpec('permissions: [{ apiGroups: [""], resources: [pods], verbs: [] }]'), "grants nothing"],
    [
      "a kind as resource",
      withSpec('permissions: [{ apiGroups: [""], resources: [Pod], verbs: [get] }]'),
      "such as pods",
    ],
    [
      "a version as group",
      withSpec("permissions: [{ apiGroups: [v1], resources: [pods], verbs: [get] }]"),
      'the core group is written ""',
    ],
    ["a group with version", withSpec("permissions: [{ apiGroups: [apps/v1], resources: [x], verbs: [get] }]"), "apps"],
    ["a URL as host", withSpec("egress: [{ host: https://hooks.slack.com/x }]"), "such as hooks.slack.com"],
    ["a wildcard host", withSpec('egress: [{ host: "*.example.com" }]'), "such as example.com"],
    ["a port out of range", withSpec("egress: [{ host: a.com, ports: [70000] }]"), "at most 65535"],
    ["no port", withSpec("egress: [{ host: a.com, ports: [] }]"), "at least one port"],
    [
      "value and valueFrom",
      withSpec("env: [{ name: A, value: x, valueFrom: { secretKeyRef: { name: a, key: b } } }]"),
      "x",
    ],
    ["a source of the pod", withSpec("env: [{ name: A, valueFrom: { fieldRef: {} } }]"), "fieldRef"],
    ["a name twice", withSpec("env: [{ name: A, value: x }, { name: A, value: y }]"), "earlier variable"],
  ])("is refused: %s", async (_what, spec, hint) => {
    const { faults, functions } = await loadSpec(spec);
    expect(functions).toEqual([]);
    expect(faults.length).toBeGreaterThan(0);
    expect(faults[0]?.detail.place?.line).toBeGreaterThan(5);
    expect(faults.map(({ message }) => message).join("\n")).toContain(hint);
  });

  it("never shows a value of its environment", async () => {
    const { lines } = await loadSpec(withSpec("env: [{ name: 1, value: 123456789 }]"));
    expect(lines.length).toBe(2);
    expect(lines.join()).not.toContain("123456789");
  });

  it("is told where its YAML breaks", async () => {
    const { faults } = await loadSpec("  triggers: [");
    expect(faults[0]?.code).toBe("WF_MANIFEST_SYNTAX");
    expect(faults[0]?.detail.place).toMatchObject({ line: 7, column: 1 });
  });

  it("is told of a key that is given twice", async () => {
    const { faults } = await loadSpec(`${trigger("")}\n  handler: ./other.ts`);
    expect(faults.map(({ code, detail }) => [code, detail.place?.line])).toEqual([["WF_MANIFEST_DUPLICATE_KEY", 7]]);
  });

  it("cannot make the runtime unfold aliases without end", async () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de", "ef"]) bomb.push(`${to}: &${to} [${`*${from}, `.repeat(10)}]`);
    const { functions, rejected } = await loadFunctions(folderOf({ "bomb.yaml": bomb.join("\n") }));
    expect(functions).toEqual([]);
    expect(rejected[0]?.faults[0]?.code).toBe("WF_MANIFEST_SYNTAX");
  });

  it.each([
    ["another version", manifest("f").replace("v1alpha1", "v9"), "apiVersion"],
    ["another kind", manifest("f").replace("kind: Function", "kind: Functino"), "kind"],
    ["a list", "[1, 2]", ""],
    ["another thing", "hello", ""],
  ])("is refused as no Function: %s", async (_what, text, path) => {
    const folder = folderOf({ "f/function.yaml": text, "f/handler.ts": "" });
    const { faults } = await loadFunctions(folder);
    expect(faults.map(({ detail }) => detail.path ?? "")).toEqual([path]);
  });

  it("with a key named __proto__ is refused", async () => {
    const { faults } = await loadSpec(trigger("__proto__: { a: 1 }"));
    expect(faults.map(({ code }) => code)).toEqual(["WF_MANIFEST_UNKNOWN_FIELD"]);
  });
});
