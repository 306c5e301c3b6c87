// Fields that the admission plugins of an API server add to a new pod, and pods that they refuse.
import { beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace, eventually } from "../target/fixture.ts";

const container = { name: "c", image: "i" };
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
let namespace: string;

/** Creates a pod as a dry run. */
const tried = (spec: object) =>
  admin.reply("POST", `/api/v1/namespaces/${namespace}/pods`, {
    query: { dryRun: "All" },
    body: { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [container], ...spec } },
  });

beforeAll(async () => {
  namespace = await createNamespace();
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.post(accounts, { metadata: { name: "plain" }, automountServiceAccountToken: false });
  await admin.post(accounts, { metadata: { name: "puller" }, imagePullSecrets: [{ name: "registry" }] });
  for (const serviceAccountName of ["default", "puller"])
    await eventually(
      () => tried({ serviceAccountName }),
      ({ status }) => status === 201,
    );
});

describe("a new pod", () => {
  test("has its account's token in each container that mounts nothing in its place", async () => {
    const volumes = [{ name: "own", emptyDir: {} }];
    const own = { name: "own", mountPath: tokenFolder };
    const { body } = await tried({
      volumes,
      containers: [container, { ...container, name: "d", volumeMounts: [own] }],
      initContainers: [{ ...container, name: "e" }],
    });
    const { name, projected } = body.spec.volumes.at(-1) as Body;
    expect(name).toMatch(/^kube-api-access-\w{5}$/);
    expect(projected.sources.map((source: object) => Object.keys(source))).toEqual([
      ["serviceAccountToken"],
      ["configMap"],
      ["downwardAPI"],
    ]);
    const mount = { name, readOnly: true, mountPath: tokenFolder };
    expect(body.spec.containers.map((one: Body) => one.volumeMounts)).toEqual([[mount], [own]]);
    expect(body.spec.initContainers[0].volumeMounts).toEqual([mount]);
  });

  test("has no token if it or its account does not want one", async () => {
    expect((await tried({ automountServiceAccountToken: false })).body.spec.volumes).toBeUndefined();
    expect((await tried({ serviceAccountName: "plain" })).body.spec.volumes).toBeUndefined();
    const wanted = await tried({ serviceAccountName: "plain", automountServiceAccountToken: true });
    expect(wanted.body.spec.volumes).toHaveLength(1);
  });

  test("has its account's secrets for images, unless it has secrets itself", async () => {
    const named = { serviceAccountName: "puller" };
    expect((await tried(named)).body.spec.imagePullSecrets).toEqual([{ name: "registry" }]);
    const { body } = await tried({ ...named, imagePullSecrets: [{ name: "own" }] });
    expect(body.spec.imagePullSecrets).toEqual([{ name: "own" }]);
  });

  test("tolerates nodes in trouble for five minutes, unless it says otherwise", async () => {
    const own = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 };
    const added = (key: string) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
    const { body } = await tried({ tolerations: [own] });
    expect(body.spec.tolerations).toEqual([own, added("node.kubernetes.io/unreachable")]);
    expect((await tried({ tolerations: [{ operator: "Exists" }] })).body.spec.tolerations).toHaveLength(1);
  });

  test("has the priority of its class", async () => {
    expect((await tried({})).body.spec).toMatchObject({ priority: 0, preemptionPolicy: "PreemptLowerPriority" });
    const critical = await tried({ priorityClassName: "system-node-critical" });
    expect(critical.body.spec.priority).toBe(2_000_001_000);
  });

  test.each([
    [{ serviceAccountName: "nobody" }, 'serviceaccount "nobody" not found'],
    [{ priorityClassName: "nope" }, "no PriorityClass with name nope was found"],
    [{ priority: 5 }, "the integer value of priority (5) must not be provided in pod spec"],
    [{ runtimeClassName: "nope" }, 'RuntimeClass "nope" not found'],
  ])("is refused with %j", async (spec, why) => {
    const { status, body } = await tried(spec);
    expect([status, body.message]).toEqual([403, expect.stringContaining(why)]);
  });
});
