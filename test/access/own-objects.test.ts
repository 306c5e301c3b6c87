// The runtime refuses to let a function write the runtime's own objects, even if the function has all permissions.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { functionAccount } from "../../runtime/access/account.ts";
import { OwnObjects } from "../../runtime/access/own-objects.ts";
import { configMapName, indexName } from "../../runtime/catalog/names.ts";
import { accessTo, errorOf } from "./api-server.ts";
import {
  accessWithAll,
  account,
  at,
  configMap,
  discovery,
  elsewhere,
  expectRefused,
  expectSent,
  home,
  labels,
  notes,
  own,
  ownRefs,
  rbac,
  sha256,
  shared,
  writes,
} from "./own-fixture.ts";

describe("a function that is granted everything", () => {
  it.each(ownRefs.map((ref) => [`${ref.kind} ${ref.namespace ?? ""}/${ref.name}`, ref] as const))(
    "writes the runtime's %s by no operation",
    (_, ref) => expectRefused(...writes(ref)),
  );

  it("writes what is not the runtime's, in its namespace and under its names elsewhere", () =>
    expectSent(
      ...writes(notes),
      ...writes(at("v1", "ConfigMap", "watchfires", home)),
      ...writes(at("v1", "ConfigMap", "watchfire-functions", "team-a")),
      ...writes(at(rbac, "Role", "readers", home)),
      ...writes(at("apps/v1", "StatefulSet", "web", home)),
    ));

  it("gets no account of a function in a namespace that shares the runtime, and writes what else is there", async () => {
    const pod = (serviceAccountName: string) => ({
      object: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "p", namespace: shared },
        spec: { serviceAccountName },
      },
    });
    await expectRefused(["kube.create", pod(functionAccount(account, "greet"))]);
    await expectSent(
      ["kube.create", pod("default")],
      ...writes(at("v1", "ConfigMap", "mounted", shared)),
      ...writes(at("apps/v1", "StatefulSet", "events", shared)),
    );
  });

  it("makes no object the runtime's by a label, in whatever way a body says it", () =>
    expectRefused(
      ...[notes, elsewhere].flatMap((ref): [string, object][] => [
        ["kube.create", { object: configMap("notes", { namespace: ref.namespace, labels }) }],
        [
          "kube.create",
          { object: { ...configMap(""), metadata: { generateName: "x-", namespace: ref.namespace, labels } } },
        ],
        ["kube.update", { object: configMap("notes", { namespace: ref.namespace, labels }) }],
        ["kube.apply", { object: configMap("notes", { namespace: ref.namespace, labels }), force: true }],
        ["kube.patch", { ref, patch: { metadata: { labels } } }],
        ["kube.patch", { ref, patch: { metadata: { labels: { "watchfire.dev/runtime": null } } } }],
        ["kube.patch", { ref, patch: { metadata: { labels } }, type: "strategic" }],
        ...[
          { op: "add", path: "/metadata/labels/watchfire.dev~1runtime", value: account },
          { op: "replace", path: "ignored/metadata/labels/watchfire.dev~1runtime", value: account },
          { op: "remove", path: "/metadata/labels/watchfire.dev~1runtime" },
          { op: "add", path: "/metadata/labels", value: labels },
          { op: "replace", path: "/metadata", value: { labels } },
          { op: "replace", path: "", value: { metadata: { labels } } },
          { op: "replace", path: "", value: { name: "notes", labels } },
          { op: "add", path: "", value: { name: "notes", data: {} } },
          { op: "copy", from: "/metadata/annotations", path: "/metadata/labels" },
          { op: "move", from: "/data", path: "/metadata" },
          { op: "copy", from: "/data/x", path: "/metadata/labels/watchfire.dev~1namespace" },
        ].map((operation): [string, object] => ["kube.patch", { ref, patch: [operation], type: "json" }]),
      ]),
    ));

  it("writes no Event about the runtime's objects, in either group, and those about its own", async () => {
    const event = (apiVersion: string, field: string, name: string, namespace = home) => ({
      object: { apiVersion, kind: "Event", metadata: { generateName: "x-", namespace }, [field]: { name, namespace } },
    });
    const ref = at("v1", "Event", "x-1", home);
    await expectRefused(
      ["kube.create", event("v1", "involvedObject", "events-0")],
      ["kube.create", event("v1", "related", "events")],
      ["kube.create", event("events.k8s.io/v1", "regarding", "events")],
      ["kube.patch", { ref, patch: { involvedObject: { name: "events-0" } } }],
      [
        "kube.patch",
        { ref, patch: [{ op: "replace", path: "/involvedObject/name", value: "events-0" }], type: "json" },
      ],
    );
    await expectSent(
      ["kube.create", event("v1", "involvedObject", "notes")],
      ["kube.create", event("events.k8s.io/v1", "regarding", "events-0", "team-a")],
    );
  });

  it("sets labels of its own", () =>
    expectSent(
      ["kube.create", { object: configMap("notes", { labels: { "sync.watchfire.dev/on": "yes" } }) }],
      ["kube.patch", { ref: notes, patch: { metadata: { labels: { app: "watchfire.dev" } } } }],
      [
        "kube.patch",
        { ref: notes, patch: [{ op: "add", path: "/metadata/labels", value: { app: "x" } }], type: "json" },
      ],
      [
        "kube.patch",
        {
          ref: notes,
          patch: [{ op: "test", path: "/metadata/labels/watchfire.dev~1runtime", value: "x" }],
          type: "json",
        },
      ],
      [
        "kube.patch",
        { ref: notes, patch: [{ op: "copy", from: "/data/x", path: "/metadata/labels/app" }], type: "json" },
      ],
    ));

  it("has the API server generate no own name", async () => {
    const create = (generateName: string, kind = "ConfigMap", apiVersion = "v1") =>
      ["kube.create", { object: { apiVersion, kind, metadata: { generateName, namespace: home } } }] as const;
    await expectRefused(
      create("watchfire-"),
      create("watchfire-functions-"),
      create("events-"),
      create("watc"),
      create("mo"),
    );
    await expectRefused(create("watchfire-greet.", "Role", rbac));
    await expectSent(create("watchfire"), create("notes-"), create("w"));
  });

  it("ends neither the runtime's namespace nor lets the garbage collector end it", async () => {
    const ref = at("v1", "Namespace", home);
    const owners = [{ apiVersion: "v1", kind: "Namespace", name: "gone", uid: "gone" }];
    await expectRefused(
      ["kube.delete", { ref }],
      ["kube.patch", { ref, patch: { metadata: { ownerReferences: owners } } }],
      ["kube.patch", { ref, patch: [{ op: "add", path: "/metadata/ownerReferences", value: owners }], type: "json" }],
      [
        "kube.patch",
        { ref, patch: [{ op: "add", path: "/metadata/ownerReferences/-", value: owners[0] }], type: "json" },
      ],
      [
        "kube.apply",
        {
          object: { apiVersion: "v1", kind: "Namespace", metadata: { name: home, uid: "u", ownerReferences: owners } },
        },
      ],
    );
    await expectSent(
      ["kube.patch", { ref, patch: { metadata: { labels: { team: "a" } } } }],
      ["kube.delete", { ref: at("v1", "Namespace", "team-a") }],
    );
  });

  it("runs nothing under the runtime's accounts, and gets none of its Secrets, by way of an object of another name", async () => {
    const create = (apiVersion: string, kind: string, more: object): [string, object] => [
      "kube.create",
      { object: { apiVersion, kind, metadata: { name: "innocent", namespace: home }, ...more } },
    ];
    const job = (spec: object) => create("batch/v1", "Job", { spec: { template: { spec } } });
    const ref = at("batch/v1", "Job", "innocent", home);
    const set = (path: string, value: unknown): [string, object] => [
      "kube.patch",
      { ref, patch: [{ op: "add", path, value }], type: "json" },
    ];
    await expectRefused(
      create("v1", "Pod", { spec: { serviceAccountName: account } }),
      create("v1", "Pod", { spec: { serviceAccount: functionAccount(account, "greet") } }),
      job({ serviceAccountName: account }),
      job({ volumes: [{ name: "v", secret: { secretName: "watchfire-checkpoint-3" } }] }),
      job({ volumes: [{ name: "v", projected: { sources: [{ secret: { name: "mounted" } }] } }] }),
      job({ volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data-events-0" } }] }),
      job({ containers: [{ env: [{ valueFrom: { secretKeyRef: { name: "watchfire-checkpoint-0", key: "x" } } }] }] }),
      job({ containers: [{ envFrom: [{ secretRef: { name: "watchfire-checkpoint-0" } }] }] }),
      job({ volumes: [{ name: "v", csi: { driver: "d", nodePublishSecretRef: { name: "watchfire-checkpoint-0" } } }] }),
      job({ imagePullSecrets: [{ name: "mounted" }] }),
      create("v1", "PersistentVolumeClaim", {
        spec: { dataSource: { kind: "PersistentVolumeClaim", name: "data-events-0" } },
      }),
      create("autoscaling/v2", "HorizontalPodAutoscaler", {
        spec: { scaleTargetRef: { kind: "StatefulSet", name: "events" } },
      }),
      [
        "kube.create",
        {
          object: {
            apiVersion: "v1",
            kind: "Secret",
            metadata: { name: "mine", namespace: home, annotations: { "kubernetes.io/service-account.name": account } },
            type: "kubernetes.io/service-account-token",
          },
        },
      ],
      ["kube.patch", { ref, patch: { spec: { template: { spec: { serviceAccountName: account } } } } }],
      set("/spec/template/spec/serviceAccountName", account),
      set("/spec/template/spec", { serviceAccountName: account }),
      set("/metadata/annotations/kubernetes.io~1service-account.name", account),
      [
        "kube.patch",
        {
          ref,
          patch: [{ op: "copy", from: "/metadata/labels/x", path: "/spec/template/spec/serviceAccountName" }],
          type: "json",
        },
      ],
    );
    await expectSent(
      job({ serviceAccountName: "mine", volumes: [{ name: "watchfire", secret: { secretName: "mine" } }] }),
      create("v1", "ConfigMap", { data: { serviceAccountName: "mine" } }),
    );
  });

  it("writes Events about none of the runtime's objects but the one that fired it", async () => {
    const event = { type: "Normal", reason: "R", message: "m" };
    await expectRefused([
      "events.emit",
      { object: at("v1", "ConfigMap", indexName(account, "default"), home), ...event },
    ]);
    await expectSent(["events.emit", { object: notes, ...event }]);
    const { access, received } = await accessWithAll();
    const object = { ...at("v1", "ConfigMap", indexName(account, "default"), home), namespace: home, uid: "u" };
    const caller = { function: "f", trigger: "t", id: "1", object, attempt: 1 };
    await access.call(caller, "events.emit", JSON.stringify({ object, ...event }), new AbortController().signal);
    expect(received).toHaveLength(1);
  });

  it("meets the manifest's refusal first, which names the rule that is missing", async () => {
    const { call } = await accessTo({ own, discovery });
    const ref = at("v1", "ConfigMap", indexName(account, "default"), home);
    expect(errorOf(await call("kube.delete", { ref })).details).toHaveProperty("missingRule");
  });
});

