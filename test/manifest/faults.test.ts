import { describe, expect, it } from "vitest";
import { checkExpression } from "../../runtime/engine/filter/check-expression.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { folderOf } from "../tools/folder.ts";
import { loadSpec, manifest } from "./manifest.ts";

const trigger = (watch: string) => `  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap, ${watch} } }]`;
const grant = (rule: string) => {
  const rules = { apiGroups: 'apiGroups: [""]', resources: "resources: [pods]", verbs: "verbs: [get]" };
  return withSpec(`permissions: [{ ${Object.values({ ...rules, [rule.split(":")[0] ?? ""]: rule }).join(", ")} }]`);
};
const withSpec = (more: string) => `${trigger("")}\n  ${more}`;

describe("a faulty manifest", () => {
  it("says code, file, line, column, path, what, value and hint in one line", async () => {
    const { lines } = await loadSpec(withSpec("delivery: { timeout: 30 }"));
    expect(lines).toEqual([
      "WF_MANIFEST_WRONG_TYPE f/function.yaml:7:24 spec.delivery.timeout: " +
        'expected a text, received a number, got 30; add its unit: "30s" (or "30ms")',
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

  it.each([
    ["env: { FOO: bar }", /^write a list of maps of name, value\b/],
    ['egress: ["https://example.com"]', /^write a map of host\b/],
  ])("says which fields a map takes, where another shape stands: %s", async (field, hint) => {
    const { faults } = await loadSpec(withSpec(field));
    expect(faults.map((fault) => fault.hint)).toEqual([expect.stringMatching(hint)]);
  });

  it.each([
    ["Created", "Added"],
    ["updated", "Modified"],
    ["Removed", "Deleted"],
  ])("is told its own name of an event that another system calls %s", async (theirs, ours) => {
    const { faults } = await loadSpec(trigger(`events: [${theirs}]`));
    expect(faults.map((fault) => fault.hint)).toEqual([`did you mean ${ours}?`]);
  });

  it("is told which value was probably meant", async () => {
    const { faults } = await loadSpec(withSpec("delivery: { onFailure: deadletter }"));
    expect(faults[0]?.message).toContain("did you mean DeadLetter?");
  });

  const cases: [what: string, spec: string, hint: string][] = [
    ["a duration without a unit", withSpec('delivery: { timeout: "30" }'), 'add its unit: "30s"'],
    ["a number as a duration", withSpec("resources: { cpuPerEvent: 500 }"), 'add its unit: "500ms"'],
    ["a number as a size", withSpec("resources: { memory: 64 }"), 'add its unit: "64Mi"'],
    ["a text as a number", withSpec('delivery: { concurrency: "4" }'), "without quotes: 4"],
    ["a field without a value", withSpec("delivery:"), "or leave the field out"],
    ["a text as a list", withSpec('permissions: [{ apiGroups: "", resources: [pods], verbs: [get] }]'), 'write a list: [""]'],
    ["a text as a map", withSpec("delivery: fast"), "expected a map, received a text"],
    ["an empty condition", trigger('matchConditions: [{ name: a, expression: "" }]'), "expected a text"],
    ["a condition that breaks off", trigger("matchConditions: [{ name: a, expression: size( }]"), "does not compile: unexpected token: EOF at character 6"],
    ["a pattern that RE2 refuses", trigger("matchConditions: [{ name: a, expression: \"object.x.matches('(?=a)')\" }]"), "RE2 refuses the pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?=` at character 18"],
    ["a condition that yields a text", trigger("matchConditions: [{ name: a, expression: object.metadata.name + 'x' }]"), "yields string, not bool"],
    ["a condition of 100,000 brackets", trigger(`matchConditions: [{ name: a, expression: "${"(".repeat(100_000)}true" }]`), "at most 4096 characters"],
    ["a condition on what is not read", trigger("object: Metadata, matchConditions: [{ name: a, expression: has(oldObject.spec.x) }]"), "reads the field spec, but `object` is Metadata"],
    ["a changed field that is not read", trigger("object: Metadata, changedFields: [.metadata.labels, .metadatas]"), "because `object` is Metadata, got \".metadatas\"; name a field of .metadata"],
    ["65 conditions", trigger(`matchConditions: [${Array.from({ length: 65 }, (_, n) => `\n        { name: c${n}, expression: "true" }`)}]`), "at most 64"],
    ["an operator in small letters", trigger("labelSelector: { matchExpressions: [{ key: a, operator: in, values: [b] }] }"), "did you mean In?"],
    ["a label's value with a space", trigger("labelSelector: { matchLabels: { a: b c } }"), "letters, digits"],
    ["a required field that is misspelt", "  triggers: [{ watch: { apiVersion: v1, kynd: Pod } }]", "did you mean kind?"],
    ["a kind in small letters", "  triggers: [{ watch: { apiVersion: v1, kind: pod } }]", "as `kubectl api-resources` shows it"],
    ["a read's kind in small letters", withSpec("reads: [{ apiVersion: batch/v1, kind: job }]"), "as `kubectl api-resources` shows it"],
    ["a kind with a space", "  triggers: [{ watch: { apiVersion: a.b/v1, kind: My Kind } }]", "a kind such as ConfigMap"],
    ["a group as apiVersion", "  triggers: [{ watch: { apiVersion: apps, kind: Deployment } }]", "its version: apps/v1"],
    ["a trigger's name in capitals", "  triggers: [{ name: My Pods, watch: { apiVersion: v1, kind: Pod } }]", "such as my-pods"],
    ["every namespace by a star", trigger('namespaceSelector: { matchNames: ["*"] }'), "leave `namespaceSelector` out"],
    ["a list as a field's name", withSpec("? [a]\n  : 3"), "cannot be the name of a field"],
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
    ["names and labels of namespaces", trigger("namespaceSelector: { matchNames: [a], matchLabels: {} }"), "matchNames excludes matchLabels"],
    ["an unknown verb", grant("verbs: [read]"), "one of get"],
    ["a trigger's verb", grant("verbs: [watch]"), "is what triggers do"],
    ["no verb", grant("verbs: []"), "grants nothing"],
    ["a kind as resource", grant("resources: [Policy]"), "such as policies"],
    ["a resource with a stray slash", grant("resources: [pods/]"), "write pods, or name the subresource: pods/status"],
    ["a version as group", grant("apiGroups: [v1]"), 'the core group is written ""'],
    ["the core group by a name", grant("apiGroups: [core]"), 'the core group is written ""'],
    ["a group with version", grant("apiGroups: [apps/v1]"), "only the group: apps"],
    ["a grant for every namespace by a star", grant('namespaces: ["*"]'), "leave `namespaces` out"],
    ["a URL as host", withSpec("egress: [{ host: https://hooks.slack.com/x }]"), "such as hooks.slack.com"],
    ["the machine's own name as host", withSpec("egress: [{ host: LocalHost. }]"), "write 127.0.0.1 or ::1, and"],
    ["a name below it", withSpec('egress: [{ host: "*.my.localhost" }]'), "write 127.0.0.1 or ::1"],
    ["a shortened address as host", withSpec('egress: [{ host: "127.1" }]'), "write the address in full: 127.0.0.1"],
    ["a wildcard for every host", withSpec('egress: [{ host: "*" }]'), "such as *.example.com"],
    ["a wildcard for a whole top-level domain", withSpec('egress: [{ host: "*.com" }]'), "such as *.example.com"],
    ["a wildcard within a name", withSpec('egress: [{ host: "a.*.example.com" }]'), "write only the name"],
    ["an unknown network", withSpec("egress: [{ host: a.com, network: Inside }]"), "one of Public, Private"],
    ["a port out of range", withSpec("egress: [{ host: a.com, ports: [70000] }]"), "at most 65535"],
    ["no port", withSpec("egress: [{ host: a.com, ports: [] }]"), "at least one port"],
    ["value and valueFrom", withSpec("env: [{ name: A, value: x, valueFrom: { secretKeyRef: { name: a, key: b } } }]"), "exclude"],
    ["a source of the pod", withSpec("env: [{ name: A, valueFrom: { fieldRef: {} } }]"), "fieldRef"],
    ["a name twice", withSpec("env: [{ name: A, value: x }, { name: A, value: y }]"), "earlier variable"],
  ]; // biome-ignore format: a table
  it.each(cases)("is refused in one fault for its one cause, with a hint: %s", async (_what, spec, hint) => {
    const { lines, functions } = await loadSpec(spec, { checkExpression });
    expect(functions).toEqual([]);
    expect(lines).toEqual([expect.stringContaining(hint)]);
    expect(lines[0]).toMatch(/^WF_MANIFEST_\w+ f\/function\.yaml:[6-9]:\d+/);
  });

  it.each(["", "./", "handler"])("whose handler is %j is told so once", async (handler) => {
    const text = manifest("f").replace("./handler.ts", JSON.stringify(handler));
    const { faults } = await loadFunctions(folderOf({ "f/function.yaml": text, "f/handler.ts": "" }));
    expect(faults.map(({ code, hint }) => [code, hint])).toEqual([
      ["WF_MANIFEST_INVALID_VALUE", "name the file, such as ./handler.ts"],
    ]);
  });

  it("never shows a value of its environment", async () => {
    const { lines } = await loadSpec(withSpec("env: [{ name: 1, value: 123456789 }]"));
    expect(lines.length).toBe(2);
    expect(lines.join()).not.toContain("123456789");
  });

  it.each([
    ["a bracket that is not closed", "  triggers: [", "7:1: not valid YAML: flow sequence in block collection"],
    ["a tab", "  delivery:\n\tmode: All", "7:1: YAML does not take tabs as indentation; indent with spaces"],
    ["a quote that is not closed", "  isolation: 'Handler", "6:14: this quote is not closed; close it"],
  ])("is told once where its YAML breaks: %s", async (_what, spec, said) => {
    const { lines } = await loadSpec(spec);
    expect(lines).toEqual([expect.stringContaining(`WF_MANIFEST_SYNTAX f/function.yaml:${said}`)]);
  });

  it("is told of each key that is given twice, where it and the first one stand", async () => {
    const { lines } = await loadSpec(`${trigger("")}\n  handler: ./other.ts\n  delivery: { mode: All, mode: Latest }`);
    expect(lines).toEqual([
      "WF_MANIFEST_DUPLICATE_KEY f/function.yaml:7:3 spec.handler: " +
        'the field "handler" is given a second time; the first is at 5:3; keep one of the two',
      "WF_MANIFEST_DUPLICATE_KEY f/function.yaml:8:26 spec.delivery.mode: " +
        'the field "mode" is given a second time; the first is at 8:15; keep one of the two',
    ]);
  });

  it.each([
    ["that was never given", "  delivery: *defaults", "7:13 spec.delivery: the alias *defaults refers to"],
    [
      "within itself",
      "  delivery: &all { retry: *all }",
      "6:27 spec.delivery.retry: the alias *all refers to a value that contains it",
    ],
  ])("is told where an alias stands for a value %s", async (_what, spec, said) => {
    const { lines } = await loadSpec(spec.startsWith("  delivery: *") ? `${trigger("")}\n${spec}` : spec);
    expect(lines).toEqual([expect.stringContaining(`WF_MANIFEST_SYNTAX f/function.yaml:${said}`)]);
  });

  it("takes aliases that stand for something", async () => {
    const watch = "{ apiVersion: v1, kind: Pod, namespaceSelector: &where { matchNames: [a] } }";
    const again = "{ apiVersion: v1, kind: Event, namespaceSelector: *where }";
    const { functions } = await loadSpec(`  triggers: [{ watch: ${watch} }, { watch: ${again} }]`);
    expect(functions[0]?.triggers.map(({ namespaces }) => namespaces)).toEqual([
      { type: "names", names: ["a"] },
      { type: "names", names: ["a"] },
    ]);
  });

  it("takes a map that is merged by `<<`", async () => {
    const { functions, faults } = await loadSpec(`${trigger("")}
  permissions:
    - &read { apiGroups: [""], resources: [pods], verbs: [get], namespaces: [demo] }
    - { <<: *read, resources: [services] }`);
    expect(faults).toEqual([]);
    expect(functions[0]?.permissions[1]).toMatchObject({
      resources: ["services"],
      verbs: ["get"],
      namespaces: ["demo"],
    });
  });

  it.each(["1", "null", "[*read, 1]", "&all [1]"])("is refused where `<<` merges no map: %s", async (source) => {
    const { faults } = await loadSpec(`${trigger("")}
  permissions:
    - &read { apiGroups: [""], resources: [pods], verbs: [get], namespaces: [demo] }
    - { <<: ${source}, resources: [services] }`);
    expect(faults.map(({ message }) => message)).toEqual([expect.stringMatching(/:9:\d+ .*`<<` merges only maps/)]);
  });

  it("cannot make the runtime unfold aliases without end", async () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de", "ef"]) bomb.push(`${to}: &${to} [${`*${from}, `.repeat(10)}]`);
    const { functions, rejected } = await loadFunctions(folderOf({ "bomb.yaml": bomb.join("\n") }));
    expect(functions).toEqual([]);
    expect(rejected[0]?.faults.map(({ code, detail }) => [code, detail.place?.line])).toEqual([
      ["WF_MANIFEST_SYNTAX", 4],
    ]);
  });

  it.each([
    ["brackets", "[".repeat(100_000), "1:101"],
    ["dashes of one line", "- ".repeat(100_000), "1:201"],
    ["indentation", Array.from({ length: 1000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"), "101:101"],
  ])("cannot nest so deep that the parser takes the process down: by %s", async (_what, text, at) => {
    const folder = folderOf({ "deep.yaml": text });
    const { faults } = await loadFunctions(folder);
    expect(faults.map(({ message }) => message.replace(`${folder}/`, ""))).toEqual([
      expect.stringContaining(`WF_MANIFEST_SYNTAX deep.yaml:${at}: nested deeper than any manifest`),
    ]);
  });

  it.each([
    ["another version", manifest("f").replace("v1alpha1", "v9"), "1:13 apiVersion: expected watchfire.dev/v1alpha1"],
    ["another kind", manifest("f").replace("kind: Function", "kind: Functino"), "2:7 kind: expected Function"],
    ["another object", "apiVersion: apps/v1\nkind: Deployment\nspec: { replicas: 3 }", "1:13 apiVersion: expected"],
    ["fields of its own", "replicas: 3", "1:1: it has no apiVersion and no kind"],
    ["a list", "[1, 2]", "1:1: the document is not a map"],
    ["a word", "hello", '1:1: the document is not a map, got "hello"'],
    ["comments alone", "# later\n", "1:1: the file declares nothing"],
    ["null", "null\n", "1:1: the file declares nothing"],
    ["nothing", "\n", "1:1: the file declares nothing"],
  ])("is refused once, as no Function: %s", async (_what, text, said) => {
    const folder = folderOf({ "f/function.yaml": text, "f/handler.ts": "" });
    const { faults } = await loadFunctions(folder);
    expect(faults.map(({ message }) => message.replace(`${folder}/`, ""))).toEqual([
      expect.stringContaining(`WF_MANIFEST_NOT_A_FUNCTION f/function.yaml:${said}`),
    ]);
  });

  it("that is not UTF-8 is refused at the first byte that is not", async () => {
    const text = Buffer.from(`# caf\u00e9\n${manifest("f")}`, "latin1");
    const folder = folderOf({ "f/function.yaml": text, "f/handler.ts": "" });
    const { functions, faults } = await loadFunctions(folder);
    expect(functions).toEqual([]);
    expect(faults.map(({ message }) => message.replace(`${folder}/`, ""))).toEqual([
      "WF_MANIFEST_UNREADABLE f/function.yaml:1:6: the file is not UTF-8; save it as UTF-8",
    ]);
  });

  it("with a key named __proto__ is refused", async () => {
    const { faults } = await loadSpec(trigger("__proto__: { a: 1 }"));
    expect(faults.map(({ code }) => code)).toEqual(["WF_MANIFEST_UNKNOWN_FIELD"]);
  });
});
