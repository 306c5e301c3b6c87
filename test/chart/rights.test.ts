import { describe, expect, test } from "vitest";
import { runtimeObjects } from "../../runtime/rbac/objects.ts";
import { type RulesOptions, runtimeRules } from "../../runtime/rbac/rules.ts";
import { needsOf, type PolicyRule } from "../../runtime/rbac/scoped-rule.ts";
import type { Body } from "../target/client.ts";
import { namespace, release, render } from "./helm.ts";

/** Whether Kubernetes adds a role to its own view, edit or admin. */
const isAggregated = ({ metadata: { labels = {} } }: Body): boolean =>
  Object.keys(labels).some((label) => label.startsWith("rbac.authorization.k8s.io/aggregate-to-"));

/** The runtime with the chart's options. */
const started: RulesOptions = {
  namespace,
  account: release,
  leaderElect: true,
  store: "sqlite",
  deployed: true,
  tokenReview: true,
};

const scenarios: readonly [sets: string, options: RulesOptions][] = [
  ["replicas=1", started],
  ["replicas=2", { ...started, store: "kubernetes" }],
  ["store.type=nats,nats.url=nats://nats:4222", { ...started, store: "nats" }],
  ["store.type=nats,nats.url=nats://nats:4222,slots=64", { ...started, store: "nats", fleet: true }],
  ["deployed.enabled=false", { ...started, deployed: false }],
  ["sets.namespaces={team-a,team-b}", { ...started, setNamespaces: ["team-a", "team-b"] }],
  [
    "functionStatus.enabled=true,sets.namespaces={team-a}",
    { ...started, functionStatus: true, setNamespaces: ["team-a"] },
  ],
  ["functionStatus.enabled=true", { ...started, functionStatus: true }],
  ["tokenReview.enabled=false", { ...started, tokenReview: false }],
];

describe.each(scenarios)("with %s", (sets, options) => {
  test("the chart grants the runtime just what `watchfire rbac` says that it needs", async () => {
    const objects = await render("--set", sets);
    const granted = ["Role", "ClusterRole"].flatMap((kind) =>
      objects
        .filter((object) => object.kind === kind && !isAggregated(object))
        .flatMap(({ rules, metadata }) =>
          rules.map((rule: PolicyRule) => ({ ...rule, namespace: metadata.namespace })),
        ),
    );
    expect(needsOf(granted)).toEqual(needsOf(runtimeRules(options)));
  });

  test("what `watchfire rbac` prints can be applied over the chart's objects, and Helm still upgrades them", async () => {
    const rendered = await render("--set", sets);
    for (const { kind, metadata, ...printed } of runtimeObjects(options)) {
      const twin = rendered.find((object) => object.kind === kind && object.metadata.name === metadata.name);
      if (!twin) continue;
      expect(twin).toMatchObject(printed);
      // Helm loses an object whose label gets another value, and then refuses to continue.
      const labels = { ...twin.metadata.labels, ...metadata.labels };
      expect(labels).toMatchObject(twin.metadata.labels ?? {});
    }
  });

  test("every role is bound to the runtime's account and to nobody else", async () => {
    const objects = await render("--set", sets);
    const bound = objects.filter(({ roleRef }) => roleRef);
    expect(bound.flatMap(({ subjects }) => subjects)).toEqual(
      bound.map(() => ({ kind: "ServiceAccount", name: release, namespace })),
    );
    const roles = objects
      .filter((each) => each.rules && !isAggregated(each))
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(bound.map(({ roleRef }) => `${roleRef.kind} ${roleRef.name}`).sort()).toEqual(roles.sort());
  });
});

test("with rbac.create=false the chart grants nothing", async () => {
  expect((await render("--set", "rbac.create=false")).filter(({ rules, roleRef }) => rules ?? roleRef)).toEqual([]);
});

test("Kubernetes' own view may see functions and sets, and edit and admin may change them; a value takes that away", async () => {
  const roles = (await render()).filter(isAggregated);
  expect(
    roles.map(({ rules, metadata: { labels = {} } }) => [
      Object.keys(labels).flatMap((label) => /aggregate-to-(\w+)$/.exec(label)?.[1] ?? []),
      rules,
    ]),
  ).toEqual([
    [
      ["view", "edit", "admin"],
      [{ apiGroups: ["watchfire.dev"], resources: ["functions", "functionsets"], verbs: ["get", "list", "watch"] }],
    ],
    [
      ["edit", "admin"],
      [
        { apiGroups: ["watchfire.dev"], resources: ["functions"], verbs: ["update"] },
        { apiGroups: ["watchfire.dev"], resources: ["functionsets"], verbs: ["patch", "update"] },
      ],
    ],
  ]);
  expect((await render("--set", "rbac.aggregate=false")).filter(isAggregated)).toEqual([]);
});