it("names of an account that is too long for them are reserved as far as they tell", () => {
  const long = new OwnObjects({ namespace: home, account: "a".repeat(240) });
  const names = [indexName("a".repeat(240), "default"), functionAccount("a".repeat(240), "greet-and-wave-to-all")];
  expect([...names, configMapName("a".repeat(240), "greet", sha256)].map((name) => long.isOwnName(name))).toEqual([
    true,
    true,
    true,
  ]);
});

it("a JSON pointer of megabytes is judged in no time", () => {
  const demand = { group: "", resource: "configmaps", verb: "patch", namespace: home, name: "notes" } as const;
  const long = [
    "/".repeat(4_000_000),
    `/metadata/labels/${"~1".repeat(2_000_000)}`,
    `/data/${"a/".repeat(2_000_000)}x`,
  ];
  const before = process.cpuUsage();
  for (const path of long) {
    const body = [{ op: "add", path, value: "x" }];
    expect(own.objection(demand, { target: notes, verb: "patch", method: "PATCH", body })).toBeUndefined();
  }
  // It normally takes milliseconds; it would take seconds if every step were split.
  expect(process.cpuUsage(before).user).toBeLessThan(1e6);
});

it("a body of any shape and depth is judged without a fault", async () => {
  const { call } = await accessWithAll();
  const deep = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"notes","namespace":"${home}","uid":"u"},"data":${'{"a":'.repeat(3000)}1${"}".repeat(3000)}}`;
  expect((await call("kube.create", `{"object":${deep}}`)).ok).toBe(true);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(fc.constantFrom("op", "path", "value", "from"), fc.jsonValue())),
      async (patch) => {
        const reply = await call("kube.patch", { ref: notes, patch, type: "json" });
        expect(reply.ok || reply.error.type === "ForbiddenError").toBe(true);
      },
    ),
    { numRuns: 200 },
  );
});
