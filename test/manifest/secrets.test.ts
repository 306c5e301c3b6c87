import { describe, expect, it } from "vitest";
import { loadSpec } from "./manifest.ts";

const rule = (more = "", verbs = "list") => `{ apiGroups: [""], resources: [secrets], verbs: [${verbs}]${more} }`;
const secrets = (more = "") => `{ apiVersion: v1, kind: Secret${more} }`;
const only = ", fieldSelector: metadata.name=x";
const inA = ", namespaceSelector: { matchNames: [a] }";
const inBoth = ", namespaceSelector: { matchNames: [a, b] }";
const byLabel = ", namespaceSelector: { matchLabels: { team: a } }";

const places = {
  trigger: {
    spec: (selection: string) => `  triggers: [{ watch: ${selection} }]`,
    path: "spec.triggers[0].watch.kind",
  },
  read: {
    spec: (selection: string) => `  triggers: [{ watch: { apiVersion: v1, kind: Pod } }]\n  reads: [${selection}]`,
    path: "spec.reads[0].kind",
  },
};

describe.each(Object.entries(places))("a %s of Secrets", (_, { spec, path }) => {
  const load = (selection: string, ...permissions: string[]) =>
    loadSpec(`${spec(selection)}\n  permissions: [${permissions.join(", ")}]`);
  const refusal = expect.stringContaining(`${path}: no rule of \`permissions\` grants list on secrets`);

  it.each([
    ["without a rule", secrets(), []],
    ["without a rule for metadata, whose annotations may hold the data", secrets(", object: Metadata"), []],
    ["with a rule for some of the namespaces", secrets(inBoth), [rule(", namespaces: [a]")]],
    ["with a rule for namespaces, where there is no selector", secrets(), [rule(", namespaces: [a]")]],
    ["with a rule for namespaces, where labels select them", secrets(byLabel), [rule(", namespaces: [a]")]],
    ["with a rule for one by its name", secrets(inA), [rule(", resourceNames: [x]")]],
    ["with a rule for another than the one selected", secrets(only), [rule(", resourceNames: [y]")]],
    ["with a rule for other verbs", secrets(), [rule("", "get, create")]],
    ["with a rule for another group", secrets(), ["{ apiGroups: [apps], resources: [secrets], verbs: [list] }"]],
    ["with a rule for another resource", secrets(), ['{ apiGroups: [""], resources: [configmaps], verbs: [list] }']],
  ])("is refused %s", async (_case, selection, permissions) => {
    const { lines, faults } = await load(selection, ...permissions);
    expect(lines).toEqual([refusal]);
    expect(faults[0]?.code).toBe("WF_MANIFEST_SECRETS");
  });

  it.each([
    ["a rule for all", secrets(), [rule()]],
    ["a rule for all, where labels select namespaces", secrets(byLabel), [rule()]],
    ["a rule for their namespaces", secrets(inBoth), [rule(", namespaces: [a, b, c]")]],
    ["a rule for each namespace", secrets(inBoth), [rule(", namespaces: [a]"), rule(", namespaces: [b]")]],
    ["a rule for the one selected", secrets(only), [rule(", resourceNames: [y, x]")]],
    ["a rule for every verb", secrets(), [rule("", '"*"')]],
    ["a rule for every group and resource", secrets(), ['{ apiGroups: ["*"], resources: ["*"], verbs: [list] }']],
  ])("is taken with %s", async (_case, selection, permissions) => {
    expect((await load(selection, ...permissions)).lines).toEqual([]);
  });

  it.each([
    [secrets(), "in all namespaces", 'add `- { apiGroups: [""], resources: [secrets], verbs: [list] }`'],
    [
      secrets(inBoth),
      "in namespace b",
      'add `- { apiGroups: [""], resources: [secrets], verbs: [list], namespaces: [b] }`',
    ],
    [
      secrets(`${inBoth}${only}`),
      "list on secrets/x in namespaces a, b",
      'add `- { apiGroups: [""], resources: [secrets], resourceNames: [x], verbs: [list], namespaces: [a, b] }`',
    ],
  ])("is told the rule that is missing, which is then enough: %s", async (selection, where, hint) => {
    const given = rule(", resourceNames: [y], namespaces: [a]");
    const { lines } = await load(selection, selection === secrets(inBoth) ? rule(", namespaces: [a]") : given);
    expect(lines[0]).toMatch(/^WF_MANIFEST_SECRETS f\/function\.yaml:\d+:\d+ /);
    expect(lines[0]).toContain(where);
    expect(lines[0]).toContain('got "Secret"');
    expect(lines[0]).toContain(hint);
    const added = /`- (.*)`/.exec(lines[0] ?? "")?.[1] ?? "";
    expect((await load(selection, rule(", namespaces: [a]"), added)).lines).toEqual([]);
  });
});

it("a trigger on Secrets that only wakes another object's key is refused too, since a condition or a key can tell the data", async () => {
  const { lines } = await loadSpec(`  triggers:
    - { watch: { apiVersion: v1, kind: ConfigMap } }
    - { watch: { apiVersion: v1, kind: Secret }, key: { expression: "object.data.password" } }
  delivery: { mode: Reconcile }`);
  expect(lines).toEqual([expect.stringContaining("spec.triggers[1].watch.kind")]);
});

it("a kind of another group that has the name needs no rule, since secrets of the core group do not grant it", async () => {
  expect((await loadSpec("  triggers: [{ watch: { apiVersion: vault.example.com/v1, kind: Secret } }]")).lines).toEqual(
    [],
  );
});
